"""Which events of the ledger a slot sees: its lineage, minus what was rewound or cleared.

A view is computed, never stored: the same rows give the same view.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter

import msgspec

from agent_magics.core.events import (
    SPOKEN,
    Clear,
    Imported,
    LedgerEvent,
    Rewind,
    UserMessage,
)
from agent_magics.core.messages import User
from agent_magics.core.slots import Slot, lineage
from agent_magics.core.values import Value

REWOUND = "excluded: rewound"
CLEARED = "excluded: cleared"

_seq = attrgetter("seq")


class SlotHistory(Value):
    """The spoken events of a slot's lineage that are in view, by rising seq, and those that left.

    `left` maps a seq to why: "excluded: rewound" or "excluded: cleared". `focus_seq`: nothing
    before it is ever seen, because this slot or one above it was derived focused.
    """

    slot_uid: str
    events: tuple[LedgerEvent, ...]
    left: dict[int, str] = msgspec.field(default_factory=dict)
    focus_seq: int | None = None


class TurnSpan(Value):
    """A turn of a view. `index` counts from 1 along the lineage, inherited turns included; numbers
    of rewound turns are given again. `tokens` sums its stored event tokens.
    """

    turn_id: str | None
    index: int
    first_seq: int
    last_seq: int
    tokens: int
    is_finished: bool


def view_of(
    uid: str, slots: Mapping[str, Slot], events: Mapping[str, Sequence[LedgerEvent]]
) -> SlotHistory:
    """Resolve what slot `uid` sees.

    `events` holds each slot's events by rising seq, `Rewind` and `Clear` among them. A child sees
    its parent's lineage as it stood at `fork_seq` (inclusive); what the parent does later, a
    rewind included, doesn't touch it.
    """
    visible: list[LedgerEvent] = []
    left: dict[int, str] = {}
    removed: dict[int, list[LedgerEvent]] = {}
    chain = lineage(uid, slots)
    for slot_uid, bound in chain:
        own = events.get(slot_uid, ())
        if bound is not None:
            # The parent as it stood at the fork: its later rewinds are events behind the bound, and
            # so don't exist for the child.
            own = own[: bisect_right(own, bound, key=_seq)]
        for event in own:
            payload = event.payload
            if isinstance(payload, SPOKEN):
                visible.append(event)
            elif isinstance(payload, (Rewind, Clear)):
                visible = _apply(event, visible, left, removed)
    focus = [seq for slot_uid, _ in chain if (seq := _focus(slots.get(slot_uid))) is not None]
    return SlotHistory(
        slot_uid=uid, events=tuple(visible), left=left, focus_seq=max(focus) if focus else None
    )


def turns_of(view: SlotHistory, running: str | None = None) -> tuple[TurnSpan, ...]:
    """Group a view into turns; `running` is the id of the one that isn't finished.

    Events with a turn id belong to it. The others are grouped by roles: a user message begins a
    turn once the one before has had an answer, anything else stays with the turn before it.
    """
    return tuple(
        _span(turn_id, group, index, running)
        for index, (turn_id, group) in enumerate(grouped(view.events), 1)
    )


def grouped(events: Sequence[LedgerEvent]) -> list[tuple[str | None, list[LedgerEvent]]]:
    """Cut events into turns, each with its turn id where it has one."""
    groups: list[tuple[str | None, list[LedgerEvent]]] = []
    turn_id: str | None = None
    has_prompt = is_answered = False
    for event in events:
        if event.turn_id is not None and event.turn_id == turn_id:
            groups[-1][1].append(event)
            continue
        is_prompt = _is_prompt(event)
        if event.turn_id is None:
            # Imported messages have no turn id. Two prompts in a row are one turn there: the first
            # had no answer that could end it.
            begins = is_prompt and (turn_id is not None or is_answered)
        else:
            begins = turn_id is not None or has_prompt
        if begins or not groups:
            groups.append((event.turn_id, []))
            turn_id, has_prompt, is_answered = event.turn_id, False, False
        elif turn_id is None and event.turn_id is not None:
            turn_id = event.turn_id
            groups[-1] = (turn_id, groups[-1][1])
        groups[-1][1].append(event)
        is_answered = is_answered or (has_prompt and not is_prompt)
        has_prompt = has_prompt or is_prompt
    return groups


def _focus(slot: Slot | None) -> int | None:
    return None if slot is None else slot.focus_seq


def _apply(
    event: LedgerEvent,
    visible: list[LedgerEvent],
    left: dict[int, str],
    removed: dict[int, list[LedgerEvent]],
) -> list[LedgerEvent]:
    """Take out what a `Rewind` or `Clear` removes, bring back what it undoes."""
    match event.payload:
        case Rewind(to_seq=to_seq, undoes=undoes):
            cut, reason = bisect_right(visible, to_seq, key=_seq), REWOUND
        case _:
            cut, reason, undoes = 0, CLEARED, None
    # What goes is kept by the seq of what removed it, so that an undo brings back exactly this, and
    # not what an earlier rewind took.
    gone, kept = visible[cut:], visible[:cut]
    left.update((lost.seq, reason) for lost in gone)
    removed[event.seq] = gone
    if undoes is not None:
        back = removed.pop(undoes, [])
        for found in back:
            del left[found.seq]
        kept = sorted([*kept, *back], key=_seq)
    return kept


def _is_prompt(event: LedgerEvent) -> bool:
    match event.payload:
        case UserMessage(is_steering=is_steering):
            return not is_steering
        case Imported(message=User()):
            return True
        case _:
            return False


def _span(
    turn_id: str | None, group: list[LedgerEvent], index: int, running: str | None
) -> TurnSpan:
    return TurnSpan(
        turn_id=turn_id,
        index=index,
        first_seq=group[0].seq,
        last_seq=group[-1].seq,
        tokens=sum(event.tokens for event in group),
        is_finished=turn_id is None or turn_id != running,
    )
