"""The session state: the one JSON shape, versioned, that every view draws.

`SessionViewState` below is its definition; `tests/data/session_state.json` is an example that tests
check from Python and from JavaScript. Tokens are whole numbers, `null` means "not known".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from agent_magics.context.budget import PARTS, ContextInfo
from agent_magics.context.tokens import count_text
from agent_magics.core.money import Spent
from agent_magics.core.slots import Focused, Full, Readonly, SlotMeta, mode_label
from agent_magics.core.values import Value
from agent_magics.notebook.views.budget_notes import SPENT, budget_notes
from agent_magics.notebook.views.shown_session import StateSource
from agent_magics.settings import shown_model

VERSION = 1


class SlotState(Value):
    """One tab. Slots stand parents first, children right under them; `depth` 0 is a root.

    `messages` includes inherited ones, `turns` are the slot's own.
    """

    id: str
    mode: Literal["full", "focused", "readonly"]
    mode_label: str
    parent: str | None
    forked_at_turn: int | None
    depth: int
    turns: int
    messages: int
    tokens: int
    is_current: bool
    is_running: bool
    model: str | None


class PartState(Value):
    name: str
    tokens: int


class CheckpointState(Value):
    tokens_before: int
    tokens_after: int
    is_degraded: bool


class BudgetState(Value):
    """What the slot's next request weighs, by part, against the model's window.

    `notes` are lines for people, the first one says where the numbers are from. `spent` is the one
    about money, "" where nothing was spent. `frees` is about what a compaction would free now,
    None where it isn't known or nothing could be freed. While a turn streams, the part "answer"
    is what it has said so far.
    """

    slot: str
    model: str
    window: int
    threshold: int
    used: int
    free: int
    source: Literal["estimated", "measured"]
    parts: tuple[PartState, ...]
    checkpoint: CheckpointState | None
    notes: tuple[str, ...]
    spent: str = ""
    frees: int | None = None


class SessionViewState(Value):
    """Everything that the views show of a session."""

    version: int
    session_id: str
    title: str
    model: str
    is_readonly: bool
    current: str
    slots: tuple[SlotState, ...]
    budget: BudgetState | None
    running: tuple[str, ...]


def session_state(session: StateSource) -> dict[str, Any]:
    """Make the session state of a session, as plain JSON values."""
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state_of(session)))
    return made


def state_of(session: StateSource) -> SessionViewState:
    """Make the session state of a session."""
    current = session.current_slot
    return SessionViewState(
        version=VERSION,
        session_id=session.session_id,
        title=session.title or session.session_id,
        model=shown_model(session.model),
        is_readonly=session.is_readonly,
        current=current,
        slots=slot_states(session.list_slots()),
        budget=budget_now(session, current),
        running=tuple(sorted(session.running())),
    )


def slot_states(slots: Sequence[SlotMeta]) -> tuple[SlotState, ...]:
    """Order slots as a tree; one whose parent is gone stands as a root."""
    known = {slot.slot_id for slot in slots}
    made: list[SlotState] = []

    def grow(parent: str | None, depth: int) -> None:
        for slot in slots:
            stands_under = slot.parent_id if slot.parent_id in known else None
            if stands_under == parent:
                made.append(_slot_state(slot, depth))
                grow(slot.slot_id, depth + 1)

    grow(None, 0)
    return tuple(made)


def budget_now(session: StateSource, slot: str) -> BudgetState:
    """Make the budget of a slot, the answer that streams in it included."""
    turn = session.running().get(slot)
    said = "" if turn is None else turn.text_so_far
    info = session.context_info(slot)
    return budget_state(info, session.spent(slot), said=said)


def budget_state(
    info: ContextInfo,
    spent: Spent,
    *,
    is_exact: bool = True,
    said: str = "",
) -> BudgetState:
    """Put a context info into the views' shape; parts without tokens are left out.

    `spent` is what the slot's own requests cost, `said` what streams and isn't in the info yet.
    Without `is_exact` (nobody there) what differs from run to run is left out: the time, and the
    price.
    """
    answer = round(count_text(said) * info.factor) if said else 0
    used = info.used + answer
    parts = {**info.parts, "answer": answer}
    notes = budget_notes(info, spent, is_exact=is_exact)
    checkpoint = None
    if info.checkpoint_id is not None:
        checkpoint = CheckpointState(
            tokens_before=info.tokens_before or 0,
            tokens_after=info.tokens_after or 0,
            is_degraded=bool(info.degraded),
        )
    return BudgetState(
        slot=info.slot_id,
        model=shown_model(info.model),
        window=info.limits.window,
        threshold=info.limits.threshold,
        used=used,
        free=max(0, info.limits.threshold - used),
        source=info.source,
        parts=tuple(
            PartState(name=name, tokens=parts[name])
            for name in (*PARTS, "answer")
            if parts.get(name)
        ),
        checkpoint=checkpoint,
        notes=notes,
        spent=next((note for note in notes if note.startswith(SPENT)), ""),
    )


def _slot_state(slot: SlotMeta, depth: int) -> SlotState:
    return SlotState(
        id=slot.slot_id,
        mode=_mode(slot),
        mode_label=mode_label(slot.mode),
        parent=slot.parent_id,
        forked_at_turn=slot.forked_at_turn,
        depth=depth,
        turns=slot.turns,
        messages=slot.message_count,
        tokens=slot.tokens,
        is_current=slot.is_current,
        is_running=slot.is_running,
        model=None if slot.model is None else shown_model(slot.model),
    )


def _mode(slot: SlotMeta) -> Literal["full", "focused", "readonly"]:
    match slot.mode:
        case Full():
            return "full"
        case Focused():
            return "focused"
        case Readonly():
            return "readonly"
