"""What becomes of an automatic `summary_override` when turns leave a slot's view.

Why: docs/decisions.md#25.

An automatic one stands in the ledger with the turn after which it was written; what a person set
stands there without one, and stays.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from agent_magics.context.view import SlotHistory
from agent_magics.core.events import SlotChanged
from agent_magics.core.slots import Focused, Slot, SlotConfig
from agent_magics.session.state.loaded import LoadedSession


class Override(NamedTuple):
    """An automatic override and the id of the turn after which it was written."""

    text: str
    turn_id: str


def override_after(loaded: LoadedSession, slot: Slot, view: SlotHistory) -> tuple[Slot, str | None]:
    """Return a slot as it is once `view` is what it sees, and the turn that its change is of.

    An override made from turns that left goes, and the newest one made from what stays takes its
    place; one that had gone comes back with its turns. Without a change the turn is None.
    """
    mode = slot.config.mode
    made = _automatic(loaded, slot)
    if not isinstance(mode, Focused) or not made:
        return slot, None
    turns = {event.turn_id for event in view.events}
    # An override is a summary of turns: with them gone it would tell what was taken back.
    kept = next((each for each in reversed(made) if each.turn_id in turns), None)
    text = kept.text if kept else None
    if text == mode.summary_override:
        return slot, None
    changed = msgspec.structs.replace(mode, summary_override=text)
    config = msgspec.structs.replace(slot.config, mode=changed)
    return msgspec.structs.replace(slot, config=config), (kept or made[-1]).turn_id


def _automatic(loaded: LoadedSession, slot: Slot) -> list[Override]:
    """List the automatic overrides since a person last set one, or none."""
    made: list[Override] = []
    holds: str | None = None
    for event in loaded.events:
        match event.payload:
            case SlotChanged(config=SlotConfig() as config) if event.slot_uid == slot.uid:
                text = _text_of(config)
                # A person's own override isn't made of turns, and stays whatever leaves the view.
                if event.turn_id is None and text != holds:
                    made.clear()
                elif event.turn_id is not None and text:
                    again = Override(text, event.turn_id)
                    made += [] if again in made else [again]
                holds = text
            case _:
                pass
    return made


def _text_of(config: SlotConfig) -> str | None:
    return config.mode.summary_override if isinstance(config.mode, Focused) else None
