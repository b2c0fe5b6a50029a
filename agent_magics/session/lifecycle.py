"""The life of an agent: the one session that it has open, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Literal

from agent_magics.core.errors import AgentShutdown, SessionBusy, said_by
from agent_magics.session.extensions.hooks import called_from_hook
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.parts import AgentParts
from agent_magics.session.session import Session

Life = Literal["running", "shutting down", "shut down"]
FORCED_PATIENCE_S = 0.5
GIVING_WAY_S = 0.1  # to force
_in_its_end: ContextVar[AgentLifecycle | None] = ContextVar("agent_magics_shutdown", default=None)
_log = logging.getLogger("agent_magics.session")


class AgentLifecycle:
    """Keeps the one place for an open session, and ends what an agent was built of.

    However many ask for the end, there is one: `_end` is what they wait for, `_ending` the task
    that brings it about. Everything here runs on the session's loop.
    """

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._session: Session | None = None
        self._is_opening = False
        self._life: Life = "running"
        self._end: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_forced = False
        self._waiting = 0

    @property
    def session(self) -> Session | None:
        """The session that is open now."""
        if self._session is not None and self._session.is_closed:
            self._session = None
        return self._session

    def check_alive(self) -> None:
        """Raise `AgentShutdown` once the agent has ended."""
        if self._life == "shut down":
            raise AgentShutdown

    async def open(self, session_id: str, opening: Callable[[], Awaitable[OpenSession]]) -> Session:
        """Reserve the one place, open, and give the place back where that fails.

        Raises `SessionBusy` where it is taken, `AgentShutdown` where the agent ends or has ended.
        """
        if self._life != "running":
            raise AgentShutdown
        if self.session is not None or self._is_opening:
            raise SessionBusy(self.session.session_id if self.session else session_id)
        # Reserved before the first await: two openings at once would both find the place free.
        self._is_opening = True
        try:
            session = Session(await opening())
        finally:
            self._is_opening = False
        if self._life != "running":  # meanwhile
            await session.close(force=True)
            raise AgentShutdown
        self._session = session
        return session

    async def shutdown(self, *, force: bool) -> None:
        """End, once; whoever asks meanwhile waits for the same end."""
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
        self._ending.add_done_callback(self._settle_end)

    def _settle_end(self, ending: asyncio.Task[None]) -> None:
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
            if self.session is not None and self._ending is asyncio.current_task():
                self._life = "running"
            raise
        patience_s = FORCED_PATIENCE_S if force else None
        if not force:
            await self._disconnect()
        await _end_all([self._parts.plugins.shutdown()], patience_s)
        await _end_all([each.aclose() for each in self._parts.registry.all], patience_s)
        self._life = "shut down"

    async def _close_session(self, *, force: bool) -> None:
        if self._session is not None:
            await self._session.close(force=force, ends_agent=not force)

    async def _disconnect(self) -> None:
        await _end_all([live.aclose() for live in self._parts.live], None)


async def _end_all(ending: Sequence[Awaitable[object]], patience_s: float | None) -> None:
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
