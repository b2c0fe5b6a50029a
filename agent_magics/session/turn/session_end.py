"""The end of an open session: its work is stopped, its plugins hear of it, its lease goes back."""

from __future__ import annotations

import asyncio
import logging

from agent_magics.core.errors import AgentError, InputValidation, said_by
from agent_magics.core.hooks import SessionEnding
from agent_magics.session.extensions.hooks import called_from_hook
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.turn.session_turns import SessionTurns

FORCED_HOOKS_S = 1.4
_log = logging.getLogger("agent_magics.session")


class SessionEnd:
    """Closes one session, once."""

    def __init__(self, open_session: OpenSession, turns: SessionTurns) -> None:
        self._open_session = open_session
        self._lifetime = open_session.lifetime
        self._turns = turns
        self._closing = asyncio.Lock()

    async def close(self, *, force: bool) -> None:
        """Stop what runs, wait for its record, tell the plugins, release the lease.

        A plugin's abort raises and leaves the session open, unless `force`.
        """
        if called_from_hook():
            raise InputValidation(
                "A plugin's hook can't close the session that waits for it; answer Abort to stop"
                " what is about to happen, or close the session afterwards."
            )
        if force:  # at once, even while a polite close hangs in a plugin
            await self._close(force=True)
            return
        async with self._closing:
            await self._close(force=False)

    async def _close(self, *, force: bool) -> None:
        if self._lifetime.is_closed:
            return
        clock = self._open_session.parts.clock
        began_s = clock.monotonic()
        self._lifetime.is_closing = True
        try:
            await self._turns.stop_all()
            # Stopping and plugins share one allowance: together they must stay within a kernel's 2
            # seconds.
            left_s = max(0.1, FORCED_HOOKS_S - (clock.monotonic() - began_s))
            await self._fire_end(patience_s=left_s if force else None)
        except BaseException:
            self._lifetime.is_closing = self._lifetime.is_closed
            raise
        try:
            if not force:
                await self._remember()
        finally:
            await self._release()

    async def _fire_end(self, patience_s: float | None) -> None:
        """Fire the hook of the end; None: plugins may take their time, and say no."""
        if self._open_session.recorder.is_readonly:  # it goes on where it is written
            return
        hooks = self._open_session.hooks()
        ending = SessionEnding(message_count=self._open_session.loaded.row.message_count)
        if patience_s is None:
            await hooks.fire(ending)
            return
        try:
            await asyncio.wait_for(hooks.fire(ending), patience_s)
        except (AgentError, TimeoutError) as error:
            _log.warning("a plugin could not keep a session open: %s", said_by(error))

    async def _remember(self) -> None:
        open_session = self._open_session
        if open_session.remembering and not open_session.recorder.is_readonly:
            slot = open_session.loaded.slot(None)
            await open_session.remembering.at_close(lambda: open_session.models.memory_writer(slot))

    async def _release(self) -> None:
        if self._lifetime.is_closed:  # by force, meanwhile
            return
        self._lifetime.is_closed = True
        self._open_session.parts.memory.detach()
        self._open_session.following.end()
        await self._open_session.recorder.release()
