"""What an agent was built of, frozen; and the models it can reach."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig, ModelFacts
from agent_magics.core.errors import AgentError
from agent_magics.core.ports import (
    Approver,
    Clock,
    Ids,
    LiveTools,
    OwnedMain,
    Provider,
    ReferenceSource,
    SessionStorage,
    Tool,
)
from agent_magics.providers.prices import listed_window
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.session.extensions.plugins import Plugins
from agent_magics.session.extensions.skills import SkillRegistry
from agent_magics.session.request.sending import describe

if TYPE_CHECKING:  # it knows requests, which are made of parts
    from agent_magics.session.memory.agent_memory import AgentMemory

NOTHING_SAID: Mapping[str, ModelFacts] = MappingProxyType({})
ToolSource = Callable[[], Sequence[Tool]]


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class RandomIds:
    """Ids that don't meet: 16 hexadecimal digits behind the kind's first letter."""

    def new(self, kind: Literal["session", "slot", "turn", "checkpoint", "memory"]) -> str:
        return f"{kind[0] if kind != 'slot' else 'x'}{secrets.token_hex(8)}"


@dataclass(frozen=True, kw_only=True)
class AgentParts:
    """The immutable inside of an agent. `is_stored`: a storage was registered."""

    config: AgentConfig
    registry: ProviderRegistry
    tools: ToolSource
    storage: SessionStorage
    is_stored: bool
    on_main: OwnedMain
    memory: AgentMemory
    live: tuple[LiveTools, ...] = ()
    approver: Approver | None = None
    plugins: Plugins = field(default_factory=Plugins)
    skills: SkillRegistry = field(default_factory=SkillRegistry)
    references: tuple[ReferenceSource, ...] = ()
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)


async def _whole(told: ModelInfo) -> ModelInfo:
    """Add what is listed of a model to what its server told; unknown stays unknown."""
    if told.context_window is not None:
        return told
    # Not on the loop: the first look loads the list.
    window = await asyncio.to_thread(listed_window, told.provider, told.name)
    return msgspec.structs.replace(told, context_window=window)


class Models:
    """Resolves model specs and keeps what servers told of their models, for one session."""

    def __init__(
        self, registry: ProviderRegistry, said: Mapping[str, ModelFacts] = NOTHING_SAID
    ) -> None:
        self._registry = registry
        self._said = said
        self._told: dict[str, ModelInfo] = {}

    def check(self, spec: str) -> str:
        """Return `spec`, or raise `ModelNotSupported`."""
        self._registry.resolve(spec)
        return spec

    def known(self, spec: str) -> ModelInfo:
        """Return what is known of a model without asking its server."""
        if spec in self._told:
            return self._told[spec]
        provider, name = self._registry.resolve(spec)
        return self._with_said(ModelInfo(name=name, provider=provider.provider_id))

    async def find(self, spec: str) -> tuple[Provider, ModelInfo]:
        """Resolve a spec and ask its server once; a server that tells nothing is no error."""
        provider, name = self._registry.resolve(spec)
        # Asked once for a session: a window that changed in mid-session would compact, or not,
        # without a reason that anybody sees.
        if spec not in self._told:
            with suppress(AgentError):  # who asks it hears why
                told = await _whole(await describe(provider, name))
                self._told[spec] = self._with_said(told)
        return self.at_hand(spec)

    def _with_said(self, info: ModelInfo) -> ModelInfo:
        """Let what a person said of a model stand before what its server told."""
        said = self._said.get(info.spec)
        if said is None:
            return info
        return msgspec.structs.replace(
            info,
            context_window=said.context_window or info.context_window,
            has_tools=info.has_tools if said.has_tools is None else said.has_tools,
            has_vision=info.has_vision if said.has_vision is None else said.has_vision,
        )

    def at_hand(self, spec: str) -> tuple[Provider, ModelInfo]:
        """Resolve a spec without asking its server."""
        return self._registry.resolve(spec)[0], self.known(spec)
