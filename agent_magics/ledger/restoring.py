"""A whole session written at once, with the seqs it had: what an import does to a store."""

from __future__ import annotations

from agent_magics.core.events import LedgerEvent, kind_of
from agent_magics.core.ports import SessionState
from agent_magics.core.text import clean_text
from agent_magics.ledger import appends, listing, rows, schema
from agent_magics.ledger.connection import HeldConnection

_CREATE = (
    "INSERT INTO sessions (session_id, created_at, updated_at, title, current_slot_uid,"
    " message_count, head_seq, epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def restore(held: HeldConnection, state: SessionState, epoch: int) -> None:
    """Write a session, inside a transaction, which nobody holds yet.

    Raises `InputValidation` where its id is used, or on an event that can't be stored.
    """
    row = state.row
    if appends.owned(held.raw, row.session_id) is not None:
        raise listing.taken(row.session_id)
    held.raw.execute(
        _CREATE,
        (
            row.session_id,
            rows.micros(row.created_at),
            rows.micros(row.updated_at),
            None if row.title is None else clean_text(row.title),
            row.current_slot_uid,
            rows.messages_in(state.events),
            state.events[-1].seq if state.events else 0,
            epoch,
        ),
    )
    held.raw.executemany(
        appends.APPEND, (_event_row(row.session_id, event) for event in state.events)
    )
    appends.put_slots(held.core, row.session_id, state.slots)
    if state.checkpoints:
        made = [rows.checkpoint_row(row.session_id, each) for each in state.checkpoints]
        held.core.execute(schema.checkpoints.insert(), made)
    for draft in state.drafts:
        appends.put_draft(held.raw, row.session_id, draft)


def _event_row(session_id: str, event: LedgerEvent) -> tuple[object, ...]:
    payload, data = rows.storable(event.payload)
    return (
        session_id, event.seq, event.slot_uid, event.turn_id, kind_of(payload), data,
        event.tokens, rows.micros(event.created_at),
    )  # fmt: skip
