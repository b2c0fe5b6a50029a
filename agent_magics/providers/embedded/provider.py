"""The embedded model: a llama.cpp server of our own on this machine, one a provider."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo, Retrying
from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded.server_process import IDLE_S, EmbeddedServer
from agent_magics.providers.embedded.weights import (
    MODEL_NAME,
    PULL_HINT,
    TRAINED_TOKENS,
    find_weights,
    has_runtime,
)
from agent_magics.providers.http.clients import Timeouts
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from agent_magics.providers.presets import EMBEDDED, Quirks

# It may lose the thread and repeat itself for as long as its window has room, which takes minutes.
DEMO_ANSWER_TOKENS = 768
# Requests queue behind each other, and a full window takes a slow machine minutes to read.
TIMEOUTS = Timeouts(first_token_s=900.0, between_tokens_s=120.0)


class EmbeddedProvider:
    """The model in a GGUF file, served by a process that starts at the first request.

    `n_ctx`: its window in tokens. The demo model's own template drops tools in silence, so they
    are left out of its requests (`has_tools`), and it ends an answer whose length nobody limited
    after `DEMO_ANSWER_TOKENS`. `weights` None: they are looked for at each use,
    and a request without them says how to pull them.
    """

    def __init__(
        self,
        weights: Path | None,
        *,
        provider_id: str = EMBEDDED,
        model_name: str = MODEL_NAME,
        n_ctx: int = TRAINED_TOKENS,
        has_tools: bool = False,
        is_demo: bool = True,
        idle_s: float = IDLE_S,
    ) -> None:
        self._weights = weights
        self._info = ModelInfo(
            name=model_name,
            provider=provider_id,
            context_window=n_ctx,
            has_tools=has_tools,
            has_vision=False,  # a file of weights alone has no eyes
            is_demo=is_demo,
        )
        self._n_ctx = n_ctx
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None
        self._client: OpenAICompatible | None = None
        self._closings = 0

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self._info.provider

    @property
    def server(self) -> EmbeddedServer | None:
        """The running process, if there is one."""
        return self._server

    async def models(self) -> Sequence[ModelInfo]:
        """List the model, if its weights and its runtime are here."""
        weights = self._weights or find_weights()
        is_here = weights is not None and weights.is_file() and has_runtime()
        return [self._info] if is_here else []

    async def describe(self, model: str) -> ModelInfo:
        """Return what is known without starting the server."""
        return msgspec.structs.replace(self._info, name=model)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer (see `core.ports.Provider.chat`); a dead server is started again."""
        is_second = False
        request = self._limited(request)
        closings = self._closings
        while True:
            server, client = await asyncio.to_thread(self._ready, closings)
            has_begun = False
            try:
                with server.busy():
                    async with aclosing(client.chat(request)) as events:
                        async for event in events:
                            has_begun = has_begun or not isinstance(event, Retrying)
                            yield event
            except ProviderError:
                # A process that the system has ended, for its memory say, is worth one more start.
                if has_begun or is_second or server.is_alive():
                    raise
                is_second = True
            else:
                return

    async def aclose(self) -> None:
        """End the server; one that is starting ends as soon as it has."""
        self._closings += 1  # before anything is awaited: a start that runs looks at it
        client, self._client = self._client, None
        server, self._server = self._server, None
        if client is not None:
            await client.aclose()
        if server is not None:
            await asyncio.to_thread(server.stop)

    def _limited(self, request: ChatRequest) -> ChatRequest:
        if not self._info.is_demo or request.params.max_tokens is not None:
            return request
        params = msgspec.structs.replace(request.params, max_tokens=DEMO_ANSWER_TOKENS)
        return msgspec.structs.replace(request, params=params)

    def _ready(self, closings: int) -> tuple[EmbeddedServer, OpenAICompatible]:
        """Return a running server and its client; blocks while a server starts.

        Under a lock, since requests come at the same time and one server is enough for all.
        """
        with self._lock:
            server, client = self._server, self._client
            if server is not None and client is not None and server.is_alive():
                return server, client
            if server is not None:
                server.stop()
            self._check_open(closings)
            server, client = self._started()
            self._server, self._client = server, client
            try:
                self._check_open(closings)
            except ProviderError:
                self._server = self._client = None
                server.stop()
                raise
            return server, client

    def _started(self) -> tuple[EmbeddedServer, OpenAICompatible]:
        weights = _present(self._weights or find_weights())
        server = EmbeddedServer(weights, n_ctx=self._n_ctx, idle_s=self._idle_s)
        client = OpenAICompatible(
            self.provider_id,
            base_url=server.base_url,
            api_key=server.token,
            timeouts=TIMEOUTS,
            quirks=Quirks(tools=self._info.has_tools),
        )
        return server, client

    def _check_open(self, closings: int) -> None:
        """Stop a start that `aclose` has overtaken: nobody would end that server."""
        if self._closings != closings:
            raise ProviderError(f"{self.provider_id} was closed while its server started.")


def _present(weights: Path | None) -> Path:
    if weights is None:
        raise ProviderError(f"The weights of the embedded model are not here; {PULL_HINT}")
    return weights
