"""Sessions in an SQLite file: the public store, each method one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_magics.core.events import AssistantMessage, Draft, LedgerEvent
from agent_magics.core.ports import (
    Change,
    Lease,
    Owner,
    SessionPage,
    SessionState,
    SessionSummary,
)
from agent_magics.ledger.listing import check_limit, check_session_id
from agent_magics.ledger.records import storable
from agent_magics.ledger.sqlite import errors, reading, restoring, writing
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.database import BUSY_TIMEOUT_S, Database
from agent_magics.ledger.sqlite.leases import Leases, first_epoch


class SqlStore:
    """`core.ports.SessionStorage` in an SQLite file; may be used from any event loop.

    `location` is a path or an `sqlite:///` URL. Nothing is opened before the first call.
    `busy_timeout_s`: how long another program's lock is waited for.
    """

    def __init__(self, location: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.database = Database(location, busy_timeout_s=busy_timeout_s)
        self._leases = Leases(self.database)

    @property
    def path(self) -> Path:
        """The file."""
        return self.database.path

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of this store, each one sentence; known once it is open."""
        return self.database.warnings

    async def acquire(
        self, session_id: str, owner: Owner, *, create: bool = False, take: bool = False
    ) -> Lease:
        check_session_id(session_id)

        def work() -> Lease:
            return self._leases.acquire(session_id, owner, create=create, take=take)

        # Cancelled meanwhile, nobody would ever release what was acquired.
        return await self.database.run(work, undo=self._leases.release)

    async def release(self, lease: Lease) -> None:
        await self.database.run(lambda: self._leases.release(lease))

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        return await self.database.on_connection(lambda ledger: self._commit(ledger, lease, change))

    async def save_draft(self, lease: Lease, draft: Draft) -> None:
        await self.database.on_connection(lambda ledger: self._save_draft(ledger, lease, draft))

    async def load(self, session_id: str) -> SessionState | None:
        def work(ledger: LedgerConnection) -> SessionState | None:
            with ledger.read():
                return reading.session_state(ledger, session_id)

        return await self.database.on_connection(work)

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        check_limit(limit)

        def work(ledger: LedgerConnection) -> SessionPage:
            with ledger.read():
                return reading.session_page(ledger, cursor, limit)

        return await self.database.on_connection(work)

    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        def work(ledger: LedgerConnection) -> Sequence[SessionSummary]:
            with ledger.read():
                return reading.matching_sessions(ledger, query)

        return await self.database.on_connection(work)

    async def delete_session(self, session_id: str) -> None:
        await self.database.run(lambda: self._leases.delete_session(session_id))

    async def restore(self, state: SessionState) -> None:
        """Store a whole session with the seqs it has, or nothing of it; nobody holds it then.

        Raises `InputValidation` where there is a session of its id, or on what can't be stored.
        """
        check_session_id(state.row.session_id)

        def work(ledger: LedgerConnection) -> None:
            with ledger.write():
                restoring.restore(ledger, state, first_epoch())

        await self.database.on_connection(work)

    async def held_sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that a living process, this one too, has open."""
        return await self.database.run(self._leases.held_sessions)

    async def bind(self, key: str, session_id: str) -> None:
        """Record the session that a kernel (`kernel:<id>`) or notebook (`notebook:<path>`) uses."""

        def work(ledger: LedgerConnection) -> None:
            with ledger.write():
                writing.bind(ledger.core, key, session_id)

        await self.database.on_connection(work)

    async def bound(self, key: str) -> str | None:
        """Return the session last bound to `key`; None where none is, or it was deleted."""

        def work(ledger: LedgerConnection) -> str | None:
            with ledger.read():
                return reading.bound_session(ledger, key)

        return await self.database.on_connection(work)

    async def aclose(self) -> None:
        """Release every session and close the file; a second time does nothing."""
        await self.database.aclose(first=self._leases.release_all)

    def _commit(
        self, ledger: LedgerConnection, lease: Lease, change: Change
    ) -> tuple[LedgerEvent, ...]:
        # Encoded before the transaction: other writers don't wait for it, and what can't be stored
        # fails before anything is written.
        encoded = [storable(event.payload) for event in change.events]
        with ledger.write(lost=_lost(change)):
            session = self._leases.check(ledger, lease)
            writing.check_generations(ledger.raw, lease.session_id, change.expected_generation)
            written = writing.append(ledger.raw, session, change, encoded)
            writing.write_slots(ledger.core, lease.session_id, change.slots)
            if change.checkpoint is not None:
                writing.write_checkpoints(ledger.core, lease.session_id, [change.checkpoint])
        return written

    def _save_draft(self, ledger: LedgerConnection, lease: Lease, draft: Draft) -> None:
        with ledger.unsynced(), ledger.write():
            self._leases.check(ledger, lease)
            writing.write_draft(ledger.raw, lease.session_id, draft)


def _lost(change: Change) -> str:
    if any(isinstance(event.payload, AssistantMessage) for event in change.events):
        return errors.ANSWER_NOT_RECORDED
    return errors.NOTHING_RECORDED
