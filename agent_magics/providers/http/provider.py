"""Which server answers a model: the one that its name's address tells, or the provider's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.providers.http.endpoint import Endpoint, Key, KeyFor, split_address


class Addressed(ABC):
    """A server whose models may carry another's address, `name@http://host:port/v1`.

    Same rules, other server. The key of the own one isn't sent to another host, nor in the open
    where the own one is https: `key_for(host)` is asked instead. `key_name` is where the own key
    came from, for messages.
    """

    endpoint: Endpoint

    def __init__(self, *, key_name: str | None, key_for: KeyFor | None) -> None:
        self._key_name = key_name
        self._key_for = key_for
        self._elsewhere: dict[str, Addressed] = {}

    async def describe(self, model: str) -> ModelInfo:
        """Tell what is known of a model (see `core.ports.Provider.describe`)."""
        name, url = split_address(model)
        info = await self._server_at(url).described(name)
        return msgspec.structs.replace(info, name=model) if url else info

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer (see `core.ports.Provider.chat`)."""
        name, url = split_address(request.model)
        sent = msgspec.structs.replace(request, model=name)
        answer = self._server_at(url).answers(sent, known_as=request.model)
        async with aclosing(answer) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Close the connections."""
        for other in self._elsewhere.values():
            await other.aclose()
        await self.endpoint.aclose()

    @abstractmethod
    async def described(self, name: str) -> ModelInfo:
        """Tell what this very server says of a model; the name carries no address."""

    @abstractmethod
    def answers(self, request: ChatRequest, *, known_as: str) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer of this very server; `request.model` carries no address.

        `known_as` is its whole name, by which the model's own reasoning is told.
        """

    @abstractmethod
    def _moved(self, base_url: str, key: Key, key_name: str | None) -> Addressed:
        """Make the same provider at another address."""

    def _server_at(self, url: str | None) -> Addressed:
        if url is None:
            return self
        if url not in self._elsewhere:
            key, key_name = self.endpoint.key_at(url, self._key_for, self._key_name)
            self._elsewhere[url] = self._moved(url, key, key_name)
        return self._elsewhere[url]
