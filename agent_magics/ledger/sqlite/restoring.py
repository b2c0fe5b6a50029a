"""A whole session written at once, with the seqs it had: what an import does to a store."""

from __future__ import annotations

from agent_magics.core.events import LedgerEvent, kind_of
from agent_magics.core.ports import SessionState
from agent_magics.core.text import clean_text
from agent_magics.ledger import listing, records
from agent_magics.ledger.sqlite import writing
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.ownership import ownership_of

_CREATE = (
    "INSERT INTO sessions (session_id, created_at, updated_at, title, current_slot_uid,"
    " message_count, head_seq, epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def restore(connection: LedgerConnection, state: SessionState, epoch: int) -> None:
    """Insert a session that nobody holds yet; call it inside a transaction.

    Raises `InputValidation` where its id is used, or on an event that can't be stored.
    """
    row = state.row
    if ownership_of(connection.raw, row.session_id) is not None:
        raise listing.taken(row.session_id)
    connection.raw.execute(
        _CREATE,
        (
            row.session_id,
            records.micros(row.created_at),
            records.micros(row.updated_at),
            None if row.title is None else clean_text(row.title),
            row.current_slot_uid,
            records.messages_in(state.events),
            state.events[-1].seq if state.events else 0,
            epoch,
        ),
    )
    connection.raw.executemany(
        writing.INSERT_EVENT, (_event_row(row.session_id, event) for event in state.events)
    )
    writing.write_slots(connection.core, row.session_id, state.slots)
    writing.write_checkpoints(connection.core, row.session_id, state.checkpoints)
    for draft in state.drafts:
        writing.write_draft(connection.raw, row.session_id, draft)


def _event_row(session_id: str, event: LedgerEvent) -> tuple[object, ...]:
    payload, data = records.storable(event.payload)
    return (
        session_id, event.seq, event.slot_uid, event.turn_id, kind_of(payload), data,
        event.tokens, records.micros(event.created_at),
    )  # fmt: skip
