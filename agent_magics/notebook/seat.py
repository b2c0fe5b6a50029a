"""The one session of a notebook: which one it is, opened at first use, closed with the extension.

Which (decision 46): the one that is named, else the one that this Jupyter kernel or this notebook
used last, else a new one; with nobody there always a new one, unless it is named.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.config import AgentConfig, CompactionConfig, SessionConfig
from agent_magics.core.errors import SessionNotFound
from agent_magics.core.messages import Value
from agent_magics.core.ports import SessionState
from agent_magics.ledger.peek import peek
from agent_magics.ledger.place import path_of
from agent_magics.notebook.bridge import (
    Bridge,
    cell_origin,
    kernel_id,
    notebook_path,
    somebody_there,
)
from agent_magics.notebook.host import execution_token
from agent_magics.notebook.rerun import is_same_cell, maker_of
from agent_magics.notebook.tools import tools_in
from agent_magics.settings import Settings, model_label, providers_for, resolve_model

if TYPE_CHECKING:  # heavy: they come with the first use
    from agent_magics.ledger.store import SqlStore
    from agent_magics.notebook.widgets import Views
    from agent_magics.session.agent import Agent
    from agent_magics.session.session import Session

GREETING_HELP = "%agent? for help"
_ENGINE = (
    "agent_magics.ledger.store",
    "agent_magics.providers.openai",
    "agent_magics.session.agent",
)


class Place(Value):
    """Where this kernel may find its session: the name it was given, else what it is bound to."""

    named: str | None
    keys: tuple[str, ...]
    title: str | None

    @classmethod
    def here(cls, named: str | None) -> Place:
        """Read the place from the kernel and its server."""
        path = notebook_path()
        title = PurePath(path).stem if path else None
        if named:
            return cls(named=named, keys=(f"session:{named}",), title=named)
        if not somebody_there():
            return cls(named=None, keys=(), title=title)
        kernel = kernel_id()
        keys = [f"kernel:{kernel}"] if kernel else []
        keys += [f"notebook:{path}"] if path else []
        return cls(named=None, keys=tuple(keys), title=title)


class Seat:
    """Holds the session that the magics of one shell use.

    `has_switched`: this process has gone to another slot since it opened the session.
    `seen_models`: the specs that were listed last.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        bridge: Bridge,
        settings: Callable[[], Settings],
        *,
        rerun: Callable[[], str],
        compaction: Callable[[], CompactionConfig],
    ) -> None:
        self.shell = shell
        self.bridge = bridge
        self.has_switched = False
        self.seen_models: tuple[str, ...] = ()
        self._settings = settings
        self._rerun = rerun
        self._compaction = compaction
        self._left: str | None = None
        self._went_back_in: str | None = None
        self._chosen: str | None = None
        self._wants_model = False
        self._agent: Agent | None = None
        self._session: Session | None = None
        self._store: SqlStore | None = None
        self._views: Views | None = None

    @property
    def opened(self) -> Session | None:
        """The session if it is open; reading this opens nothing."""
        return None if self._session is None or self._session.is_closed else self._session

    def session(self) -> Session:
        """Give the session, opened if need be. Call it on the main thread."""
        return self.opened or self.bridge.run(self._opened)

    def views(self) -> Views:
        """Give the live widgets of the session."""
        if self._views is None:
            # anywidget takes a moment to import, and terminals never need it.
            from agent_magics.notebook.widgets import Views  # noqa: PLC0415

            self._views = Views(self.session(), on_switch=lambda _slot: self.note_switch())
        return self._views

    def note_switch(self) -> None:
        """Remember that somebody chose a slot in this process."""
        self.has_switched = True

    def may_go_back(self) -> bool:
        """Tell whether this is the cell's first question, so that its earlier turns may go."""
        here = execution_token()
        is_first = here != self._went_back_in
        self._went_back_in = here
        return is_first and self._rerun() == "rewind"

    def made_here(self, slot: str) -> bool:
        """Tell whether the cell that runs made this slot before (D 52)."""
        origin = cell_origin()
        if origin is None:
            return False
        return is_same_cell(maker_of(self.bridge.run(self.stored_state), slot), origin)

    async def stored_state(self) -> SessionState:
        """Read the session as the store has it."""
        assert self._agent is not None
        assert self._session is not None
        state = await self._agent.storage.load(self._session.session_id)
        assert state is not None
        return state

    def whole_model(self, name: str) -> str:
        """Give the whole spec of a model that a person named, as the settings complete it.

        Raises `ModelError` where no provider answers for it.
        """
        return self.bridge.run(lambda: resolve_model(name, environ=os.environ)).spec

    def slot_names(self) -> tuple[str, ...]:
        """Name the slots, for completion; none while the session isn't open."""
        session = self.opened
        return tuple(slot.slot_id for slot in session.list_slots()) if session else ()

    def model_names(self) -> tuple[str, ...]:
        """Name the models that `%agent model` listed last, for completion."""
        return self.seen_models

    def greeting(self) -> str:
        """Say in one line which model and session this notebook has; asks no network (D 59)."""
        settings = self._settings()
        place = Place.here(settings.session)
        found = peek(path_of(settings.store), place.keys)
        if found is None:
            name = place.title
            session = f'session "{name}" new' if name else "new session"
        else:
            counts = f"{_counted(found.slots, 'slot')}, {_counted(found.turns, 'turn')}"
            session = (
                f'session "{found.title or found.session_id}" resumed: {counts},'
                f" in {found.current_slot}"
            )
        model = model_label(os.environ, settings.model)
        return f"agent_magics · {model} · {session} · {GREETING_HELP}"

    async def agent(self) -> Agent:
        """Give the agent, built if need be."""
        if self._agent is None:
            # The engine, its store and its providers are heavy: they come with the first use.
            # Not on the loop: an interrupt would wait for them.
            await asyncio.to_thread(_import_engine)
            from agent_magics.ledger.store import SqlStore  # noqa: PLC0415
            from agent_magics.session.agent import AgentBuilder  # noqa: PLC0415

            settings = self._settings()
            choice = await resolve_model(settings.model or self._chosen, environ=os.environ)
            builder = AgentBuilder(await self._config(settings, choice.spec))
            for provider in providers_for(os.environ):
                builder.register_model_provider(provider)
            builder.register_tool_source(lambda: tools_in(self.shell.user_ns))
            self._store = SqlStore(settings.store)
            self._agent = await builder.register_session_storage(self._store).build()
        return self._agent

    async def _config(self, settings: Settings, model: str) -> AgentConfig:
        writer = settings.compact_model
        if writer is not None:
            writer = (await resolve_model(writer, environ=os.environ)).spec
        return AgentConfig(
            default_model=model,
            compact_model=writer,
            compaction=self._compaction(),
            context_limit=settings.context_limit,
        )

    async def move(self, session_id: str, *, take: bool = False, readonly: bool = False) -> Session:
        """Leave the session and use another one here; raises as `Agent.resume_session`."""
        agent = await self.agent()
        await self._leave()
        self._session = await agent.resume_session(session_id, take=take, readonly=readonly)
        await self._bind(Place.here(None), self._session)
        return self._session

    def choose_model(self, spec: str) -> str:
        """Use a model from now on, also where none was found before; give its whole spec."""
        self._chosen = spec
        self.session()

        async def choose() -> str:
            choice = await resolve_model(spec, environ=os.environ)
            session = await self._opened()
            await session.set_model(choice.spec)
            return choice.spec

        return self.bridge.run(choose)

    def want_model(self) -> None:
        """Remember that the setting was changed here: it holds for the session that opens next."""
        self._wants_model = True

    def forget(self, *, stays: bool = False) -> None:
        """Close the session and drop what was built: settings have changed, or we are unloaded.

        `stays`: the same session is opened again at the next use, also where nothing binds it here.
        """
        if stays and self.opened and not self.opened.is_readonly:
            self._left = self.opened.session_id
        elif not stays:
            self._left = None
        if self._agent is not None:
            self.bridge.run(self._shut_down)

    async def _opened(self) -> Session:
        return self.opened or await self._open()

    async def _open(self) -> Session:
        place = Place.here(self._settings().session)
        agent = await self.agent()
        session = await self._resumed(agent, place)
        if session is None:
            session = await agent.new_session(
                SessionConfig(session_id=place.named, title=place.title)
            )
        try:
            if self._wants_model:
                await session.set_model(agent.config.default_model)
            await self._bind(place, session)
        except BaseException:  # interrupted, too: what isn't bound would not be found again
            await session.close()
            raise
        self._wants_model = self.has_switched = False
        self._left = None
        self._session = session
        return session

    async def _resumed(self, agent: Agent, place: Place) -> Session | None:
        assert self._store is not None
        names = [self._left]
        names += [place.named] if place.named else [await self._store.bound(k) for k in place.keys]
        for name in filter(None, names):
            try:
                return await agent.resume_session(name)
            except SessionNotFound:
                continue
        return None

    async def _bind(self, place: Place, session: Session) -> None:
        if self._store is not None and not session.is_readonly:
            for key in place.keys:
                await self._store.bind(key, session.session_id)

    async def _leave(self) -> None:
        if self._views is not None:
            self._views.close()
            self._views = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _shut_down(self) -> None:
        await self._leave()
        agent, store = self._agent, self._store
        self._agent = self._store = None
        if agent is not None:
            await agent.shutdown()
        if store is not None:
            await store.aclose()


def _import_engine() -> None:
    for name in _ENGINE:
        import_module(name)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
