"""Statements on who owns a session: the owner columns and the epoch of its row.

An epoch is a fencing token: each new owner gets a higher one, and every write checks that its own
is still the newest, so that an owner that was overtaken can't write whatever it believes.
"""

from __future__ import annotations

import sqlite3

from agent_magics.core.ports import Lease, Owner
from agent_magics.core.text import clean_text
from agent_magics.core.values import Value
from agent_magics.ledger import records

_SELECT = (
    "SELECT epoch, head_seq, owner_pid, owner_host, owner_since FROM sessions WHERE session_id=?"
)
_CREATE = "INSERT INTO sessions (session_id, created_at, updated_at) VALUES (?, ?, ?)"
_WRITE_OWNER = (
    "UPDATE sessions SET epoch=?, owner_pid=?, owner_host=?, owner_since=? WHERE session_id=?"
)
_CLEAR_OWNER = (
    "UPDATE sessions SET owner_pid=NULL, owner_host=NULL, owner_since=NULL"
    " WHERE session_id=? AND epoch=?"
)


class SessionOwnership(Value):
    """What a session's row says of its owner and its end; `owner` None: nobody has it open."""

    session_id: str
    epoch: int
    head_seq: int
    owner: Owner | None

    @property
    def lease(self) -> Lease:
        """The newest lease of the session."""
        return Lease(session_id=self.session_id, epoch=self.epoch)


def ownership_of(raw: sqlite3.Connection, session_id: str) -> SessionOwnership | None:
    """Read who owns a session; None where there is no such session."""
    row = raw.execute(_SELECT, (session_id,)).fetchone()
    if row is None:
        return None
    epoch, head_seq, pid, host, since = row
    owner = None
    if pid is not None:
        owner = Owner(pid=pid, host=host, since=records.moment_of(since))
    return SessionOwnership(session_id=session_id, epoch=epoch, head_seq=head_seq, owner=owner)


def newest_leases(raw: sqlite3.Connection) -> tuple[Lease, ...]:
    """Return the newest lease of every session, held or not."""
    found = raw.execute("SELECT session_id, epoch FROM sessions")
    return tuple(Lease(session_id=session_id, epoch=epoch) for session_id, epoch in found)


def session_ids(raw: sqlite3.Connection) -> tuple[str, ...]:
    """Return the id of every session, for near matches of a name."""
    return tuple(name for (name,) in raw.execute("SELECT session_id FROM sessions"))


def write_owner(raw: sqlite3.Connection, lease: Lease, owner: Owner, *, is_new: bool) -> None:
    """Write a session's new owner and epoch; a new session begins when its owner did."""
    since = records.micros(owner.since)
    if is_new:
        raw.execute(_CREATE, (lease.session_id, since, since))
    raw.execute(
        _WRITE_OWNER, (lease.epoch, owner.pid, clean_text(owner.host), since, lease.session_id)
    )


def clear_owner(raw: sqlite3.Connection, lease: Lease) -> None:
    """Write that nobody has the session open, unless a newer owner has."""
    raw.execute(_CLEAR_OWNER, (lease.session_id, lease.epoch))
