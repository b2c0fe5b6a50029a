"""Statements that append a change to a session, inside a transaction of `LedgerConnection.write`.

Events go through the driver itself: SQLAlchemy's compiler and pool cost as much per append as
SQLite does. Slots and checkpoints are few, so they go through SQLAlchemy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import sqlalchemy
from sqlalchemy import delete
from sqlalchemy.dialects.sqlite import insert

from agent_magics.core.errors import CompactionStale
from agent_magics.core.events import Draft, LedgerEvent, Payload, kind_of
from agent_magics.core.ports import Change
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.text import clean_text
from agent_magics.ledger import records, rows
from agent_magics.ledger.sqlite import schema
from agent_magics.ledger.sqlite.ownership import SessionOwnership

Encoded = tuple[Payload, bytes]

INSERT_EVENT = (
    "INSERT INTO events"
    " (session_id, seq, slot_uid, turn_id, kind, payload, tokens, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE_SESSION = (
    "UPDATE sessions SET head_seq=?, message_count=message_count+?,"
    " updated_at=max(updated_at, ?), current_slot_uid=coalesce(?, current_slot_uid),"
    " title=coalesce(?, title) WHERE session_id=?"
)
_GENERATION = "SELECT generation, slot_id FROM slots WHERE session_id=? AND uid=?"
_WRITE_DRAFT = (
    "INSERT INTO drafts (session_id, slot_uid, turn_id, text) VALUES (?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET text=excluded.text"
)
_DELETE_DRAFT = "DELETE FROM drafts WHERE session_id=? AND slot_uid=? AND turn_id=?"


def check_generations(
    raw: sqlite3.Connection, session_id: str, expected: Mapping[str, int]
) -> None:
    """Raise `CompactionStale` where a slot is no longer at the generation expected."""
    for uid, generation in expected.items():
        row = raw.execute(_GENERATION, (session_id, uid)).fetchone()
        if row is None or row[0] != generation:
            raise CompactionStale(uid if row is None else row[1])


def append(
    raw: sqlite3.Connection, session: SessionOwnership, change: Change, encoded: Sequence[Encoded]
) -> tuple[LedgerEvent, ...]:
    """Append a change's events and update the session's row; return the events with their seqs.

    `encoded`: what `records.storable` returned for each event, in order.
    """
    written = tuple(
        records.numbered(event, payload, seq)
        for seq, (event, (payload, _)) in enumerate(
            zip(change.events, encoded, strict=True), start=session.head_seq + 1
        )
    )
    raw.executemany(
        INSERT_EVENT,
        [
            (
                session.session_id, event.seq, event.slot_uid, event.turn_id,
                kind_of(event.payload), data, event.tokens, records.micros(event.created_at),
            )
            for event, (_, data) in zip(written, encoded, strict=True)
        ],
    )  # fmt: skip
    raw.execute(
        _UPDATE_SESSION,
        (
            session.head_seq + len(written),
            records.messages_in(change.events),
            max((records.micros(event.created_at) for event in written), default=0),
            change.current_slot_uid,
            None if change.title is None else clean_text(change.title),
            session.session_id,
        ),
    )
    if change.ends_draft is not None:
        raw.execute(_DELETE_DRAFT, (session.session_id, *change.ends_draft))
    return written


def write_draft(raw: sqlite3.Connection, session_id: str, draft: Draft) -> None:
    """Overwrite the draft of a turn."""
    raw.execute(_WRITE_DRAFT, (session_id, draft.slot_uid, draft.turn_id, clean_text(draft.text)))


def write_slots(core: sqlalchemy.Connection, session_id: str, slots: Sequence[Slot]) -> None:
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


def write_checkpoints(
    core: sqlalchemy.Connection, session_id: str, checkpoints: Sequence[Checkpoint]
) -> None:
    """Insert checkpoints."""
    if checkpoints:
        made = [rows.checkpoint_row(session_id, checkpoint) for checkpoint in checkpoints]
        core.execute(schema.checkpoints.insert(), made)


def bind(core: sqlalchemy.Connection, key: str, session_id: str) -> None:
    """Write which session a key is bound to, over the one before."""
    statement = insert(schema.bindings).values(key=key, session_id=session_id)
    core.execute(
        statement.on_conflict_do_update(index_elements=["key"], set_={"session_id": session_id})
    )


def delete_session(core: sqlalchemy.Connection, session_id: str) -> None:
    """Delete all rows of a session."""
    for table in schema.OF_A_SESSION:
        core.execute(delete(table).where(table.c.session_id == session_id))
