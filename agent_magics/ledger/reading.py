"""The read path: rows of one session, and of the list of sessions, made into values."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import sqlalchemy
from sqlalchemy import Table, select

from agent_magics.core.events import Draft
from agent_magics.core.ports import SessionRow, SessionState, SessionSummary
from agent_magics.core.slots import Checkpoint
from agent_magics.ledger import rows, schema

_ROW = (
    schema.sessions.c.session_id,
    schema.sessions.c.created_at,
    schema.sessions.c.updated_at,
    schema.sessions.c.title,
    schema.sessions.c.current_slot_uid,
    schema.sessions.c.message_count,
    schema.sessions.c.epoch,
)
SUMMARY = (
    schema.sessions.c.session_id,
    schema.sessions.c.title,
    schema.sessions.c.created_at,
    schema.sessions.c.updated_at,
    schema.sessions.c.message_count,
)
_EVENTS = (
    "SELECT seq, slot_uid, turn_id, payload, tokens, created_at FROM events"
    " WHERE session_id=? ORDER BY seq"
)


class Readable(Protocol):
    """An open ledger: for SQLAlchemy Core, and for the driver."""

    @property
    def core(self) -> sqlalchemy.Connection: ...
    @property
    def raw(self) -> sqlite3.Connection: ...


def session_state(held: Readable, session_id: str) -> SessionState | None:
    """Read all of a session; None where there is no such session."""
    row = _row(held, session_id)
    if row is None:
        return None
    with _uncollected():
        # By the driver: the only rows that come in tens of thousands.
        stored = held.raw.execute(_EVENTS, (session_id,)).fetchall()
        events, broken = rows.read_events(session_id, stored)
    drafts = _all(held, schema.drafts, session_id)
    return SessionState(
        row=row,
        slots=tuple(rows.read_slot(slot) for slot in _all(held, schema.slots, session_id)),
        checkpoints=_checkpoints(held, session_id),
        events=tuple(events),
        drafts=tuple(
            Draft(slot_uid=draft["slot_uid"], turn_id=draft["turn_id"], text=draft["text"])
            for draft in drafts
        ),
        unreadable=tuple(broken),
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector: nothing made here is garbage, and walking it takes longer
    than making it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def summaries(found: Iterable[Any]) -> list[SessionSummary]:
    """Make lines of a list of rows of `SUMMARY`."""
    return [
        SessionSummary(
            session_id=session_id,
            title=title,
            created_at=rows.moment_of(created_at),
            updated_at=rows.moment_of(updated_at),
            message_count=message_count,
        )
        for session_id, title, created_at, updated_at, message_count in found
    ]


def _row(held: Readable, session_id: str) -> SessionRow | None:
    query = select(*_ROW).where(schema.sessions.c.session_id == session_id)
    found = held.core.execute(query).mappings().first()
    if found is None:
        return None
    return SessionRow(
        session_id=session_id,
        created_at=rows.moment_of(found["created_at"]),
        updated_at=rows.moment_of(found["updated_at"]),
        title=found["title"],
        current_slot_uid=found["current_slot_uid"],
        message_count=found["message_count"],
        epoch=found["epoch"],
    )


def _all(held: Readable, table: Table, session_id: str) -> Iterable[Any]:
    order = [column for column in table.c if column.name == "created_at"]
    query = select(table).where(table.c.session_id == session_id)
    return held.core.execute(query.order_by(*order, *table.primary_key)).mappings()


def _checkpoints(held: Readable, session_id: str) -> tuple[Checkpoint, ...]:
    found = (rows.read_checkpoint(row) for row in _all(held, schema.checkpoints, session_id))
    return tuple(checkpoint for checkpoint in found if checkpoint is not None)
