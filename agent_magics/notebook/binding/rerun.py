"""Going back in a notebook: a cell that runs again, `undo`, `redo`, `retry` (docs/decisions.md#54).

What may be undone is read from the ledger, so it is the same after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_magics.context.view import TurnSpan
from agent_magics.core.errors import InputValidation
from agent_magics.core.events import (
    Clear,
    LedgerEvent,
    Origin,
    Payload,
    Rewind,
    SlotChanged,
    UserMessage,
)
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot
from agent_magics.core.values import Value

if TYPE_CHECKING:
    from agent_magics.session.session import Session

REPLACED = "the turn that took its place left the view (%agent redo brings it back)"
NEWEST = "that is the newest; the earlier one left the view (%ledger shows it)"
NOT_REWOUND = "memory, files and variables stay as they are"


class Earlier(Value):
    """What a cell that runs again left in a slot: `to_seq` is what stays, `later_turns` go too."""

    to_seq: int
    later_turns: int
    text_changed: bool


class RewindUndo(Value):
    """How to take back a rewind: what `undoes` removed comes, everything after `to_seq` goes.

    `to_seq` None: nothing goes. `is_back`: an earlier turn takes the place of a newer one.
    """

    to_seq: int | None
    undoes: int
    is_back: bool = False


def is_same_cell(one: Origin | None, other: Origin | None) -> bool:
    """Return whether both come from one cell: by id, or by source where neither has one."""
    if one is None or other is None:
        return False
    # One with an id and one without come from different front ends, and are never the same cell.
    if one.cell_id is not None or other.cell_id is not None:
        return one.cell_id == other.cell_id
    return one.cell_digest == other.cell_digest


def maker_of(state: SessionState, slot_id: str) -> Origin | None:
    """Find the cell that made a living slot; None where no cell did."""
    slot = _living(state, slot_id)
    for event in state.events:
        match event.payload:
            case SlotChanged(action="created" | "derived", origin=origin):
                if slot is not None and event.slot_uid == slot.uid:
                    return origin
            case _:
                pass
    return None


def undo_of(state: SessionState, slot_id: str) -> RewindUndo | None:
    """Find what `redo` would bring back in a slot; None where there is nothing.

    What was undone comes back step by step until a new turn. Right after a cell ran again or a
    retry it is what was replaced; the newer turn goes then, and comes back with the next redo.
    """
    slot = _living(state, slot_id)
    if slot is None:
        return None
    cuts: list[RewindUndo] = []
    swap: RewindUndo | None = None
    prompts: list[LedgerEvent] = []
    for event in state.events:
        if event.slot_uid != slot.uid:
            continue
        cut = _cut_of(event)
        if _is_prompt(event.payload):
            # A new prompt ends what can be undone step by step, but what it took the place of can
            # still be had back.
            swap = _swap_of(cuts, prompts, event)
            cuts = []
            prompts.append(event)
        elif cut is not None:
            cuts.append(cut)
            swap = None if swap is None or swap.is_back else swap
        elif isinstance(event.payload, Rewind):
            swap = _after_redo(event.seq, event.payload, cuts, swap)
            cuts = [each for each in cuts if each.undoes != event.payload.undoes]
    return RewindUndo(to_seq=None, undoes=cuts[-1].undoes) if cuts else swap


async def undo_last(session: Session) -> str:
    """Take the last turn of the current slot out of the view; say what was done, if anything."""
    slot = session.current_slot
    spans = session.turns(slot)
    if not spans:
        return f'There is no turn to undo in "{slot}".'
    await session.rewind(slot, to_seq=spans[-2].last_seq if len(spans) > 1 else 0)
    return f"turn {spans[-1].index} left the view (%agent redo brings it back); {NOT_REWOUND}"


async def redo_last(session: Session, state: SessionState) -> str:
    """Bring back what the last undo or rerun took; say what was done, if anything."""
    slot = session.current_slot
    found = undo_of(state, slot)
    if found is None:
        return f'There is nothing to redo in "{slot}".'
    before = session.turns(slot)
    end = before[-1].last_seq if before else 0
    to_seq = end if found.to_seq is None else found.to_seq
    await session.rewind(slot, to_seq=to_seq, undoes=found.undoes)
    after = len(session.turns(slot))
    turns = f"{after:,} turn{'' if after == 1 else 's'}"
    again = f"{slot} has {turns} in view again (was {len(before):,})"
    if found.to_seq is None:
        return again
    return f"{again}; {REPLACED if found.is_back else NEWEST}"


def earlier_of(
    events: Sequence[LedgerEvent], spans: Sequence[TurnSpan], origin: Origin
) -> Earlier | None:
    """Find the turns of a slot's own (`spans`) that a cell made.

    A cell without an id is known by its source alone, and only the slot's last turns are its own.
    """
    made: dict[str | None, Origin | None] = {}
    for event in events:
        if isinstance(event.payload, UserMessage) and not event.payload.is_steering:
            made.setdefault(event.turn_id, event.payload.origin)
    own = [i for i, span in enumerate(spans) if is_same_cell(made.get(span.turn_id), origin)]
    if origin.cell_id is None:
        # The same text in two cells is common ("go on"); without ids only an unbroken end of the
        # slot is surely this cell's.
        own = [i for i in own if set(range(i, len(spans))) <= set(own)]
    if not own:
        return None
    first, newest = spans[own[0]], made[spans[own[-1]].turn_id]
    return Earlier(
        to_seq=max((event.seq for event in events if event.seq < first.first_seq), default=0),
        later_turns=len(spans) - own[0] - len(own),
        text_changed=newest is not None and newest.cell_digest != origin.cell_digest,
    )


async def rewind_cell(session: Session, slot: str, origin: Origin) -> str | None:
    """Take the turns that a cell made in a slot out of the view; what to say of it, if anything."""
    count = next(meta.turns for meta in session.list_slots() if meta.slot_id == slot)
    spans = session.turns(slot)
    # Only the slot's own turns: inherited ones belong to the parent, and rewinding into them would
    # take them from this view alone.
    found = earlier_of(session.history(slot), spans[len(spans) - count :], origin)
    if found is None:
        return None
    await session.rewind(slot, to_seq=found.to_seq)
    return _left(found.later_turns, text_changed=found.text_changed)


def last_prompt(history: Sequence[LedgerEvent]) -> UserMessage:
    """Find the prompt of a history's last turn; raise `InputValidation` where there is none."""
    for event in reversed(history):
        if isinstance(event.payload, UserMessage) and not event.payload.is_steering:
            return event.payload
    raise InputValidation("There is no prompt to send again in this slot.")


def _left(later: int, *, text_changed: bool) -> str | None:
    if not later and not text_changed:
        return None
    is_one = later <= 1
    turns = f"{later:,} later turn{'' if is_one else 's'}" if later else "this cell's earlier turn"
    it = "it" if is_one else "them"
    hint = f"; to ask after {it}, use a new cell" if text_changed else ""
    return f"{turns} left the view (%agent redo brings {it} back){hint}"


def _living(state: SessionState, slot_id: str) -> Slot | None:
    living = [slot for slot in state.slots if slot.slot_id == slot_id and not slot.deleted]
    return living[0] if living else None


def _cut_of(event: LedgerEvent) -> RewindUndo | None:
    match event.payload:
        case Rewind(undoes=None, to_seq=to_seq):
            return RewindUndo(to_seq=to_seq, undoes=event.seq)
        case Clear():
            return RewindUndo(to_seq=0, undoes=event.seq)
        case _:
            return None


def _swap_of(
    cuts: Sequence[RewindUndo], before: Sequence[LedgerEvent], prompt: LedgerEvent
) -> RewindUndo | None:
    """Find what a new prompt took the place of: what the cut right before it removed."""
    if not cuts or cuts[-1].to_seq is None:
        return None
    to_seq = cuts[-1].to_seq
    if any(_is_again(prompt, each) for each in before if each.seq > to_seq):
        return RewindUndo(to_seq=to_seq, undoes=cuts[-1].undoes, is_back=True)
    return None


def _after_redo(
    seq: int, redo: Rewind, cuts: Sequence[RewindUndo], swap: RewindUndo | None
) -> RewindUndo | None:
    """Say which swap is left after a redo: one that went back can be taken forward again."""
    if any(cut.undoes == redo.undoes for cut in cuts):
        return swap
    if swap is not None and swap.is_back and swap.undoes == redo.undoes:
        return RewindUndo(to_seq=swap.to_seq, undoes=seq)
    return None


def _is_prompt(payload: Payload) -> bool:
    return isinstance(payload, UserMessage) and not payload.is_steering


def _is_again(prompt: LedgerEvent, before: LedgerEvent) -> bool:
    match prompt.payload, before.payload:
        case UserMessage() as now, UserMessage() as then:
            return now.content == then.content or is_same_cell(now.origin, then.origin)
        case _:
            return False
