"""The builder of an agent: what is registered on it, and the checks that it fits together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_magics.context.tokens import count_text
from agent_magics.core.config import AgentConfig, SummaryConfig, check_config
from agent_magics.core.errors import (
    InvalidDefaultModel,
    InvalidModelConfig,
    ModelNotSupported,
    NameConflict,
    NoModelProvider,
    StorageDuplicate,
)
from agent_magics.core.ports import (
    Approver,
    Clock,
    Ids,
    LiveTools,
    MemoryStorage,
    OwnedMain,
    Plugin,
    Provider,
    ReferenceSource,
    SessionStorage,
    Tool,
    ToolSource,
)
from agent_magics.core.skills import Skill
from agent_magics.core.text import clean_value
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.session.agent import Agent
from agent_magics.session.extensions.plugins import OnFault, Plugins, Registered
from agent_magics.session.extensions.skills import checked_skills
from agent_magics.session.memory.agent_memory import AgentMemory
from agent_magics.session.memory.fact_tools import MEMORY_TOOL_NAMES
from agent_magics.session.parts import AgentParts, RandomIds, SystemClock
from agent_magics.threads.loop import background_loop, on_session_loop


class AgentBuilder:
    """Collects what an agent is made of; `build` checks that it fits together."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        on_main: OwnedMain | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._ids = ids
        self._on_main = on_main
        self._providers: list[Provider] = []
        self._tools: list[Tool] = []
        self._sources: list[ToolSource] = []
        self._skills: list[Skill] = []
        self._plugins: list[Registered] = []
        self._references: list[ReferenceSource] = []
        self._storages: list[SessionStorage] = []
        self._memories: list[MemoryStorage] = []
        self._approver: Approver | None = None

    def register_model_provider(self, provider: Provider) -> AgentBuilder:
        """Add a family of models; at least one is needed."""
        self._providers.append(provider)
        return self

    def register_tool(self, tool: Tool) -> AgentBuilder:
        """Add a tool that models may call; see `agent_magics.tool`."""
        self._tools.append(tool)
        return self

    def register_tool_source(self, source: ToolSource) -> AgentBuilder:
        """Add tools that come and go: `source` is asked when a turn starts (a notebook's `@tool`s).

        One that is a `LiveTools` connects before turns and is closed with the agent.
        A registered tool stands before one of the same name from a source.
        """
        self._sources.append(source)
        return self

    def register_skill(self, skill: Skill) -> AgentBuilder:
        """Add instructions that a person calls by `/name` at the beginning of a prompt."""
        self._skills.append(skill)
        return self

    def register_plugin(
        self,
        plugin: Plugin,
        config: Mapping[str, Any] | None = None,
        *,
        on_fault: OnFault | None = None,
    ) -> AgentBuilder:
        """Add a plugin, started by `build`; its hooks get `config` with every payload.

        A plugin that can't start fails the build; with `on_fault`, that gets the sentence and the
        agent is built without it.
        """
        self._plugins.append(Registered(plugin, dict(config or {}), on_fault))
        return self

    def register_approver(self, approver: Approver) -> AgentBuilder:
        """Ask there before a mutating tool runs, unless its policy answers."""
        self._approver = approver
        return self

    def register_reference_source(self, source: ReferenceSource) -> AgentBuilder:
        """Add something that tells the model what is new, with each turn's first message."""
        self._references.append(source)
        return self

    def summary_config(self, config: SummaryConfig) -> AgentBuilder:
        """Summarise slots by themselves when their history grows; off without this."""
        self._config = msgspec.structs.replace(self._config, summary_config=config)
        return self

    def register_session_storage(self, storage: SessionStorage) -> AgentBuilder:
        """Keep sessions there; without one they live in memory and can't be listed or resumed."""
        self._storages.append(storage)
        return self

    def register_memory_storage(self, storage: MemoryStorage) -> AgentBuilder:
        """Keep memories there; without one nothing lasts across sessions."""
        self._memories.append(storage)
        return self

    @on_session_loop
    async def build(self) -> Agent:
        """Check everything, start the plugins, and freeze.

        Raises `NoModelProvider`, `NameConflict`, `StorageDuplicate`, `InvalidDefaultModel`,
        `InvalidModelConfig`, `InputValidation` (a setting or a skill), `SkillDependencyNotMet`,
        `PluginInitFailed`, `PluginHookContractViolation`; no plugin stays started then.
        """
        check_config(self._config)
        registry = self._registry()
        await asyncio.to_thread(count_text, "a")  # the first count loads the ranks, half a second
        _check_unique("tool", [tool.name for tool in self._tools])
        if len(self._storages) > 1:
            raise StorageDuplicate("session")
        if len(self._memories) > 1:
            raise StorageDuplicate("memory")
        clock, ids = self._clock or SystemClock(), self._ids or RandomIds()
        memories = self._memories[0] if self._memories else None
        tools = _joined(tuple(self._tools), tuple(self._sources))
        skills = checked_skills(self._skills, self.tool_names() if self._skills else ())
        plugins = Plugins()
        # Last of all, when everything else is known to fit: a plugin that has started must be shut
        # down again.
        await plugins.start(tuple(self._plugins))
        return Agent(
            AgentParts(
                config=clean_value(self._config),
                registry=registry,
                tools=tools,
                skills=skills,
                plugins=plugins,
                references=tuple(self._references),
                live=tuple(each for each in self._sources if isinstance(each, LiveTools)),
                storage=self._storages[0] if self._storages else InMemoryStore(),
                is_stored=bool(self._storages),
                on_main=self._on_main or background_loop().main,
                approver=self._approver,
                memory=AgentMemory(memories, self._config, clock=clock, ids=ids),
                clock=clock,
                ids=ids,
            )
        )

    def tool_names(self) -> frozenset[str]:
        """Name the tools that models could call now, for skills that need some."""
        own = MEMORY_TOOL_NAMES if self._config.session_memory_tools else ()
        named = (tool.name for tool in _joined(tuple(self._tools), tuple(self._sources))())
        return frozenset((*own, *named))

    def _registry(self) -> ProviderRegistry:
        if not self._providers:
            raise NoModelProvider
        _check_unique("provider", [provider.provider_id for provider in self._providers])
        registry = ProviderRegistry(tuple(self._providers))
        config = self._config
        try:
            registry.resolve(config.default_model)
        except ModelNotSupported as error:
            raise InvalidDefaultModel(config.default_model, registry.ids) from error
        for kind, spec in _other_models(config):
            if spec is None:
                continue
            try:
                registry.resolve(spec)
            except ModelNotSupported as error:
                raise InvalidModelConfig(kind, spec, registry.ids) from error
        return registry


def _joined(tools: tuple[Tool, ...], sources: tuple[ToolSource, ...]) -> ToolSource:
    def joined() -> tuple[Tool, ...]:
        named = {tool.name: tool for source in sources for tool in source()}
        named.update({tool.name: tool for tool in tools})
        return tuple(named.values())

    return joined


def _other_models(config: AgentConfig) -> tuple[tuple[str, str | None], ...]:
    summaries = config.summary_config
    return (
        ("compact", config.compact_model),
        ("memory", config.memory_model),
        ("summary", summaries.summary_model if summaries else None),
    )


def _check_unique(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise NameConflict(kind, name)
