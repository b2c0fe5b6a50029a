"""The sessions in an agent's store, while they aren't open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_magics.core.errors import StorageError
from agent_magics.core.ports import Change, Restoring, SessionPage, SessionState, SessionSummary
from agent_magics.dataframes.bundle_files import export_state, import_state, renamed
from agent_magics.session.open.session_opener import load_session
from agent_magics.session.parts import AgentParts
from agent_magics.session.state.title import checked_title


class StoredSessions:
    """Lists, renames, deletes, exports and imports sessions; `Agent` says what each raises."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._storage = parts.storage

    def check_stored(self) -> None:
        """Raise `StorageError` where sessions are kept in memory only."""
        if not self._parts.is_stored:
            raise StorageError("SessionStorage not registered: sessions live in memory here.")

    async def list(self, cursor: str | None, limit: int) -> SessionPage:
        """List sessions, newest first."""
        return await self._storage.list_sessions(cursor, limit)

    async def find(self, query: str) -> Sequence[SessionSummary]:
        """Find sessions by the beginning of their id or a part of their title."""
        return await self._storage.find_sessions(query)

    async def delete(self, session_id: str) -> None:
        """Delete a session and all its events."""
        await self._storage.delete_session(session_id)

    async def rename(self, session_id: str, title: str) -> None:
        """Change a session's title."""
        wanted = checked_title(title)
        # A title is a write like any other: another kernel may have the session open.
        lease = await self._storage.acquire(session_id, self._parts.owner())
        try:
            await self._storage.commit(lease, Change(title=wanted))
        finally:
            await self._storage.release(lease)

    async def export(self, session_id: str, path: Path, *, overwrites: bool) -> SessionState:
        """Write a session to a file, and return what is in it."""
        state = await load_session(self._storage, session_id)
        # A large session takes seconds to write, and the loop serves running turns meanwhile.
        await asyncio.to_thread(export_state, state, path, overwrites=overwrites)
        return state

    async def restore(self, path: Path) -> SessionState:
        """Take a session in from a file, under a new id where its own is used."""
        if not isinstance(self._storage, Restoring):
            raise StorageError("The session storage that is registered here can't import.")
        state = await asyncio.to_thread(import_state, path)
        # The original may be here too; both then live on.
        if await self._storage.load(state.row.session_id) is not None:
            state = renamed(state, self._parts.ids.new("session"))
        await self._storage.restore(state)
        return state
