"""Ledgers written by hand, as the frames read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from agent_magics.core.events import LedgerEvent, Payload
from agent_magics.core.ports import SessionRow, SessionState
from agent_magics.core.slots import Slot, SlotConfig

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY = SessionState(
    row=SessionRow(session_id="s", created_at=NOW, updated_at=NOW),
    slots=(),
    checkpoints=(),
    events=(),
    drafts=(),
)
MAIN = Slot(uid="u1", slot_id="default", config=SlotConfig(), created_at=NOW)


def said(seq: int, turn: str, payload: Payload, slot: str = "u1") -> LedgerEvent:
    at = NOW + timedelta(seconds=seq)
    return LedgerEvent(seq=seq, payload=payload, created_at=at, slot_uid=slot, turn_id=turn)


def moved(seq: int, payload: Payload, slot: str = "u1") -> LedgerEvent:
    return LedgerEvent(seq=seq, payload=payload, created_at=NOW, slot_uid=slot)


def state_of(*events: LedgerEvent, slots: tuple[Slot, ...] = ()) -> SessionState:
    return structs.replace(EMPTY, events=events, slots=(MAIN, *slots))
