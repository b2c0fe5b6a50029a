"""The models that a session can reach, and what their servers and people said of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import ModelFacts
from agent_magics.core.errors import AgentError
from agent_magics.core.ports import Provider
from agent_magics.providers.prices import listed_window
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.session.request.sending import describe

NO_FACTS: Mapping[str, ModelFacts] = MappingProxyType({})


class ModelLookup:
    """Resolves model specs and keeps what servers told of their models, for one session."""

    def __init__(
        self, registry: ProviderRegistry, facts: Mapping[str, ModelFacts] = NO_FACTS
    ) -> None:
        self._registry = registry
        self._facts = facts
        self._found: dict[str, ModelInfo] = {}

    def check(self, spec: str) -> str:
        """Return `spec`, or raise `ModelNotSupported`."""
        self._registry.resolve(spec)
        return spec

    def known(self, spec: str) -> ModelInfo:
        """Return what is known of a model without asking its server."""
        if spec in self._found:
            return self._found[spec]
        provider, name = self._registry.resolve(spec)
        return self._with_facts(ModelInfo(name=name, provider=provider.provider_id))

    async def find(self, spec: str) -> tuple[Provider, ModelInfo]:
        """Resolve a spec and ask its server once; a server that tells nothing is no error."""
        provider, name = self._registry.resolve(spec)
        if spec not in self._found:
            with suppress(AgentError):  # who asks it hears why
                found = await _with_listed_window(await describe(provider, name))
                self._found[spec] = self._with_facts(found)
        return self.resolve(spec)

    def _with_facts(self, info: ModelInfo) -> ModelInfo:
        """Let what a person said of a model stand before what its server told."""
        said = self._facts.get(info.spec)
        if said is None:
            return info
        return msgspec.structs.replace(
            info,
            context_window=said.context_window or info.context_window,
            has_tools=info.has_tools if said.has_tools is None else said.has_tools,
            has_vision=info.has_vision if said.has_vision is None else said.has_vision,
        )

    def resolve(self, spec: str) -> tuple[Provider, ModelInfo]:
        """Resolve a spec without asking its server."""
        return self._registry.resolve(spec)[0], self.known(spec)


async def _with_listed_window(told: ModelInfo) -> ModelInfo:
    """Add what is listed of a model to what its server told; unknown stays unknown."""
    if told.context_window is not None:
        return told
    # Not on the loop: the first look loads the list.
    window = await asyncio.to_thread(listed_window, told.provider, told.name)
    return msgspec.structs.replace(told, context_window=window)
