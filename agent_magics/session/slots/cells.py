"""In which slot a notebook cell asked, so that running it again can go back."""

from __future__ import annotations

from agent_magics.core.events import LedgerEvent, Origin, UserMessage
from agent_magics.core.slots import Slot
from agent_magics.session.state.loaded import LoadedSession


def slot_of_cell(loaded: LoadedSession, origin: Origin) -> str | None:
    """Name the living slot that has the newest turn in view that the cell made.

    A cell without an id is known by its source alone, and only a slot's last turn is its own.
    """
    found: tuple[LedgerEvent, Slot] | None = None
    for slot in loaded.living.values():
        for event in reversed(loaded.view(slot).events):
            # Inherited turns were asked in the parent, which is looked at by itself.
            if event.slot_uid != slot.uid:
                break
            if not _is_from(event, origin):
                continue
            if found is None or event.seq > found[0].seq:
                found = (event, slot)
            break
    # Without an id the same text may stand in two cells; only the last turn is surely this one's.
    if found is None or (origin.cell_id is None and not _is_last(loaded, *found)):
        return None
    return found[1].slot_id


def _is_from(event: LedgerEvent, origin: Origin) -> bool:
    match event.payload:
        case UserMessage(origin=Origin() as made, is_steering=False):
            if origin.cell_id is not None:
                return made.cell_id == origin.cell_id
            return made.cell_id is None and made.cell_digest == origin.cell_digest
        case _:
            return False


def _is_last(loaded: LoadedSession, event: LedgerEvent, slot: Slot) -> bool:
    return all(span.first_seq <= event.seq for span in loaded.turns(slot))
