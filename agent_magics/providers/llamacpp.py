"""llama.cpp: a server that runs already, or one of ours on a GGUF file named as the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded import EmbeddedProvider
from agent_magics.providers.facts import window_in
from agent_magics.providers.openai import LISTING_S, OpenAICompatible
from agent_magics.providers.wire import Key, Timeouts, Transport

LLAMACPP = "llamacpp"
LLAMACPP_URL = "http://localhost:8080/v1"
FILE_TOKENS = 8_192


class LlamaCpp(OpenAICompatible):
    """A llama.cpp server; `llamacpp:/path/model.gguf` serves that file itself.

    Servers name their models after files, often on other machines: what isn't a file here and is
    in the server's list is asked of the server. A file's window is `n_ctx` tokens: what it was
    trained for may be more than memory holds.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: Key = None,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
        n_ctx: int = FILE_TOKENS,
    ) -> None:
        super().__init__(
            LLAMACPP,
            base_url=base_url or LLAMACPP_URL,
            api_key=api_key,
            key_name="LLAMA_API_KEY",
            timeouts=timeouts,
            transport=transport,
        )
        self._n_ctx = n_ctx
        self._files: dict[str, EmbeddedProvider] = {}

    async def describe(self, model: str) -> ModelInfo:
        """Tell a file's window, or the one that the server's list or `/props` tells."""
        if await self._is_file(model):
            return await self._file(model).describe(model)
        self._listing = []
        info = await super().describe(model)
        if info.context_window is None and "@http" not in model:
            info = msgspec.structs.replace(info, context_window=await self._props_window())
        return info

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer (see `core.ports.Provider.chat`)."""
        is_file = await self._is_file(request.model)
        source = self._file(request.model).chat(request) if is_file else super().chat(request)
        async with aclosing(source) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Close connections and end the servers of files."""
        for provider in self._files.values():
            await provider.aclose()
        await super().aclose()

    async def _is_file(self, model: str) -> bool:
        if not model.lower().endswith(".gguf"):
            return False
        return _is_here(model) or all(info.name != model for info in await self.models())

    async def _props_window(self) -> int | None:
        try:
            props = await self.endpoint.get_json("props", within_s=LISTING_S, from_root=True)
        except ProviderError:
            return None
        return window_in(props)

    def _file(self, model: str) -> EmbeddedProvider:
        if model not in self._files:
            self._files[model] = EmbeddedProvider(
                Path(model).expanduser(),
                provider_id=LLAMACPP,
                model_name=model,
                n_ctx=self._n_ctx,
                has_tools=True,
                is_demo=False,
            )
        return self._files[model]


def llamacpp(
    *,
    base_url: str | None = None,
    api_key: Key = None,
    timeouts: Timeouts | None = None,
    transport: Transport | None = None,
    n_ctx: int = FILE_TOKENS,
) -> LlamaCpp:
    """Reach a llama.cpp server, on this machine unless `base_url` says otherwise."""
    return LlamaCpp(
        base_url=base_url, api_key=api_key, timeouts=timeouts, transport=transport, n_ctx=n_ctx
    )


def _is_here(model: str) -> bool:
    return Path(model).expanduser().is_file()
