"""The one session of a notebook: which one it is, opened at first use, closed with the extension.

Which (docs/decisions.md#46): the one that is named, else the one that this Jupyter kernel or this
notebook used last, else a new one; with nobody there always a new one, unless it is named. Which
model it asks is `notebook_model`'s affair, how its agent is built `notebook_agent`'s, and what
cells need beside it stands in `notebook_cells`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.config import SessionConfig
from agent_magics.core.errors import SessionLocked, SessionNotFound
from agent_magics.core.ports import SessionState
from agent_magics.notebook.binding.model_choice import ModelChoice
from agent_magics.notebook.binding.notebook_agent import NotebookAgent
from agent_magics.notebook.binding.notebook_cells import NotebookCells
from agent_magics.notebook.binding.notebook_keys import NotebookKeys, glance, session_line
from agent_magics.notebook.binding.notebook_settings import NotebookSettings
from agent_magics.notebook.binding.rerun import is_same_cell, maker_of
from agent_magics.notebook.kernel.bridge import LoopBridge, cell_origin
from agent_magics.notebook.kernel.printing import say
from agent_magics.settings import NO_MODEL, model_label

if TYPE_CHECKING:  # heavy: they come with the first use
    from agent_magics.notebook.views.widgets import Views
    from agent_magics.session.agent import Agent
    from agent_magics.session.memory.agent_memory import AgentMemory
    from agent_magics.session.session import Session

GREETING_HELP = "%agent? for help"


class NotebookSession:
    """Holds the session that the magics of one shell use.

    `cells`: what its cells need beside it, `model`: which model is named or found, `agent`: its
    agent, built when it is needed.
    """

    def __init__(
        self, shell: InteractiveShell, bridge: LoopBridge, settings: NotebookSettings
    ) -> None:
        self.shell = shell
        self.bridge = bridge
        self.settings = settings
        self.cells = NotebookCells(shell, bridge, settings)
        recording = self.cells.recording
        self.model = ModelChoice(lambda: settings.read().model, recording.model_for)
        self.agent = NotebookAgent(
            shell,
            settings,
            model=self.model,
            recording=recording,
            live_turns=self.cells.live_turns,
        )
        self._session: Session | None = None
        self._views: Views | None = None
        self._left: str | None = None
        self._own_switches = 0
        self._is_elsewhere = False

    @property
    def opened(self) -> Session | None:
        """The session if it is open; reading this opens nothing."""
        return None if self._session is None or self._session.is_closed else self._session

    def session(self) -> Session:
        """Return the session, opened if need be, with the model that is named now.

        What came of changed settings is said, once. Call it on the main thread.
        """
        session = self.opened
        if session is None or self.model.is_changed():
            session = self.bridge.run(self._opened)
        for line in self.agent.news:
            say(line)
        self.agent.news.clear()
        return session

    def lasting(self) -> AgentMemory:
        """Return what lasts across sessions; the session is opened if need be."""
        self.session()
        assert self.agent.built is not None
        return self.agent.built.memory

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
        if origin is None or not self.cells.rerun_guard.may_be("slot"):
            return False
        return is_same_cell(maker_of(self.bridge.run(self.stored_state), slot), origin)

    async def stored_state(self) -> SessionState:
        """Read the session as the store has it."""
        assert self.agent.built is not None
        assert self._session is not None
        state = await self.agent.built.storage.load(self._session.session_id)
        assert state is not None
        return state

    def slot_names(self) -> tuple[str, ...]:
        """Name the slots, for completion; none while the session isn't open."""
        session = self.opened
        return tuple(slot.slot_id for slot in session.list_slots()) if session else ()

    def greeting(self) -> str:
        """Say in one line which model and session this notebook has; asks no network."""
        found = glance(self.settings.read())
        stored = found.model if found else None
        named = self.model.named() or stored or self.cells.recording.default_model
        model = model_label(os.environ, named)
        where = session_line(self.settings.read(), found)
        return f"agent_magics · {model} · {where} · {GREETING_HELP}"

    @property
    def store(self) -> str:
        """The path or URL of the ledger, as the settings say now."""
        return self.settings.read().store

    @property
    def session_here(self) -> str | None:
        """The id of the session that this notebook uses, open or not; None: it has none yet."""
        used = self.opened or glance(self.settings.read())
        return None if used is None else used.session_id

    async def move(
        self, session_id: str, name: str, *, take: bool = False, readonly: bool = False
    ) -> Session:
        """Leave the session and use another one here; raises as `Agent.resume_session`.

        `name` is how the person calls it.
        """
        agent = await self.agent.get()
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
        if self.agent.built is not None:
            self.bridge.run(self._shut_down)

    async def _opened(self) -> Session:
        session = self.opened or await self._open()
        if self.model.is_changed():
            await self._apply_model(session)
        return session

    async def _open(self) -> Session:
        settings = self.settings.read()
        place = NotebookKeys.here(settings.session)
        line = (
            session_line(self.settings.read(), glance(self.settings.read()))
            if self._is_elsewhere
            else None
        )
        agent = await self.agent.get()
        session = await self._resumed(agent, place)
        if session is None:
            default = agent.config.default_model
            # A model that was merely found is not stored: what is there today need not be after a
            # restart.
            is_kept = self.model.named() is not None and default != NO_MODEL
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
            self.agent.news.insert(0, line)
        self._is_elsewhere = False
        self._own_switches = 0
        self._left = None
        self._session = session
        return session

    async def _apply_model(self, session: Session) -> None:
        line = await self.model.apply(session)
        if line:
            self.agent.news.append(line)

    def find_model_again(self) -> None:
        """Take in a model that is there by now; raise `ModelError` where there still is none."""
        self.bridge.run(self._find_again)

    async def _find_again(self) -> None:
        await self.model.find()
        if self.model.named() is None:
            self._left = self.opened.session_id if self.opened else None
            await self._shut_down()  # what is built next has it as its default
        else:
            await self._apply_model(await self._opened())

    async def _resumed(self, agent: Agent, place: NotebookKeys) -> Session | None:
        assert self.agent.store is not None
        # The session that a changed setting closed goes before what the place says: the person
        # never left it.
        names = [self._left]
        names += (
            [place.named] if place.named else [await self.agent.store.bound(k) for k in place.keys]
        )
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
        if self.agent.store is not None and not session.is_readonly:
            for key in place.keys:
                await self.agent.store.bind(key, session.session_id)

    async def _leave(self, *, force: bool = False) -> None:
        if self._session is not None:
            await self._session.close(force=force)  # which ends its views
            self._session = self._views = None

    async def _shut_down(self) -> None:
        await self._leave(force=True)  # it ends within 2 s, and no plugin may keep it
        await self.agent.shut_down()


async def _shown_name(agent: Agent, session_id: str) -> str:
    """Name a session by its title, as people know it; by its id where others have that title."""
    titles = {each.session_id: each.title for each in await agent.find_sessions("")}
    title = titles.get(session_id)
    return title if title and list(titles.values()).count(title) == 1 else session_id
