"""llama.cpp: a server that runs already, or one of ours on a GGUF file named as the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cached_property
from pathlib import Path

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded.provider import EmbeddedProvider
from agent_magics.providers.http.provider import LISTING_S
from agent_magics.providers.openai_chat.model_info import sees_in, window_in
from agent_magics.providers.openai_chat.provider import OpenAICompatible

FILE_TOKENS = 8_192


class LlamaCpp(OpenAICompatible):
    """A llama.cpp server; `llamacpp:/path/model.gguf` serves that file itself.

    Servers name their models after files, often on other machines: what isn't a file here and is
    in the server's list is asked of the server. A file's window is `FILE_TOKENS`: what it was
    trained for may be more than memory holds.
    """

    @cached_property
    def _files(self) -> dict[str, EmbeddedProvider]:
        return {}

    async def describe(self, model: str) -> ModelInfo:
        """Return a file's window, or the one that the server's list or `/props` tells."""
        if await self._is_file(model):
            return await self._file(model).describe(model)
        self._listing = []
        info = await super().describe(model)
        return info if "@http" in model else await self._with_props(info)

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

    async def _with_props(self, info: ModelInfo) -> ModelInfo:
        try:
            props = await self.endpoint.get_json("props", within_s=LISTING_S, from_root=True)
        except ProviderError:
            return info
        return msgspec.structs.replace(
            info,
            context_window=info.context_window or window_in(props),
            has_vision=sees_in(props) if info.has_vision is None else info.has_vision,
        )

    def _file(self, model: str) -> EmbeddedProvider:
        if model not in self._files:
            self._files[model] = EmbeddedProvider(
                Path(model).expanduser(),
                provider_id=self.provider_id,
                model_name=model,
                n_ctx=FILE_TOKENS,
                has_tools=True,
                is_demo=False,
            )
        return self._files[model]


def _is_here(model: str) -> bool:
    return Path(model).expanduser().is_file()
