"""What an agent was built of, frozen."""

from __future__ import annotations

import os
import platform
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from agent_magics.core.config import AgentConfig
from agent_magics.core.ports import (
    Approver,
    Clock,
    Ids,
    LiveTools,
    OwnedMain,
    Owner,
    ReferenceSource,
    SessionStorage,
    ToolSource,
)
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.session.extensions.plugins import Plugins
from agent_magics.session.extensions.skills import SkillRegistry
from agent_magics.session.memory.agent_memory import AgentMemory


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

    def owner(self) -> Owner:
        """Return this process, as a lease names it."""
        return Owner(pid=os.getpid(), host=platform.node(), since=self.clock.now())
