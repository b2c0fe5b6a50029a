"""Where a slot's history may be cut: at the ends of turns."""

from __future__ import annotations

from itertools import pairwise

from agent_magics.core.errors import InputValidation
from agent_magics.core.slots import Slot
from agent_magics.session.state.loaded import LoadedSession


def check_turn_end(
    loaded: LoadedSession, slot: Slot, seq: int, running_turn: str | None = None
) -> None:
    """Raise `InputValidation`, naming the nearest ends, where `seq` doesn't end a turn."""
    # 0 is the empty view: the point before the first turn.
    spans = loaded.turns(slot, running_turn)
    ends = [0, *(span.last_seq for span in spans if span.is_finished)]
    if seq in ends or seq in _borders(loaded, slot):
        return
    below = max((end for end in ends if end < seq), default=0)
    above = min((end for end in ends if end > seq), default=None)
    nearest = f"{below}" if above is None else f"{below} and {above}"
    raise InputValidation(
        f'seq {seq} does not end a turn of slot "{slot.slot_id}"; the nearest ends: {nearest}.'
    )


def fork_seq(
    loaded: LoadedSession, parent: Slot, at_seq: int | None, running_turn: str | None
) -> int:
    """Return the last inherited seq of a child made now (docs/decisions.md#18)."""
    if at_seq is not None:
        check_turn_end(loaded, parent, at_seq, running_turn)
        return at_seq
    return loaded.last_finished_seq(parent, running_turn)


def _borders(loaded: LoadedSession, slot: Slot) -> set[int]:
    """Find the seqs between a turn and what was recorded outside of turns, a bridge say."""
    events = loaded.view(slot).events
    return {a.seq for a, b in pairwise(events) if a.turn_id != b.turn_id}
