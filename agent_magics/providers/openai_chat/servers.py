"""Servers that tell the facts of their models elsewhere than in the common list."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.providers.http.provider import LISTING_S
from agent_magics.providers.openai_chat.model_info import (
    listed_models,
    litellm_model,
    loaded_names,
    ollama_model,
)
from agent_magics.providers.openai_chat.provider import OpenAICompatible

LARGER_NUM_CTX = (
    "Give it a larger window: start Ollama with OLLAMA_CONTEXT_LENGTH=32768, say, or set num_ctx in"
    " the model's Modelfile."
)


class Ollama(OpenAICompatible):
    """An Ollama server; loaded models are listed first."""

    _larger_hint = LARGER_NUM_CTX

    async def models(self) -> Sequence[ModelInfo]:
        """List the models that can chat; empty where Ollama doesn't answer."""
        try:
            listed, loaded = await asyncio.gather(
                self._listed(), self.endpoint.get_json("api/ps", within_s=LISTING_S, from_root=True)
            )
        except ProviderError:
            return []
        names = loaded_names(loaded)
        return sorted(listed, key=lambda info: info.name not in names)

    async def describe(self, model: str) -> ModelInfo:
        """Ask for the window that the model really has, and what it can do."""
        if "@http" in model:  # another server, which may be no Ollama
            return await super().describe(model)
        get = self.endpoint.get_json
        try:
            shown, loaded = await asyncio.gather(
                get("api/show", body={"model": model}, within_s=LISTING_S, from_root=True),
                get("api/ps", within_s=LISTING_S, from_root=True),
            )
        except ProviderError:
            return ModelInfo(name=model, provider=self.provider_id)
        return ollama_model(model, shown, loaded, self.provider_id)


class LMStudio(OpenAICompatible):
    """An LM Studio server; its own list tells windows and what is loaded."""

    async def describe(self, model: str) -> ModelInfo:
        """Look the model up; not remembered, since it may be loaded anew with another window."""
        self._listing = []
        return await super().describe(model)

    async def _listed(self) -> list[ModelInfo]:
        document = await self.endpoint.get_json("api/v0/models", within_s=LISTING_S, from_root=True)
        return listed_models(document, self.provider_id) or await super()._listed()


class LiteLLM(OpenAICompatible):
    """A LiteLLM proxy; what it knows of the models behind it stands in a list of its own."""

    async def describe(self, model: str) -> ModelInfo:
        """Look the model up among the proxy's groups, else in its list."""
        told = None
        if "@http" not in model:
            with suppress(ProviderError):
                document = await self.endpoint.get_json(
                    "model_group/info", within_s=LISTING_S, from_root=True
                )
                told = litellm_model(model, document, self.provider_id)
        return told or await super().describe(model)
