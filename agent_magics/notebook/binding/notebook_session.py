"""The one session of a notebook: which one it is, opened at first use, closed with the extension.

Which (docs/decisions.md#46): the one that is named, else the one that this Jupyter kernel or this
notebook used last, else a new one; with nobody there always a new one, unless it is named. Which
model it asks is `model_choice`'s affair.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.catalog import NotebookStorage
from agent_magics.core.config import AgentConfig, CompactionConfig, SessionConfig
from agent_magics.core.errors import ModelError, SessionLocked, SessionNotFound
from agent_magics.core.ports import SessionState
from agent_magics.ledger.backends import open_catalog, open_stores
from agent_magics.notebook.binding.extensions import add_extensions, add_skills
from agent_magics.notebook.binding.model_choice import ModelChoice, NoModelYet
from agent_magics.notebook.binding.notebook_keys import NotebookKeys, glance, session_line
from agent_magics.notebook.binding.recording import Recording
from agent_magics.notebook.binding.rerun import is_same_cell, maker_of
from agent_magics.notebook.binding.rerun_guard import RerunGuard
from agent_magics.notebook.kernel.approval import StdinApprover
from agent_magics.notebook.kernel.bridge import LoopBridge, cell_origin
from agent_magics.notebook.kernel.defined_tools import tools_in
from agent_magics.notebook.kernel.failures import Failures
from agent_magics.notebook.kernel.host import notebook_folder
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.views.turn.live_turns import LiveTurns
from agent_magics.settings import (
    NO_MODEL,
    Settings,
    missing_for,
    missing_key,
    model_label,
    providers_for,
)

if TYPE_CHECKING:  # heavy: they come with the first use
    from agent_magics.notebook.views.widgets import Views
    from agent_magics.session.agent import Agent
    from agent_magics.session.memory.agent_memory import AgentMemory
    from agent_magics.session.session import Session
    from agent_magics.tools.mcp import McpTools
    from agent_magics.tools.mcp_config import McpFiles

GREETING_HELP = "%agent? for help"
_ENGINE = (
    "agent_magics.providers.openai_chat.provider",
    "agent_magics.session.agent",
    "agent_magics.session.builder",
)


class NotebookSession:
    """Holds the session that the magics of one shell use.

    `failures`: what of the notebook's own cells failed last.
    `seen_models`: the specs that were listed last, `seen_memories`: the names of what was shown
    last. `remembers` tells whether what is said is read for memories, `kernel_access` how far the
    agent may reach into the kernel. `built`: the agent, once there is one, `mcp` its MCP servers'
    tools.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        bridge: LoopBridge,
        settings: Callable[[], Settings],
        *,
        rerun: Callable[[], str],
        compaction: Callable[[], CompactionConfig],
        remembers: Callable[[], bool] = lambda: False,
        kernel_access: Callable[[], KernelAccess] = KernelAccess,
    ) -> None:
        self.shell = shell
        self.bridge = bridge
        self.kernel_access = kernel_access
        self.approver = StdinApprover(shell, bridge.main)
        self.live_turns = LiveTurns(self.approver, bridge.main)
        self.failures = Failures()
        self.seen_models: tuple[str, ...] = ()
        self.seen_memories: tuple[str, ...] = ()
        self.remembers = remembers
        self.mcp: McpTools | None = None
        self.folder = notebook_folder()
        self.settings = settings
        self.rerun_guard = RerunGuard(rerun)
        self._compaction = compaction
        self._left: str | None = None
        self._own_switches = 0
        self.recording = Recording(settings)
        self._model = ModelChoice(lambda: settings().model, self.recording.model_for)
        self._is_elsewhere = False
        self._news: list[str] = []
        self.built: Agent | None = None
        self._session: Session | None = None
        self._store: NotebookStorage | None = None
        self._views: Views | None = None

    @property
    def opened(self) -> Session | None:
        """The session if it is open; reading this opens nothing."""
        return None if self._session is None or self._session.is_closed else self._session

    def session(self) -> Session:
        """Return the session, opened if need be, with the model that is named now.

        What came of changed settings is said, once. Call it on the main thread.
        """
        session = self.opened
        if session is None or self._model.is_changed():
            session = self.bridge.run(self._opened)
        for line in self._news:
            say(line)
        self._news.clear()
        return session

    def lasting(self) -> AgentMemory:
        """Return what lasts across sessions; the session is opened if need be."""
        self.session()
        assert self.built is not None
        return self.built.memory

    def check_model(self, slot: str | None = None, model: str | None = None) -> None:
        """Raise `ModelError` where no model would answer in a slot; first look for one again.

        `model` stands before the slot's. One without its key is told before a turn is recorded.
        """
        session = self.session()
        named = model or session.slot_config(slot).model
        # A server may have been started since; nobody should have to reload for it.
        if named is None and self._model.is_missing(session):
            self.bridge.run(self._find_again)
        # Before a turn is recorded: else the ledger has a prompt that nobody could answer.
        why = None if self._is_replayed else missing_key(named or self.session().model, os.environ)
        if why:
            raise ModelError(why)

    def missing_for(self, spec: str) -> str | None:
        """Say what a model waits for before it can answer; None where nothing is known.

        A server on this machine is asked whether it is there.
        """
        if self._is_replayed:
            return None
        return self.bridge.run(lambda: missing_for(spec, os.environ))

    @property
    def _is_replayed(self) -> bool:
        """Whether answers may come from a recording, for which nothing is needed."""
        return self.settings().recording in ("replay", "auto")

    def model_in_use(self) -> str:
        """Return the spec of the model that the session asks, or will; raises `ModelError`."""
        if self.opened is None:
            found = glance(self.settings())
            stored = found.model if found else None
            return self.bridge.run(lambda: self._model.resolved(self._model.named() or stored))
        if self._model.is_missing(self.session()):
            self.bridge.run(self._find_again)
        return self.session().model

    def views(self) -> Views:
        """Return the live widgets of the session."""
        session = self.session()
        if self._views is None or self._views.session is not session:
            # anywidget takes a moment to import, and terminals never need it.
            from agent_magics.notebook.views.widgets import Views  # noqa: PLC0415

            self._views = Views(session)
        return self._views

    @property
    def has_switched(self) -> bool:
        """Return whether somebody chose a slot since this process opened the session."""
        return self.opened is not None and self.opened.switches > self._own_switches

    def go_back_to(self, slot: str) -> None:
        """Go to the slot that a cell was asked in before, which nobody chose."""
        session = self.session()
        self.bridge.run(lambda: session.switch_slot(slot))
        self._own_switches += 1

    def made_here(self, slot: str) -> bool:
        """Return whether the cell that runs made this slot before."""
        origin = cell_origin()
        if origin is None or not self.rerun_guard.may_be("slot"):
            return False
        return is_same_cell(maker_of(self.bridge.run(self.stored_state), slot), origin)

    async def stored_state(self) -> SessionState:
        """Read the session as the store has it."""
        assert self.built is not None
        assert self._session is not None
        state = await self.built.storage.load(self._session.session_id)
        assert state is not None
        return state

    def whole_model(self, name: str) -> str:
        """Return the whole spec of a model that a person named, as the settings complete it.

        Raises `ModelError` where no provider answers for it.
        """
        return self.bridge.run(lambda: self._model.resolved(name))

    def slot_names(self) -> tuple[str, ...]:
        """Name the slots, for completion; none while the session isn't open."""
        session = self.opened
        return tuple(slot.slot_id for slot in session.list_slots()) if session else ()

    def mcp_files(self) -> McpFiles:
        """Return the files that name MCP servers, as the settings say now."""
        # they come with the first use
        from agent_magics.tools.mcp_config import (  # noqa: PLC0415
            McpFiles,
            trust_file,
            user_file,
        )

        return McpFiles(
            self.settings().mcp,
            folder=self.folder,
            user_file=user_file(),
            trust_file=trust_file(),
        )

    def greeting(self) -> str:
        """Say in one line which model and session this notebook has; asks no network."""
        found = glance(self.settings())
        stored = found.model if found else None
        named = self._model.named() or stored or self.recording.default_model
        model = model_label(os.environ, named)
        return f"agent_magics · {model} · {session_line(self.settings(), found)} · {GREETING_HELP}"

    async def agent(self) -> Agent:
        """Return the agent, built if need be."""
        if self.built is None:
            # The engine, its store and its providers are heavy: they come with the first use.
            # Not on the loop: an interrupt would wait for them.
            await asyncio.to_thread(_import_engine)
            await asyncio.to_thread(self.live_turns.prepare)
            from agent_magics.notebook.kernel.tools.offered import offer_kernel  # noqa: PLC0415
            from agent_magics.session.builder import AgentBuilder  # noqa: PLC0415
            from agent_magics.tools.mcp import McpTools  # noqa: PLC0415

            settings = self.settings()
            default = await self._model.default()
            builder = AgentBuilder(await self._config(settings, default))
            if default == NO_MODEL:
                builder.register_model_provider(NoModelYet(self._model))
            for provider in providers_for(os.environ):
                builder.register_model_provider(self.recording.wrapped(provider))
            builder.register_approver(self.live_turns)
            offer_kernel(builder, self.shell, self.kernel_access, self.folder)
            said = await add_extensions(builder, self.recording.wrapped)
            self.mcp = McpTools(lambda: self.mcp_files().read())
            builder.register_tool_source(self.mcp)
            builder.register_tool_source(lambda: tools_in(self.shell.user_ns))
            # Off the loop too: it imports the store's engine.
            stores = await asyncio.to_thread(open_stores, settings.store)
            self._store = stores.sessions
            builder.register_memory_storage(stores.memories)
            if settings.reads_skills:
                said += await add_skills(builder, self.folder)
            self.built = await builder.register_session_storage(self._store).build()
            self._news += said
        return self.built

    async def _config(self, settings: Settings, model: str) -> AgentConfig:
        writer = settings.compact_model
        if writer is not None:
            writer = await self._model.resolved(writer)
        return AgentConfig(
            default_model=model,
            compact_model=writer,
            compaction=self._compaction(),
            approval=self.kernel_access().approval,
            context_limit=settings.context_limit,
            memory_extraction=self.remembers(),
            max_cost_per_turn=settings.max_cost_per_turn,
            max_cost_per_session=settings.max_cost_per_session,
            prices=settings.prices,
            models=settings.models,
        )

    @property
    def store(self) -> str:
        """The path or URL of the ledger, as the settings say now."""
        return self.settings().store

    @property
    def session_here(self) -> str | None:
        """The id of the session that this notebook uses, open or not; None: it has none yet."""
        used = self.opened or glance(self.settings())
        return None if used is None else used.session_id

    def notebooks(self) -> dict[str, str]:
        """Return which notebook used each session last, by session id."""
        return open_catalog(self.settings().store).notebooks()

    async def move(
        self, session_id: str, name: str, *, take: bool = False, readonly: bool = False
    ) -> Session:
        """Leave the session and use another one here; raises as `Agent.resume_session`.

        `name` is how the person calls it.
        """
        agent = await self.agent()
        await self._leave()
        try:
            self._session = await agent.resume_session(session_id, take=take, readonly=readonly)
        except SessionLocked as error:
            raise SessionLocked(name, error.holder) from None
        await self._bind(NotebookKeys.here(None), self._session)
        self._is_elsewhere = False
        self._own_switches = 0
        await self._apply_model(self._session)
        return self._session

    def choose_model(self, spec: str) -> str:
        """Use a model from now on, also where none was found before; give its whole spec."""
        self.session()

        async def choose() -> str:
            whole = await self._model.resolved(spec)
            session = await self._opened()
            await session.set_model(whole)
            self._model.chosen(session)
            return whole

        return self.bridge.run(choose)

    def move_elsewhere(self) -> None:
        """Close the session: another one or another store is named; the next use says which."""
        self._is_elsewhere = True
        self.forget()

    def forget(self, *, stays: bool = False) -> None:
        """Close the session and drop what was built: settings have changed, or we are unloaded.

        `stays`: the same session is opened again at the next use, also where nothing binds it here.
        """
        if stays and self.opened and not self.opened.is_readonly:
            self._left = self.opened.session_id
        elif not stays:
            self._left = None
        if self.built is not None:
            self.bridge.run(self._shut_down)

    async def _opened(self) -> Session:
        session = self.opened or await self._open()
        if self._model.is_changed():
            await self._apply_model(session)
        return session

    async def _open(self) -> Session:
        place = NotebookKeys.here(self.settings().session)
        line = (
            session_line(self.settings(), glance(self.settings())) if self._is_elsewhere else None
        )
        agent = await self.agent()
        session = await self._resumed(agent, place)
        if session is None:
            default = agent.config.default_model
            # A model that was merely found is not stored: what is there today need not be after a
            # restart.
            is_kept = self._model.named() is not None and default != NO_MODEL
            session = await agent.new_session(
                SessionConfig(
                    session_id=place.named,
                    title=place.title,
                    model_id=default if is_kept else None,
                )
            )
        try:
            await self._bind(place, session)
            await self._apply_model(session)
        except BaseException:  # interrupted, too: what isn't bound would not be found again
            await session.close()
            raise
        if line:
            self._news.insert(0, line)
        self._is_elsewhere = False
        self._own_switches = 0
        self._left = None
        self._session = session
        return session

    async def _apply_model(self, session: Session) -> None:
        line = await self._model.apply(session)
        if line:
            self._news.append(line)

    async def _find_again(self) -> None:
        """Take in a model that is there by now; raises `ModelError` where there still is none."""
        await self._model.find()
        if self._model.named() is None:
            self._left = self.opened.session_id if self.opened else None
            await self._shut_down()  # what is built next has it as its default
        else:
            await self._apply_model(await self._opened())

    async def _resumed(self, agent: Agent, place: NotebookKeys) -> Session | None:
        assert self._store is not None
        # The session that a changed setting closed goes before what the place says: the person
        # never left it.
        names = [self._left]
        names += [place.named] if place.named else [await self._store.bound(k) for k in place.keys]
        for name in filter(None, names):
            try:
                return await agent.resume_session(name)
            # Deleted in another kernel; the next key may know one.
            except SessionNotFound:
                continue
            except SessionLocked as error:
                raise SessionLocked(await _shown_name(agent, name), error.holder) from None
        return None

    async def _bind(self, place: NotebookKeys, session: Session) -> None:
        if self._store is not None and not session.is_readonly:
            for key in place.keys:
                await self._store.bind(key, session.session_id)

    async def _leave(self, *, force: bool = False) -> None:
        if self._session is not None:
            await self._session.close(force=force)  # which ends its views
            self._session = self._views = None

    async def _shut_down(self) -> None:
        await self._leave(force=True)  # it ends within 2 s, and no plugin may keep it
        agent, store = self.built, self._store
        self.built = self._store = None
        if agent is not None:
            await agent.shutdown(force=True)
        if store is not None:
            await store.aclose()


async def _shown_name(agent: Agent, session_id: str) -> str:
    """Name a session by its title, as people know it; by its id where others have that title."""
    titles = {each.session_id: each.title for each in await agent.find_sessions("")}
    title = titles.get(session_id)
    return title if title and list(titles.values()).count(title) == 1 else session_id


def _import_engine() -> None:
    for name in _ENGINE:
        import_module(name)
