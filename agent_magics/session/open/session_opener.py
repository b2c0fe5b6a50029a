"""How a session comes to be open: made anew, or taken up as it was stored."""

from __future__ import annotations

from contextlib import suppress

from agent_magics.core.config import SessionConfig
from agent_magics.core.errors import AgentError, InputValidation, SessionNotFound
from agent_magics.core.hooks import SessionStarting
from agent_magics.core.money import KnownPrices
from agent_magics.core.ports import Lease, SessionState, SessionStorage
from agent_magics.providers.prices import ListedPrices
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.open.first_change import first_change
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.open.recovery import close_left_open, log_broken_checkpoints
from agent_magics.session.parts import AgentParts
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder


class SessionOpener:
    """Opens sessions from the agent's storage. A failed opening gives its lease back."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._storage = parts.storage

    async def make(self, session_id: str, wanted: SessionConfig) -> OpenSession:
        """Make a session; where that fails, nothing is left behind."""
        model = wanted.model_id or self._parts.config.default_model
        await self._hooks(session_id).fire(SessionStarting(model_id=model))
        # What was there before is never deleted.
        was_there = await self._storage.load(session_id) is not None
        lease = await self._storage.acquire(session_id, self._parts.owner(), create=True)
        try:
            recorder = self._recorder(lease, _unused(await load_session(self._storage, session_id)))
            await recorder.commit(first_change(recorder, self._parts, wanted))
            return await self._assemble(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await self._storage.release(lease)
            if not was_there:
                with suppress(AgentError):  # what went wrong before is what is told
                    await self._storage.delete_session(session_id)
            raise

    async def resume(self, session_id: str, *, take: bool) -> OpenSession:
        """Take up a stored session, and close what a process that ended left open in it."""
        # The lease before the load: events that the old owner wrote in between would be missing
        # from our view.
        lease = await self._storage.acquire(session_id, self._parts.owner(), take=take)
        try:
            recorder = self._recorder(lease, await load_session(self._storage, session_id))
            if not recorder.loaded.slots:  # its maker ended between the lease and the first write
                await recorder.commit(first_change(recorder, self._parts, SessionConfig()))
            await close_left_open(recorder)
            return await self._assemble(recorder)
        except BaseException:  # set right whatever ended it, and raised again
            await self._storage.release(lease)
            raise

    async def look_at(self, session_id: str) -> OpenSession:
        """Open a stored session without the right to write it."""
        state = await load_session(self._storage, session_id)
        recorder = self._recorder(Lease(session_id=session_id, epoch=-1), state)
        recorder.is_readonly = True
        recorder.readonly_because = "it was opened here to look at only"
        return await self._assemble(recorder)

    async def _assemble(self, recorder: Recorder) -> OpenSession:
        log_broken_checkpoints(recorder.loaded)
        open_session = OpenSession.of(self._parts, recorder)
        if open_session.remembering is not None:
            await open_session.remembering.open()
        return open_session

    def _hooks(self, session_id: str) -> HookScope:
        return HookScope(
            registry=self._parts.plugins.hooks, clock=self._parts.clock, session_id=session_id
        )

    def _recorder(self, lease: Lease, state: SessionState) -> Recorder:
        prices = KnownPrices(self._parts.config.prices, ListedPrices())
        return Recorder(self._storage, lease, LoadedSession(state), self._parts.clock, prices)


async def load_session(storage: SessionStorage, session_id: str) -> SessionState:
    """Load a session from a store, or raise `SessionNotFound`."""
    state = await storage.load(session_id)
    if state is None:
        raise SessionNotFound(session_id)
    return state


def _unused(state: SessionState) -> SessionState:
    if state.events:
        raise InputValidation(
            f'There is already a session "{state.row.session_id}"; resume it, or choose another id.'
        )
    return state
