"""An agent: what was registered, frozen, and the one session that is open."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from agent_magics.context.tokens import count_text
from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig, SessionConfig, SummaryConfig, check_config
from agent_magics.core.errors import (
    AgentShutdown,
    InputValidation,
    InvalidDefaultModel,
    InvalidModelConfig,
    ModelNotSupported,
    NameConflict,
    NoModelProvider,
    SessionBusy,
    SessionNotFound,
    StorageDuplicate,
    StorageError,
    said_by,
)
from agent_magics.core.hooks import PluginDescriptor, SessionStarting
from agent_magics.core.money import KnownPrices
from agent_magics.core.ports import (
    Approver,
    Clock,
    Ids,
    Lease,
    LiveTools,
    MemoryStorage,
    OnMain,
    Owner,
    Plugin,
    Provider,
    ReferenceSource,
    SessionPage,
    SessionState,
    SessionStorage,
    SessionSummary,
    Tool,
)
from agent_magics.core.skills import Skill
from agent_magics.core.text import clean_value
from agent_magics.ledger.transient import TransientStore
from agent_magics.providers.prices import ListedPrices
from agent_magics.providers.registry import ProviderRegistry
from agent_magics.session.agent_memory import AgentMemory
from agent_magics.session.beginning import first_change
from agent_magics.session.desk import Desk
from agent_magics.session.hooks import HookScope
from agent_magics.session.loop import background_loop, hops
from agent_magics.session.memory_tools import MEMORY_TOOL_NAMES
from agent_magics.session.mirror import Mirror
from agent_magics.session.parts import AgentParts, RandomIds, SystemClock, ToolSource
from agent_magics.session.plugins import OnFault, Plugins, Registered
from agent_magics.session.record import Recorder
from agent_magics.session.recovery import set_right
from agent_magics.session.session import Session
from agent_magics.session.skills import checked_skills

Life = Literal["running", "shutting down", "shut down"]
FORCED_PATIENCE_S = 0.5
_log = logging.getLogger("agent_magics.session")


class AgentBuilder:
    """Collects what an agent is made of; `build` checks that it fits together (seed 001 § 7.1)."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        on_main: OnMain | None = None,
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
        """Add instructions that a person calls by `/name` at the beginning of a prompt (E15)."""
        self._skills.append(skill)
        return self

    def register_plugin(
        self,
        plugin: Plugin,
        config: Mapping[str, Any] | None = None,
        *,
        on_fault: OnFault | None = None,
    ) -> AgentBuilder:
        """Add a plugin, started by `build`; its hooks get `config` with every payload (E14).

        A plugin that can't start fails the build; with `on_fault`, that gets the sentence and the
        agent is built without it.
        """
        self._plugins.append(Registered(plugin, dict(config or {}), on_fault))
        return self

    def register_approver(self, approver: Approver) -> AgentBuilder:
        """Ask there before a mutating tool runs, unless its policy answers (decision 55)."""
        self._approver = approver
        return self

    def register_reference_source(self, source: ReferenceSource) -> AgentBuilder:
        """Add something that tells the model what is new, with each turn's first message (D 4)."""
        self._references.append(source)
        return self

    def summary_config(self, config: SummaryConfig) -> AgentBuilder:
        """Summarise slots by themselves when their history grows (seed 004); off without this."""
        self._config = msgspec.structs.replace(self._config, summary_config=config)
        return self

    def register_session_storage(self, storage: SessionStorage) -> AgentBuilder:
        """Keep sessions there; without one they live in memory and can't be listed or resumed."""
        self._storages.append(storage)
        return self

    def register_memory_storage(self, storage: MemoryStorage) -> AgentBuilder:
        """Keep memories there; without one nothing lasts across sessions (E16)."""
        self._memories.append(storage)
        return self

    @hops
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
                storage=self._storages[0] if self._storages else TransientStore(),
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


class Agent:
    """Opens one session at a time. Made by `AgentBuilder.build`.

    `async with` shuts it down at the end.
    """

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._session: Session | None = None
        self._is_opening = False
        self._life: Life = "running"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.shutdown()

    @property
    def config(self) -> AgentConfig:
        return self._parts.config

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that prompts may call."""
        return self._parts.skills.all

    @property
    def plugins(self) -> tuple[PluginDescriptor, ...]:
        """The plugins at work, in their order."""
        return self._parts.plugins.descriptors

    @property
    def memory(self) -> AgentMemory:
        """What lasts across sessions."""
        return self._parts.memory

    @property
    def storage(self) -> SessionStorage:
        """Where its sessions are kept."""
        return self._parts.storage

    @hops
    async def new_session(self, config: SessionConfig | None = None) -> Session:
        """Make a session with its slot `default`.

        Raises `SessionBusy` (one is open), `AgentShutdown`, `ModelNotSupported`, `StorageError`,
        `PluginAborted`, and `SessionLocked` where the id is in use elsewhere; nothing is left
        behind then.
        """
        wanted = config or SessionConfig()
        if wanted.model_id is not None:
            self._parts.registry.resolve(wanted.model_id)
        session_id = wanted.session_id or self._parts.ids.new("session")
        return await self._opened(session_id, lambda: self._make(session_id, wanted))

    @hops
    async def resume_session(
        self, session_id: str, *, take: bool = False, readonly: bool = False
    ) -> Session:
        """Open a stored session as it was; no model is called (E18, D 43).

        `take`: from another kernel that holds it. `readonly`: only to look at. Raises
        `SessionNotFound`, `SessionLocked`, `SessionBusy`, `AgentShutdown`, `StorageError`.
        """
        self._check_stored()
        return await self._opened(
            session_id, lambda: self._resume(session_id, take=take, readonly=readonly)
        )

    @hops
    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """List stored sessions, newest first."""
        return await self._check_stored().list_sessions(cursor, limit)

    @hops
    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        """Find sessions by the beginning of their id or a part of their title."""
        return await self._check_stored().find_sessions(query)

    @hops
    async def delete_session(self, session_id: str) -> None:
        """Delete a session and all its events. Raises `SessionBusy` where it is the open one."""
        storage = self._check_stored()
        if self._open() is not None and self._open_id() == session_id:
            raise SessionBusy(session_id)
        await storage.delete_session(session_id)

    @hops
    async def models(self) -> tuple[ModelInfo, ...]:
        """List the models that the registered providers tell of."""
        found: list[ModelInfo] = []
        for provider in self._parts.registry.all:
            found.extend(await provider.models())
        return tuple(found)

    @hops
    async def shutdown(self, *, force: bool = False) -> None:
        """Close the open session, then the plugins and providers; doing it twice does nothing.

        Raises `PluginAborted` where a plugin keeps the session open: then the agent goes on. With
        `force` no plugin can, and none is waited for long: the kernel ends (decisions 14, 50).
        """
        if self._life != "running":
            return
        self._life = "shutting down"
        try:
            if force:  # at once: a kernel has 2 s for all of it
                await asyncio.gather(self._close_session(force=True), self._disconnect())
            else:
                await self._close_session(force=False)
                await self._disconnect()
        except BaseException:
            self._life = "running"
            raise
        patience_s = FORCED_PATIENCE_S if force else None
        await _ended([self._parts.plugins.shutdown()], patience_s)
        await _ended([each.aclose() for each in self._parts.registry.all], patience_s)
        self._life = "shut down"

    async def _close_session(self, *, force: bool) -> None:
        if self._session is not None:
            await self._session.close(force=force)

    async def _disconnect(self) -> None:
        await _ended([live.aclose() for live in self._parts.live], None)

    def _open(self) -> Session | None:
        if self._session is not None and self._session.is_closed:
            self._session = None
        return self._session

    def _open_id(self) -> str:
        return self._session.session_id if self._session else ""

    def _check_stored(self) -> SessionStorage:
        if self._life == "shut down":
            raise AgentShutdown
        if not self._parts.is_stored:
            raise StorageError("SessionStorage not registered: sessions live in memory here.")
        return self._parts.storage

    async def _opened(self, session_id: str, make: Callable[[], Awaitable[Session]]) -> Session:
        """Reserve the one place, open, and give the place back where that fails."""
        if self._life != "running":
            raise AgentShutdown
        if self._open() is not None or self._is_opening:
            raise SessionBusy(self._open_id() or session_id)
        self._is_opening = True
        try:
            session = await make()
        finally:
            self._is_opening = False
        if self._life != "running":  # meanwhile
            await session.close(force=True)
            raise AgentShutdown
        self._session = session
        return session

    async def _make(self, session_id: str, wanted: SessionConfig) -> Session:
        storage = self._parts.storage
        model = wanted.model_id or self._parts.config.default_model
        await self._hooks(session_id).fire(SessionStarting(model_id=model))
        lease = await storage.acquire(session_id, self._owner(), create=True)
        try:
            recorder = self._recorder(lease, _unused(await self._loaded(session_id)))
            await recorder.commit(first_change(recorder, self._parts, wanted))
            return await self._seated(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await storage.release(lease)
            raise

    def _hooks(self, session_id: str) -> HookScope:
        return HookScope(
            registry=self._parts.plugins.hooks, clock=self._parts.clock, session_id=session_id
        )

    async def _resume(self, session_id: str, *, take: bool, readonly: bool) -> Session:
        storage = self._parts.storage
        if readonly:
            recorder = self._recorder(
                Lease(session_id=session_id, epoch=-1), await self._loaded(session_id)
            )
            recorder.is_readonly = True
            recorder.readonly_because = "it was opened here to look at only"
            return await self._seated(recorder)
        lease = await storage.acquire(session_id, self._owner(), take=take)
        try:
            recorder = self._recorder(lease, await self._loaded(session_id))
            if not recorder.mirror.slots:  # its maker ended between the lease and the first write
                await recorder.commit(first_change(recorder, self._parts, SessionConfig()))
            await set_right(recorder)
            return await self._seated(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await storage.release(lease)
            raise

    async def _seated(self, recorder: Recorder) -> Session:
        desk = Desk(self._parts, recorder)
        if desk.remembering is not None:
            await desk.remembering.open()
        return Session(desk)

    async def _loaded(self, session_id: str) -> SessionState:
        state = await self._parts.storage.load(session_id)
        if state is None:
            raise SessionNotFound(session_id)
        return state

    def _recorder(self, lease: Lease, state: SessionState) -> Recorder:
        parts = self._parts
        prices = KnownPrices(parts.config.prices, ListedPrices())
        return Recorder(parts.storage, lease, Mirror(state), parts.clock, prices)

    def _owner(self) -> Owner:
        return Owner(pid=os.getpid(), host=platform.node(), since=self._parts.clock.now())


async def _ended(ending: Sequence[Awaitable[object]], patience_s: float | None) -> None:
    """Wait for foreign code to end; what one raises keeps no other from its end."""
    try:
        async with asyncio.timeout(patience_s):
            ended = await asyncio.gather(*ending, return_exceptions=True)
    except TimeoutError:
        _log.warning("what an agent was built of did not end within %s s", patience_s)
        return
    for error in ended:
        if isinstance(error, BaseException):
            _log.warning("what an agent was built of did not end well: %s", said_by(error))


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


def _unused(state: SessionState) -> SessionState:
    if state.events:
        raise InputValidation(
            f'There is already a session "{state.row.session_id}"; resume it, or choose another id.'
        )
    return state


def _check_unique(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise NameConflict(kind, name)
