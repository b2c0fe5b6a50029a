"""An agent: what was registered, frozen, and the one session that is open."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import (
    AgentError,
    AgentShutdown,
    InputValidation,
    SessionBusy,
    SessionNotFound,
    StorageError,
    said_by,
)
from agent_magics.core.hooks import PluginDescriptor, SessionStarting
from agent_magics.core.money import KnownPrices
from agent_magics.core.ports import (
    Change,
    Lease,
    Owner,
    Restoring,
    SessionPage,
    SessionState,
    SessionStorage,
    SessionSummary,
)
from agent_magics.core.skills import Skill
from agent_magics.dataframes.bundle_files import export_state, import_state, renamed
from agent_magics.providers.prices import ListedPrices
from agent_magics.session.extensions.hooks import HookScope, called_from_hook
from agent_magics.session.first_change import first_change
from agent_magics.session.memory.agent_memory import AgentMemory
from agent_magics.session.parts import AgentParts
from agent_magics.session.session import Session, checked_title
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.recovery import set_right, tell_broken_checkpoints
from agent_magics.session.turn.open_session import OpenSession
from agent_magics.threads.loop import on_session_loop

Life = Literal["running", "shutting down", "shut down"]
FORCED_PATIENCE_S = 0.5
GIVING_WAY_S = 0.1  # to force
_in_its_end: ContextVar[Agent | None] = ContextVar("agent_magics_shutdown", default=None)
_log = logging.getLogger("agent_magics.session")


class Agent:
    """Opens one session at a time. Made by `AgentBuilder.build`.

    `async with` shuts it down at the end.
    """

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._session: Session | None = None
        self._is_opening = False
        self._life: Life = "running"
        self._end: asyncio.Future[None] | None = None  # of the shutdown under way
        self._ending: asyncio.Task[None] | None = None  # what brings it about
        self._is_forced = False
        self._waiting = 0

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

    @on_session_loop
    async def new_session(self, config: SessionConfig | None = None) -> Session:
        """Make a session with its slot `default`.

        Raises `SessionBusy` (one is open), `AgentShutdown`, `ModelNotSupported`, `StorageError`,
        `PluginAborted`, and `SessionLocked` where the id is in use elsewhere; nothing is left
        behind then.
        """
        wanted = config or SessionConfig()
        if wanted.model_id is not None:
            # Before anything is stored: a session of a model that doesn't exist would have to be
            # deleted again.
            self._parts.registry.resolve(wanted.model_id)
        session_id = wanted.session_id or self._parts.ids.new("session")
        return await self._opened(session_id, lambda: self._make(session_id, wanted))

    @on_session_loop
    async def resume_session(
        self, session_id: str, *, take: bool = False, readonly: bool = False
    ) -> Session:
        """Open a stored session as it was; no model is called.

        `take`: from another kernel that holds it. `readonly`: only to look at. Raises
        `SessionNotFound`, `SessionLocked`, `SessionBusy`, `AgentShutdown`, `StorageError`.
        """
        self._check_stored()
        return await self._opened(
            session_id, lambda: self._resume(session_id, take=take, readonly=readonly)
        )

    @on_session_loop
    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """List stored sessions, newest first."""
        return await self._check_stored().list_sessions(cursor, limit)

    @on_session_loop
    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        """Find sessions by the beginning of their id or a part of their title."""
        return await self._check_stored().find_sessions(query)

    @on_session_loop
    async def delete_session(self, session_id: str) -> None:
        """Delete a session and all its events. Raises `SessionBusy` where it is the open one."""
        storage = self._check_stored()
        if self._open() is not None and self._open_id() == session_id:
            raise SessionBusy(session_id)
        await storage.delete_session(session_id)

    @on_session_loop
    async def rename_session(self, session_id: str, title: str) -> None:
        """Give a session another title, the open one or a stored one.

        Raises `SessionNotFound`, `SessionLocked` while another kernel has it open,
        `InputValidation` on a blank title.
        """
        storage, session = self._check_stored(), self._open()
        if session is not None and session.session_id == session_id:
            await session.set_title(title)
            return
        wanted = checked_title(title)
        # A title is a write like any other: another kernel may have the session open.
        lease = await storage.acquire(session_id, self._owner())
        try:
            await storage.commit(lease, Change(title=wanted))
        finally:
            await storage.release(lease)

    @on_session_loop
    async def export_session(
        self, session_id: str, path: Path | str, *, overwrites: bool = False
    ) -> SessionState:
        """Write a stored session to a file, whole, and give what is in it.

        `path` ends in `.jsonl`, or `.parquet` (needs pyarrow). Raises `SessionNotFound`,
        `InputValidation` (the name, or a file that is there), `StorageError` (the file).
        """
        self._check_stored()
        state = await self._loaded(session_id)
        # A large session takes seconds to write, and the loop serves running turns meanwhile.
        await asyncio.to_thread(export_state, state, Path(path), overwrites=overwrites)
        return state

    @on_session_loop
    async def import_session(self, path: Path | str) -> SessionState:
        """Take a session in from such a file, under a new id where its own is used; give it.

        It resumes as it was, but tools ask again that ran without asking. Raises `InputValidation`
        where the file can't be used; nothing of it is stored then.
        """
        storage = self._check_stored()
        if not isinstance(storage, Restoring):
            raise StorageError("The session storage that is registered here can't import.")
        state = await asyncio.to_thread(import_state, Path(path))
        # The original may be here too; both then live on.
        if await storage.load(state.row.session_id) is not None:
            state = renamed(state, self._parts.ids.new("session"))
        await storage.restore(state)
        return state

    @on_session_loop
    async def models(self) -> tuple[ModelInfo, ...]:
        """List the models that the registered providers tell of."""
        found: list[ModelInfo] = []
        for provider in self._parts.registry.all:
            found.extend(await provider.models())
        return tuple(found)

    @on_session_loop
    async def shutdown(self, *, force: bool = False) -> None:
        """Close the open session, then the plugins and providers; doing it twice does nothing.

        Whoever asks meanwhile waits for the same end (what itself is being ended doesn't wait).
        Raises `PluginAborted` where a plugin keeps the session open: then the agent goes on. With
        `force` no plugin can, and none is waited for long: the kernel ends; it
        takes over what goes on without. A cancel ends it where nobody else waits; once the session
        is closed the agent opens no other, and a later call finishes.
        """
        if self._life == "shut down" or (self._end and self._is_within()):
            return
        if self._end is None or (force and not self._is_forced):
            self._begin_end(force=force)
        assert self._end is not None
        assert self._ending is not None
        end = self._end
        self._waiting += 1
        try:
            await asyncio.shield(end)
        except asyncio.CancelledError:
            # The last one who waits takes the shutdown along; others would otherwise find their own
            # cancelled by a stranger.
            if self._waiting == 1 and not end.done():
                self._ending.cancel()
                await asyncio.wait([end])
            raise
        finally:
            self._waiting -= 1

    def _is_within(self) -> bool:
        """Return whether the caller is something that the shutdown waits for."""
        return called_from_hook() or _in_its_end.get() is self

    def _begin_end(self, *, force: bool) -> None:
        self._end = self._end or asyncio.get_running_loop().create_future()
        before, self._life, self._is_forced = self._ending, "shutting down", force
        self._ending = asyncio.create_task(self._shut_down(before, force=force))
        self._ending.add_done_callback(self._tell_end)

    def _tell_end(self, ending: asyncio.Task[None]) -> None:
        if ending is not self._ending:  # another one took over
            if not ending.cancelled():
                ending.exception()  # looked at, or asyncio would print it
            return
        end, self._end, self._ending = self._end, None, None
        assert end is not None
        if ending.cancelled():
            end.cancel()
        elif error := ending.exception():
            end.set_exception(error)
        else:
            end.set_result(None)

    async def _shut_down(self, before: asyncio.Task[None] | None, *, force: bool) -> None:
        _in_its_end.set(self)
        if before is not None:
            before.cancel()
            # By force: the polite shutdown may hang in a plugin, and the kernel's time runs.
            await asyncio.wait([before], timeout=GIVING_WAY_S)
        try:
            if force:  # at once: a kernel has 2 s for all of it
                await asyncio.gather(self._close_session(force=True), self._disconnect())
            else:
                await self._close_session(force=False)
        except BaseException:
            # A plugin said no, so the agent goes on; unless a forced shutdown has taken over
            # meanwhile.
            if self._open() is not None and self._ending is asyncio.current_task():
                self._life = "running"
            raise
        patience_s = FORCED_PATIENCE_S if force else None
        if not force:
            await self._disconnect()
        await _ended([self._parts.plugins.shutdown()], patience_s)
        await _ended([each.aclose() for each in self._parts.registry.all], patience_s)
        self._life = "shut down"

    async def _close_session(self, *, force: bool) -> None:
        if self._session is not None:
            await self._session.close(force=force, ends_agent=not force)

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
        # Reserved before the first await: two openings at once would both find the place free.
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
        # A failed opening leaves nothing behind, but never deletes what was there before it.
        was_there = await storage.load(session_id) is not None
        lease = await storage.acquire(session_id, self._owner(), create=True)
        try:
            recorder = self._recorder(lease, _unused(await self._loaded(session_id)))
            await recorder.commit(first_change(recorder, self._parts, wanted))
            return await self._seated(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await storage.release(lease)
            if not was_there:
                with suppress(AgentError):  # what went wrong before is what is told
                    await storage.delete_session(session_id)
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
        # The lease before the load: events that the old owner wrote in between would be missing
        # from our view.
        lease = await storage.acquire(session_id, self._owner(), take=take)
        try:
            recorder = self._recorder(lease, await self._loaded(session_id))
            if not recorder.loaded.slots:  # its maker ended between the lease and the first write
                await recorder.commit(first_change(recorder, self._parts, SessionConfig()))
            await set_right(recorder)
            return await self._seated(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await storage.release(lease)
            raise

    async def _seated(self, recorder: Recorder) -> Session:
        tell_broken_checkpoints(recorder.loaded)
        open_session = OpenSession(self._parts, recorder)
        if open_session.remembering is not None:
            await open_session.remembering.open()
        return Session(open_session)

    async def _loaded(self, session_id: str) -> SessionState:
        state = await self._parts.storage.load(session_id)
        if state is None:
            raise SessionNotFound(session_id)
        return state

    def _recorder(self, lease: Lease, state: SessionState) -> Recorder:
        parts = self._parts
        prices = KnownPrices(parts.config.prices, ListedPrices())
        return Recorder(parts.storage, lease, LoadedSession(state), parts.clock, prices)

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


def _unused(state: SessionState) -> SessionState:
    if state.events:
        raise InputValidation(
            f'There is already a session "{state.row.session_id}"; resume it, or choose another id.'
        )
    return state
