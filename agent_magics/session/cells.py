"""Which turn a notebook cell made, so that running it again can go back (decision 51)."""

from __future__ import annotations

from agent_magics.core.events import LedgerEvent, Origin, UserMessage
from agent_magics.core.messages import Value
from agent_magics.core.slots import Slot
from agent_magics.session.mirror import Mirror


class CellTurn(Value):
    """A turn that a cell made and that is still in view.

    `before_seq` is what the slot keeps when it is rewound to before the turn (0: nothing);
    `later_turns` leave the view then, the cell's own excluded.
    """

    slot_id: str
    turn_id: str
    before_seq: int
    later_turns: int
    text_changed: bool


def find_cell_turn(mirror: Mirror, origin: Origin) -> CellTurn | None:
    """Find the newest turn in view that the cell made, in any living slot.

    A cell without an id is known by its source alone, and only a slot's last turn is its own.
    """
    found: tuple[LedgerEvent, Slot] | None = None
    for slot in mirror.living.values():
        for event in reversed(mirror.view(slot).events):
            if event.slot_uid != slot.uid:
                break
            if not _is_from(event, origin):
                continue
            if found is None or event.seq > found[0].seq:
                found = (event, slot)
            break
    return _cell_turn(mirror, *found, origin) if found else None


def _is_from(event: LedgerEvent, origin: Origin) -> bool:
    match event.payload:
        case UserMessage(origin=Origin() as made, is_steering=False):
            if origin.cell_id is not None:
                return made.cell_id == origin.cell_id
            return made.cell_id is None and made.cell_digest == origin.cell_digest
        case _:
            return False


def _cell_turn(mirror: Mirror, event: LedgerEvent, slot: Slot, origin: Origin) -> CellTurn | None:
    events = mirror.view(slot).events
    first = next(each.seq for each in events if each.turn_id == event.turn_id)
    spans = mirror.turns(slot)
    later = sum(span.first_seq > event.seq for span in spans)
    if origin.cell_id is None and later:
        return None
    assert isinstance(event.payload, UserMessage)
    made = event.payload.origin
    return CellTurn(
        slot_id=slot.slot_id,
        turn_id=event.turn_id or "",
        before_seq=max((each.seq for each in events if each.seq < first), default=0),
        later_turns=later,
        text_changed=made is not None and made.cell_digest != origin.cell_digest,
    )
