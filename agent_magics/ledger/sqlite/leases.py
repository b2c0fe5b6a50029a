"""Who may write a session: leases are acquired, checked by every write, and released.

A lease is two things that must agree: the epoch in the session's row and a file lock that dies
with its owner. Everything here runs on the database's thread.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack

from agent_magics.core.errors import SessionLocked, SessionNotFound, StorageError
from agent_magics.core.ports import Lease, Owner
from agent_magics.ledger.records import holder_of, log
from agent_magics.ledger.sqlite import ownership, writing
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.database import Database
from agent_magics.ledger.sqlite.ownership import SessionOwnership

_MAX_FIRST_EPOCH = 2**31


def first_epoch() -> int:
    """Return the epoch that a session begins at."""
    # At random: a session that is created again under its old id must not honour leases of before.
    return secrets.randbelow(_MAX_FIRST_EPOCH) + 1


class Leases:
    """The leases of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._locks = database.locks

    def acquire(self, session_id: str, owner: Owner, *, create: bool, take: bool) -> Lease:
        """Acquire the lease of a session; see `core.ports.SessionStorage`."""
        connection = self._database.connection()
        with self._database.exclusive(), ExitStack() as undoing:
            with connection.write():
                old = ownership.ownership_of(connection.raw, session_id)
                if old is None and not create:
                    raise SessionNotFound(session_id, ownership.session_ids(connection.raw))
                if old and not take and self._locks.is_held(old.lease):
                    raise SessionLocked(session_id, holder_of(old.owner, owner))
                epoch = old.epoch + 1 if old else first_epoch()
                lease = Lease(session_id=session_id, epoch=epoch)
                # Locked before the row is committed, so that nobody ever reads of an owner whose
                # lock is free; undone if the commit fails.
                lock = self._locks.lock(lease)
                undoing.callback(self._locks.undo, lease, lock)
                ownership.write_owner(connection.raw, lease, owner, is_new=old is None)
            self._locks.keep(lease, lock)
            undoing.pop_all()
            if old:
                self._locks.forget(old.lease)
        return lease

    def release(self, lease: Lease) -> None:
        """Release a lease; nothing happens where this store doesn't hold it."""
        if not self._locks.holds(lease):
            return
        try:
            connection = self._database.connection()
            with self._database.exclusive(), connection.write():
                ownership.clear_owner(connection.raw, lease)
        finally:
            self._locks.drop(lease)

    def release_all(self) -> None:
        """Release every lease; what fails is logged, since the locks end with the process."""
        for lease in self._locks.leases:
            try:
                self.release(lease)
            except StorageError as error:
                log.warning("session %s could not be closed in full: %s", lease.session_id, error)

    def check(self, connection: LedgerConnection, lease: Lease) -> SessionOwnership:
        """Return the session's row if the lease is still the newest; call it in a transaction.

        Raises `SessionLocked` where another owner took it, `StorageError` where it is closed or
        the session was deleted.
        """
        now = ownership.ownership_of(connection.raw, lease.session_id)
        if now is not None and now.epoch == lease.epoch and self._locks.holds(lease):
            return now
        self._locks.drop(lease)
        if now is None:
            raise StorageError(
                f'Session "{lease.session_id}" was deleted in another kernel; open a new one.'
            )
        if now.epoch == lease.epoch:
            raise StorageError(f'Session "{lease.session_id}" is closed here; open it again.')
        raise SessionLocked(lease.session_id, holder_of(now.owner, None))

    def held_sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that a living process has open."""
        connection = self._database.connection()
        with self._database.exclusive(), connection.read():
            leases = ownership.newest_leases(connection.raw)
            return frozenset(each.session_id for each in leases if self._locks.is_held(each))

    def delete_session(self, session_id: str) -> None:
        """Delete a session and all its rows; raise `SessionLocked` while anybody has it open."""
        connection = self._database.connection()
        with self._database.exclusive():
            with connection.write():
                old = ownership.ownership_of(connection.raw, session_id)
                if old is None:
                    return
                if self._locks.is_held(old.lease):
                    raise SessionLocked(session_id, holder_of(old.owner, None))
                writing.delete_session(connection.core, session_id)
            self._locks.forget(old.lease)
