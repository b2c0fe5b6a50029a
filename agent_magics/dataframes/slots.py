"""Slots and their checkpoints as rows, deleted slots and older checkpoints included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_magics.core.events import SPOKEN
from agent_magics.core.ports import SessionState
from agent_magics.core.redact import shown_model
from agent_magics.core.slots import Focused, Slot
from agent_magics.dataframes.columns import Row
from agent_magics.dataframes.shown import model_name
from agent_magics.dataframes.turns import turn_rows

MODES = ("full", "focused", "readonly")


def slot_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each slot, in the order they were made."""
    named = {slot.uid: slot.slot_id for slot in state.slots}
    first = {event.slot_uid: event.seq for event in reversed(state.events)}
    events = Counter(event.slot_uid for event in state.events)
    owner = {event.turn_id: event.slot_uid for event in state.events if event.turn_id}
    turns = Counter(owner[row["turn_id"]] for row in turn_rows(state) if row["is_in_view"])
    tokens: Counter[str | None] = Counter()
    for event in state.events:
        if isinstance(event.payload, SPOKEN):
            tokens[event.slot_uid] += event.tokens
    # By their first events: clocks go backwards, seqs don't.
    for slot in sorted(state.slots, key=lambda slot: first.get(slot.uid, 0)):
        yield {
            "session_id": state.row.session_id,
            "session": state.row.title,
            "slot": slot.slot_id,
            "slot_uid": slot.uid,
            **_mode_of(slot),
            "parent": named.get(slot.parent_uid or ""),
            "parent_uid": slot.parent_uid,
            "fork_seq": None if slot.parent_uid is None else slot.fork_seq,
            "created_at": slot.created_at,
            "turns": turns[slot.uid],
            "events": events[slot.uid],
            "tokens": tokens[slot.uid],
            "model": slot.config.model and shown_model(slot.config.model),
            "system_prompt": slot.config.system_prompt,
            "generation": slot.generation,
            "checkpoint_id": slot.checkpoint_id,
            "is_current": slot.uid == state.row.current_slot_uid,
            "is_deleted": slot.deleted,
        }


def checkpoint_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each checkpoint, in the order they were made."""
    slots = {slot.uid: slot for slot in state.slots}
    for checkpoint in sorted(state.checkpoints, key=lambda each: each.source_max_seq):
        slot = slots.get(checkpoint.slot_uid)
        yield {
            "session_id": state.row.session_id,
            "session": state.row.title,
            "slot": None if slot is None else slot.slot_id,
            "slot_uid": checkpoint.slot_uid,
            "checkpoint_id": checkpoint.checkpoint_id,
            "parent_checkpoint_id": checkpoint.parent_checkpoint_id,
            "generation": checkpoint.generation,
            "created_at": checkpoint.created_at,
            "reason": checkpoint.reason,
            "first_retained_seq": checkpoint.first_retained_seq,
            "source_max_seq": checkpoint.source_max_seq,
            "tokens_before": checkpoint.tokens_before,
            "tokens_after": checkpoint.tokens_after,
            "model": model_name(checkpoint.provider, checkpoint.model),
            "is_degraded": checkpoint.degraded,
            "is_active": slot is not None and slot.checkpoint_id == checkpoint.checkpoint_id,
            "summary": checkpoint.summary,
        }


def _mode_of(slot: Slot) -> Row:
    mode = slot.config.mode
    count = mode.recent_messages if isinstance(mode, Focused) else None
    return {"mode": str(mode.__struct_config__.tag), "recent_messages": count}
