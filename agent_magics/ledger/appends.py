"""The statements of the write path, as the driver takes them: no compiler, no pool (1 x raw).

All of them run inside a transaction of `HeldConnection.write`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import sqlalchemy
from sqlalchemy.dialects.sqlite import insert

from agent_magics.core.errors import CompactionStale
from agent_magics.core.events import Draft, LedgerEvent, Payload, kind_of
from agent_magics.core.messages import Value
from agent_magics.core.ports import Change, Lease, Owner
from agent_magics.core.slots import Slot
from agent_magics.core.text import clean_text
from agent_magics.ledger import rows, schema

Sealed = tuple[Payload, bytes]

_OWNED = (
    "SELECT epoch, head_seq, owner_pid, owner_host, owner_since FROM sessions WHERE session_id=?"
)
_CREATE = "INSERT INTO sessions (session_id, created_at, updated_at) VALUES (?, ?, ?)"
_OWN = "UPDATE sessions SET epoch=?, owner_pid=?, owner_host=?, owner_since=? WHERE session_id=?"
_DISOWN = (
    "UPDATE sessions SET owner_pid=NULL, owner_host=NULL, owner_since=NULL"
    " WHERE session_id=? AND epoch=?"
)
APPEND = (
    "INSERT INTO events"
    " (session_id, seq, slot_uid, turn_id, kind, payload, tokens, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADVANCE = (
    "UPDATE sessions SET head_seq=?, message_count=message_count+?,"
    " updated_at=max(updated_at, ?), current_slot_uid=coalesce(?, current_slot_uid),"
    " title=coalesce(?, title) WHERE session_id=?"
)
_GENERATION = "SELECT generation, slot_id FROM slots WHERE session_id=? AND uid=?"
_PUT_DRAFT = (
    "INSERT INTO drafts (session_id, slot_uid, turn_id, text) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET text=excluded.text"
)
_END_DRAFT = "DELETE FROM drafts WHERE session_id=? AND slot_uid=? AND turn_id=?"


class Owned(Value):
    """What a session's row says of its owner and its end; `owner` None: nobody has it open."""

    session_id: str
    epoch: int
    head_seq: int
    owner: Owner | None

    @property
    def lease(self) -> Lease:
        """The newest lease of the session."""
        return Lease(session_id=self.session_id, epoch=self.epoch)


def owned(raw: sqlite3.Connection, session_id: str) -> Owned | None:
    """Read who owns a session; None where there is no such session."""
    row = raw.execute(_OWNED, (session_id,)).fetchone()
    if row is None:
        return None
    epoch, head_seq, pid, host, since = row
    owner = None
    if pid is not None:
        owner = Owner(pid=pid, host=host, since=rows.moment_of(since))
    return Owned(session_id=session_id, epoch=epoch, head_seq=head_seq, owner=owner)


def leases(raw: sqlite3.Connection) -> tuple[Lease, ...]:
    """Give the newest lease of every session, held or not."""
    found = raw.execute("SELECT session_id, epoch FROM sessions")
    return tuple(Lease(session_id=session_id, epoch=epoch) for session_id, epoch in found)


def session_ids(raw: sqlite3.Connection) -> tuple[str, ...]:
    """List every session, for near matches of a name."""
    return tuple(name for (name,) in raw.execute("SELECT session_id FROM sessions"))


def own(raw: sqlite3.Connection, lease: Lease, owner: Owner, *, is_new: bool) -> None:
    """Write a session's new owner and epoch; a new session begins when its owner did."""
    since = rows.micros(owner.since)
    if is_new:
        raw.execute(_CREATE, (lease.session_id, since, since))
    raw.execute(_OWN, (lease.epoch, owner.pid, clean_text(owner.host), since, lease.session_id))


def disown(raw: sqlite3.Connection, lease: Lease) -> None:
    """Write that nobody has the session open, unless a newer owner has."""
    raw.execute(_DISOWN, (lease.session_id, lease.epoch))


def check_generations(
    raw: sqlite3.Connection, session_id: str, expected: Mapping[str, int]
) -> None:
    """Raise `CompactionStale` where a slot is no longer at the generation expected (C13)."""
    for uid, generation in expected.items():
        row = raw.execute(_GENERATION, (session_id, uid)).fetchone()
        if row is None or row[0] != generation:
            raise CompactionStale(uid if row is None else row[1])


def append(
    raw: sqlite3.Connection, session: Owned, change: Change, sealed: Sequence[Sealed]
) -> tuple[LedgerEvent, ...]:
    """Write a change's events and what the session's row says of them; give them their seqs."""
    written = tuple(
        rows.numbered(event, payload, seq)
        for seq, (event, (payload, _)) in enumerate(
            zip(change.events, sealed, strict=True), start=session.head_seq + 1
        )
    )
    raw.executemany(
        APPEND,
        [
            (
                session.session_id, event.seq, event.slot_uid, event.turn_id,
                kind_of(event.payload), data, event.tokens, rows.micros(event.created_at),
            )
            for event, (_, data) in zip(written, sealed, strict=True)
        ],
    )  # fmt: skip
    raw.execute(
        _ADVANCE,
        (
            session.head_seq + len(written),
            rows.messages_in(change.events),
            max((rows.micros(event.created_at) for event in written), default=0),
            change.current_slot_uid,
            None if change.title is None else clean_text(change.title),
            session.session_id,
        ),
    )
    if change.ends_draft is not None:
        raw.execute(_END_DRAFT, (session.session_id, *change.ends_draft))
    return written


def put_draft(raw: sqlite3.Connection, session_id: str, draft: Draft) -> None:
    """Write a draft over the one before."""
    raw.execute(_PUT_DRAFT, (session_id, draft.slot_uid, draft.turn_id, clean_text(draft.text)))


def put_slots(core: sqlalchemy.Connection, session_id: str, slots: Sequence[Slot]) -> None:
    """Insert slots, or replace those with the same uid."""
    if not slots:
        return
    statement = insert(schema.slots)
    replaced = {
        column.name: statement.excluded[column.name]
        for column in schema.slots.columns
        if not column.primary_key
    }
    core.execute(
        statement.on_conflict_do_update(index_elements=["session_id", "uid"], set_=replaced),
        [rows.slot_row(session_id, slot) for slot in slots],
    )
