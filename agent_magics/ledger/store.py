"""The SQL store: sessions in one SQLite file, written durably by one thread of ours.

PostgreSQL will come with the same semantics: what is SQLite's own is in `connection`, `place`,
`lease` and the raw statements of `appends`.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import delete, select, tuple_
from sqlalchemy.dialects.sqlite import insert

from agent_magics.core.errors import SessionLocked, SessionNotFound, StorageError
from agent_magics.core.events import AssistantMessage, Draft, LedgerEvent
from agent_magics.core.ports import (
    Change,
    Lease,
    Owner,
    SessionPage,
    SessionState,
    SessionSummary,
)
from agent_magics.ledger import (
    appends,
    faults,
    listing,
    place,
    reading,
    restoring,
    rows,
    schema,
)
from agent_magics.ledger.connection import HeldConnection, open_ledger
from agent_magics.ledger.lease import Locks
from agent_magics.ledger.listing import check_session_id
from agent_magics.ledger.worker import Worker

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
_FIRST_EPOCHS = 2**31


class SqlStore:
    """`core.ports.SessionStorage` in an SQLite file; may be used from any event loop.

    `location` is a path or an `sqlite:///` URL. Nothing is opened before the first call.
    `busy_timeout_s`: how long another program's lock is waited for.
    """

    def __init__(self, location: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = place.path_of(location)
        self._busy_timeout_s = busy_timeout_s
        self._locks = Locks(self.path, timeout_s=busy_timeout_s)
        self._worker = Worker("agent-magics-ledger")
        self._held: HeldConnection | None = None
        self._is_closed = False
        self._warnings: tuple[str, ...] = ()
        self._pid = os.getpid()
        _watch_forks(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of this store, each one sentence; known once it is open."""
        return self._warnings

    async def acquire(
        self, session_id: str, owner: Owner, *, create: bool = False, take: bool = False
    ) -> Lease:
        check_session_id(session_id)

        def work() -> Lease:
            return self._acquire(session_id, owner, create=create, take=take)

        return await self._run(work, undo=self._release)

    async def release(self, lease: Lease) -> None:
        await self._run(lambda: self._release(lease))

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        return await self._run(lambda: self._commit(lease, change))

    async def save_draft(self, lease: Lease, draft: Draft) -> None:
        await self._run(lambda: self._save_draft(lease, draft))

    async def load(self, session_id: str) -> SessionState | None:
        return await self._run(lambda: self._load(session_id))

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        return await self._run(lambda: self._list(cursor, limit))

    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        return await self._run(lambda: self._find(query))

    async def delete_session(self, session_id: str) -> None:
        await self._run(lambda: self._delete(session_id))

    async def restore(self, state: SessionState) -> None:
        """Take in a whole session with the seqs it has, or nothing of it; nobody holds it then.

        Raises `InputValidation` where there is a session of its id, or on what can't be stored.
        """
        check_session_id(state.row.session_id)
        await self._run(lambda: self._restore(state))

    async def held_sessions(self) -> frozenset[str]:
        """Name the sessions that a living process, this one too, has open."""
        return await self._run(self._held_sessions)

    async def bind(self, key: str, session_id: str) -> None:
        """Remember which session a kernel (`kernel:<id>`) or notebook (`notebook:<path>`) uses."""
        await self._run(lambda: self._bind(key, session_id))

    async def bound(self, key: str) -> str | None:
        """Tell which session was last bound to `key`; None where none is, or it was deleted."""
        return await self._run(lambda: self._bound(key))

    async def on_connection(self, work: Callable[[HeldConnection], T]) -> T:
        """Do `work` with the open ledger, on the one thread that may (for `SqlMemoryStore`)."""
        return await self._run(lambda: work(self._open()))

    async def aclose(self) -> None:
        """Let go of every session and close the file; a second time does nothing."""
        if self._is_closed or os.getpid() != self._pid:
            return
        with suppress(RuntimeError):  # another task closed it meanwhile
            await self._worker.run(self._close)
        self._worker.stop()

    async def _run(self, work: Callable[[], T], *, undo: Callable[[T], object] | None = None) -> T:
        if os.getpid() != self._pid:
            raise StorageError(
                f"The ledger can't be used in a forked process; use the session in the process"
                f" that opened it (pid {self._pid})."
            )
        if self._is_closed:
            raise self._closed()
        return await self._worker.run(work, undo=undo)

    def _closed(self) -> StorageError:
        return StorageError(f"The ledger at {self.path} is closed here; open it again.")

    # From here on everything runs on the worker's thread.

    def _open(self) -> HeldConnection:
        if self._is_closed:
            raise self._closed()
        if self._held is None:
            network = place.network_type_of(self.path)
            if network is not None:
                self._check_network(network)
            self._held = open_ledger(
                self.path, self._locks, busy_timeout_s=self._busy_timeout_s, network=network
            )
        return self._held

    def _check_network(self, network: str) -> None:
        try:
            with self._locks.door():
                is_trusted = self._locks.are_trusted()
        except faults.FOREIGN as error:
            raise faults.storage_error(error, self.path) from error
        if not is_trusted:
            raise StorageError(
                f"The ledger at {self.path} is on a network file system ({network}) whose locks"
                " don't work between processes. Choose a local place with AgentMagics.store."
            )
        warning = (
            f"The ledger at {self.path} is on a network file system ({network}): writing is"
            " slower there, and a local place (AgentMagics.store) is safer."
        )
        self._warnings = (warning,)

    def _acquire(self, session_id: str, owner: Owner, *, create: bool, take: bool) -> Lease:
        held = self._open()
        with self._at_the_door(), ExitStack() as undoing:
            with held.write():
                old = appends.owned(held.raw, session_id)
                if old is None and not create:
                    raise SessionNotFound(session_id, appends.session_ids(held.raw))
                if old and not take and self._locks.is_held(old.lease):
                    raise SessionLocked(session_id, rows.holder_of(old.owner, owner))
                # A session that is made again must not honour leases of the one before.
                epoch = old.epoch + 1 if old else secrets.randbelow(_FIRST_EPOCHS) + 1
                lease = Lease(session_id=session_id, epoch=epoch)
                lock = self._locks.lock(lease)
                undoing.callback(self._locks.undo, lease, lock)
                appends.own(held.raw, lease, owner, is_new=old is None)
            self._locks.keep(lease, lock)
            undoing.pop_all()
            if old:
                self._locks.forget(old.lease)
        return lease

    def _release(self, lease: Lease) -> None:
        if not self._locks.holds(lease):
            return
        try:
            held = self._open()
            with self._at_the_door(), held.write():
                appends.disown(held.raw, lease)
        finally:
            self._locks.drop(lease)

    def _check_lease(self, held: HeldConnection, lease: Lease) -> appends.Owned:
        now = appends.owned(held.raw, lease.session_id)
        if now is not None and now.epoch == lease.epoch and self._locks.holds(lease):
            return now
        self._locks.drop(lease)
        if now is None:
            raise StorageError(
                f'Session "{lease.session_id}" was deleted in another kernel; open a new one.'
            )
        if now.epoch == lease.epoch:
            raise StorageError(f'Session "{lease.session_id}" is closed here; open it again.')
        raise SessionLocked(lease.session_id, rows.holder_of(now.owner, None))

    def _commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        held = self._open()
        sealed = [rows.storable(event.payload) for event in change.events]
        with held.write(lost=_lost(change)):
            owned = self._check_lease(held, lease)
            appends.check_generations(held.raw, lease.session_id, change.expected_generation)
            written = appends.append(held.raw, owned, change, sealed)
            appends.put_slots(held.core, lease.session_id, change.slots)
            if change.checkpoint is not None:
                row = rows.checkpoint_row(lease.session_id, change.checkpoint)
                held.core.execute(schema.checkpoints.insert(), row)
        return written

    def _save_draft(self, lease: Lease, draft: Draft) -> None:
        held = self._open()
        with held.unsynced(), held.write():
            self._check_lease(held, lease)
            appends.put_draft(held.raw, lease.session_id, draft)

    def _load(self, session_id: str) -> SessionState | None:
        held = self._open()
        with held.read():
            return reading.session_state(held, session_id)

    def _list(self, cursor: str | None, limit: int) -> SessionPage:
        listing.check_limit(limit)
        query = select(*reading.SUMMARY).order_by(
            schema.sessions.c.updated_at.desc(), schema.sessions.c.session_id
        )
        if cursor is not None:
            updated, last = listing.read_cursor(cursor)
            query = query.where(
                tuple_(-schema.sessions.c.updated_at, schema.sessions.c.session_id)
                > (-updated, last)
            )
        held = self._open()
        with held.read():
            found = reading.summaries(held.core.execute(query.limit(limit + 1)))
        return listing.page_of(found, limit)

    def _find(self, query: str) -> Sequence[SessionSummary]:
        held = self._open()
        with held.read():
            every = reading.summaries(held.core.execute(select(*reading.SUMMARY)))
        found = [summary for summary in every if listing.matches(summary, query)]
        return tuple(sorted(found, key=listing.sort_key))

    def _delete(self, session_id: str) -> None:
        held = self._open()
        with self._at_the_door():
            with held.write():
                old = appends.owned(held.raw, session_id)
                if old is None:
                    return
                if self._locks.is_held(old.lease):
                    raise SessionLocked(session_id, rows.holder_of(old.owner, None))
                for table in schema.OF_A_SESSION:
                    held.core.execute(delete(table).where(table.c.session_id == session_id))
            self._locks.forget(old.lease)

    def _restore(self, state: SessionState) -> None:
        held = self._open()
        with held.write():
            restoring.restore(held, state, secrets.randbelow(_FIRST_EPOCHS) + 1)

    def _held_sessions(self) -> frozenset[str]:
        held = self._open()
        with self._at_the_door(), held.read():
            leases = appends.leases(held.raw)
            return frozenset(each.session_id for each in leases if self._locks.is_held(each))

    def _bind(self, key: str, session_id: str) -> None:
        held = self._open()
        statement = insert(schema.bindings).values(key=key, session_id=session_id)
        with held.write():
            held.core.execute(
                statement.on_conflict_do_update(
                    index_elements=["key"], set_={"session_id": session_id}
                )
            )

    def _bound(self, key: str) -> str | None:
        held = self._open()
        table = schema.bindings
        query = select(table.c.session_id).where(
            table.c.key == key, table.c.session_id.in_(select(schema.sessions.c.session_id))
        )
        with held.read():
            return held.core.execute(query).scalar()

    def _close(self) -> None:
        for lease in self._locks.leases:
            try:
                self._release(lease)
            except StorageError as error:
                rows.log.warning(
                    "session %s could not be closed in full: %s", lease.session_id, error
                )
        self._is_closed = True
        held, self._held = self._held, None
        if held is not None:
            held.close()

    @contextmanager
    def _at_the_door(self) -> Iterator[None]:
        try:
            with self._locks.door():
                yield
        except faults.FOREIGN as error:
            raise faults.storage_error(error, self.path) from error

    def _abandon(self) -> None:
        if self._held is not None:
            self._held.abandon()


def _watch_forks(store: SqlStore) -> None:
    """Keep a forked child from ever closing what it inherited (decision 50)."""
    if not hasattr(os, "register_at_fork"):
        return
    kept = weakref.ref(store)

    def in_child() -> None:
        inherited = kept()
        if inherited is not None:
            inherited._abandon()  # noqa: SLF001  the other half of this class

    os.register_at_fork(after_in_child=in_child)


def _lost(change: Change) -> str:
    if any(isinstance(event.payload, AssistantMessage) for event in change.events):
        return faults.ANSWER_NOT_RECORDED
    return faults.NOTHING_RECORDED
