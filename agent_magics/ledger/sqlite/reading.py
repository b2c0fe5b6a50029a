"""Queries: one whole session, and lists of sessions."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import sqlalchemy
from sqlalchemy import Table, select, tuple_

from agent_magics.core.events import Draft
from agent_magics.core.ports import SessionPage, SessionRow, SessionState, SessionSummary
from agent_magics.core.slots import Checkpoint
from agent_magics.ledger import listing, rows
from agent_magics.ledger.records import moment_of
from agent_magics.ledger.sqlite import schema

_ROW = (
    schema.sessions.c.session_id,
    schema.sessions.c.created_at,
    schema.sessions.c.updated_at,
    schema.sessions.c.title,
    schema.sessions.c.current_slot_uid,
    schema.sessions.c.message_count,
    schema.sessions.c.epoch,
)
_SUMMARY = (
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


class OpenLedger(Protocol):
    """An open ledger: for SQLAlchemy Core, and for the driver."""

    @property
    def core(self) -> sqlalchemy.Connection: ...
    @property
    def raw(self) -> sqlite3.Connection: ...


def session_state(ledger: OpenLedger, session_id: str) -> SessionState | None:
    """Read all of a session; None where there is no such session."""
    row = _row(ledger, session_id)
    if row is None:
        return None
    with _uncollected():
        # Through the driver: the only rows that come in tens of thousands.
        stored = ledger.raw.execute(_EVENTS, (session_id,)).fetchall()
        events, broken = rows.read_events(session_id, stored)
    drafts = _all(ledger, schema.drafts, session_id)
    return SessionState(
        row=row,
        slots=tuple(rows.read_slot(slot) for slot in _all(ledger, schema.slots, session_id)),
        checkpoints=_checkpoints(ledger, session_id),
        events=tuple(events),
        drafts=tuple(
            Draft(slot_uid=draft["slot_uid"], turn_id=draft["turn_id"], text=draft["text"])
            for draft in drafts
        ),
        unreadable=tuple(broken),
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector."""
    # Nothing made here is garbage, and walking it takes longer than making it.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def session_page(ledger: OpenLedger, cursor: str | None, limit: int) -> SessionPage:
    """Return a page of the list of sessions, newest first.

    Raises `InputValidation` on a cursor that is none.
    """
    sessions = schema.sessions.c
    query = select(*_SUMMARY).order_by(sessions.updated_at.desc(), sessions.session_id)
    if cursor is not None:
        updated, last = listing.read_cursor(cursor)
        # By key and not by offset: a page stays right while sessions come and go.
        query = query.where(tuple_(-sessions.updated_at, sessions.session_id) > (-updated, last))
    # One more than asked for tells whether there is a next page.
    found = _summaries(ledger.core.execute(query.limit(limit + 1)))
    return listing.page_of(found, limit)


def matching_sessions(ledger: OpenLedger, query: str) -> tuple[SessionSummary, ...]:
    """Return the sessions that `query` finds, newest first."""
    every = _summaries(ledger.core.execute(select(*_SUMMARY)))
    found = [summary for summary in every if listing.matches(summary, query)]
    return tuple(sorted(found, key=listing.sort_key))


def bound_session(ledger: OpenLedger, key: str) -> str | None:
    """Return the session last bound to `key`; None where none is, or it was deleted."""
    table = schema.bindings
    query = select(table.c.session_id).where(
        table.c.key == key, table.c.session_id.in_(select(schema.sessions.c.session_id))
    )
    return ledger.core.execute(query).scalar()


def _summaries(found: Iterable[Any]) -> list[SessionSummary]:
    return [
        SessionSummary(
            session_id=session_id,
            title=title,
            created_at=moment_of(created_at),
            updated_at=moment_of(updated_at),
            message_count=message_count,
        )
        for session_id, title, created_at, updated_at, message_count in found
    ]


def _row(ledger: OpenLedger, session_id: str) -> SessionRow | None:
    query = select(*_ROW).where(schema.sessions.c.session_id == session_id)
    found = ledger.core.execute(query).mappings().first()
    if found is None:
        return None
    return SessionRow(
        session_id=session_id,
        created_at=moment_of(found["created_at"]),
        updated_at=moment_of(found["updated_at"]),
        title=found["title"],
        current_slot_uid=found["current_slot_uid"],
        message_count=found["message_count"],
        epoch=found["epoch"],
    )


def _all(ledger: OpenLedger, table: Table, session_id: str) -> Iterable[Any]:
    order = [column for column in table.c if column.name == "created_at"]
    query = select(table).where(table.c.session_id == session_id)
    return ledger.core.execute(query.order_by(*order, *table.primary_key)).mappings()


def _checkpoints(ledger: OpenLedger, session_id: str) -> tuple[Checkpoint, ...]:
    found = (rows.read_checkpoint(row) for row in _all(ledger, schema.checkpoints, session_id))
    return tuple(checkpoint for checkpoint in found if checkpoint is not None)
