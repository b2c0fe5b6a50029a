"""What all providers over HTTP do: find the server, send, try again, and read the answer.

A request goes through `chat` (which server), `answers` (again and again), `_attempt` (once) and
`answer_reader.read_answer` (event by event).
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.addresses import split_address
from agent_magics.providers.http.answer_reader import read_answer
from agent_magics.providers.http.assembly import StreamAssembler
from agent_magics.providers.http.endpoint import Endpoint, Key, KeyFor
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.http.response_errors import FIRST_NOT_OK, ResponseErrors
from agent_magics.providers.http.retries import RetryPolicy, with_retries

LISTING_S = 5.0


class HTTPProvider(ABC):
    """A server whose models may carry another's address, `name@http://host:port/v1`.

    Same rules, other server. The key of the own one isn't sent to another host, nor in the open
    where the own one is https (docs/decisions.md#63): `key_for(host)` is asked instead. `key_name`
    is where the own key came from, for messages.
    """

    _assembler: ClassVar[type[StreamAssembler]]

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        key_name: str | None,
        key_for: KeyFor | None,
        retry: RetryPolicy | None,
    ) -> None:
        self.endpoint = endpoint
        self._key_name = key_name
        self._key_for = key_for
        self._retry = retry or RetryPolicy()
        self._errors = ResponseErrors(endpoint, key_name)
        self._elsewhere: dict[str, HTTPProvider] = {}
        self._call_numbers = itertools.count(1)

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self.endpoint.name

    @abstractmethod
    async def models(self) -> Sequence[ModelInfo]:
        """List the models that answer now; empty where the server doesn't answer."""

    async def describe(self, model: str) -> ModelInfo:
        """Return what is known of a model (see `core.ports.Provider.describe`)."""
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
        """Return what this very server says of a model; the name carries no address."""

    async def answers(
        self, request: ChatRequest, *, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer of this very server; `request.model` carries no address.

        `known_as` is the model's whole name, by which its own reasoning is known again.
        """
        attempts = with_retries(
            lambda: self._assembler(
                provider=self.provider_id,
                model=known_as,
                new_id=lambda: f"call_{next(self._call_numbers)}",
            ),
            lambda assembler: self._attempt(request, assembler, known_as),
            policy=self._retry,
            adjust=lambda error: self._adjust(request, error, known_as),
        )
        async with aclosing(attempts) as events:
            async for event in events:
                yield event

    @abstractmethod
    def _at(self, base_url: str, key: Key, key_name: str | None) -> HTTPProvider:
        """Make the same provider at another address."""

    @abstractmethod
    def _path(self, request: ChatRequest) -> str:
        """Return where requests are posted, from the address on."""

    @abstractmethod
    def _body(self, request: ChatRequest, known_as: str) -> JSONObject:
        """Write a request as this server wants it."""

    @abstractmethod
    def _adjust(self, request: ChatRequest, error: ProviderError, known_as: str) -> bool:
        """Learn what the server refused of a request; False where the same would be sent again."""

    @abstractmethod
    def _missing_key(self) -> str | None:
        """Say that a key is needed that isn't there; None where nothing is missing."""

    def _warning(self, request: ChatRequest, usage: TokenUsage | None) -> str | None:
        """Return what is wrong with an answer that has come whole, as far as counts tell it."""
        del request, usage
        return None

    def _server_at(self, url: str | None) -> HTTPProvider:
        if url is None:
            return self
        # Kept: what a server refused is learnt once, and connections to it are used again.
        if url not in self._elsewhere:
            key, key_name = self.endpoint.key_at(url, self._key_for, self._key_name)
            self._elsewhere[url] = self._at(url, key, key_name)
        return self._elsewhere[url]

    def _check_key(self) -> None:
        """Raise where a key is missing, before anything is sent."""
        sentence = self._missing_key()
        if sentence is not None:
            error = ProviderError(sentence, kind="auth")
            error.was_sent = False
            raise error

    async def _attempt(
        self, request: ChatRequest, assembler: StreamAssembler, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        self._check_key()
        body = self._body(request, known_as)
        path, errors = self._path(request), self._errors
        async with self.endpoint.open("POST", path, body=body) as response:
            if response.status >= FIRST_NOT_OK:
                raise await errors.of(response)
            between_s = self.endpoint.timeouts.between_tokens_s
            answer = read_answer(response, assembler, errors, between_tokens_s=between_s)
            async with aclosing(answer) as events:
                async for event in events:
                    yield event
                if warning := self._warning(request, assembler.usage):
                    assembler.warn(warning)
                for event in assembler.end():
                    yield event
