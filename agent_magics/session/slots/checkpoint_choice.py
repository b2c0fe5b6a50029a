"""Which checkpoint a slot has after a rewind, an undo or a derive (docs/decisions.md#18).

A checkpoint is true of a view where what stood before its boundary when it was made stands there
now, and nothing else. Nothing may be told that left the view, and nothing untold left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from operator import attrgetter

import msgspec

from agent_magics.context.view import SlotHistory, view_of
from agent_magics.core.events import Clear, LedgerEvent, Metadata, Rewind
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.state.loaded import LoadedSession

COMPACTED = "context_compaction"
_seq = attrgetter("seq")


class CheckpointChoice:
    """Chooses by what is loaded now; each answer is the id of a checkpoint, or None."""

    def __init__(self, loaded: LoadedSession) -> None:
        self._loaded = loaded

    def after_rewind(self, slot: Slot, to_seq: int) -> str | None:
        """Choose for a slot whose events after `to_seq` leave the view."""
        return _id_of(self._before(slot, to_seq))

    def after_undo(self, undone: Rewind | Clear, view: SlotHistory) -> str | None:
        """Choose for a slot whose view an undo makes: what it had before, if that is true."""
        found = self._loaded.checkpoints.get(undone.left_checkpoint_id or "")
        return _id_of(self._true_of(view, found))

    def view_after(self, slot: Slot, rewind: Rewind) -> SlotHistory:
        """Foresee what a slot sees once `rewind` is written."""
        by_slot = self._by_slot()
        head = self._loaded.events[-1].seq
        by_slot[slot.uid].append(
            LedgerEvent(seq=head + 1, payload=rewind, created_at=slot.created_at, slot_uid=slot.uid)
        )
        return view_of(slot.uid, self._loaded.slots, by_slot)

    def for_child(self, parent: Slot, child: Slot) -> str | None:
        """Choose for a slot derived now; a focused one has none: its focus hides what it tells."""
        # A summary that tells what the focus hides would undo the focus.
        if child.focus_seq != parent.focus_seq:
            return None
        found = self._before(parent, child.fork_seq)
        # The common case: comparing views costs two walks over the history.
        if found is None or not self._has_changed_since(child.fork_seq):
            return _id_of(found)
        return _id_of(self._true_of(self._view_at(parent.uid, child.fork_seq), found))

    def _before(self, slot: Slot, seq: int) -> Checkpoint | None:
        """Find the newest checkpoint whose boundary isn't after a seq."""
        found = self._loaded.checkpoint_of(slot)
        # With the boundary gone there is nothing to send behind the summary.
        while found is not None and found.first_retained_seq > seq:
            found = self._parent(found)
        return found

    def _true_of(self, view: SlotHistory, found: Checkpoint | None) -> Checkpoint | None:
        """Find the newest of a checkpoint and those before it that is true of a view."""
        # Turns may have been rewound and others made in their place: the boundary alone doesn't
        # tell that the summary is of this history.
        while found is not None and _behind(view, found) != self._recorded_behind(found):
            found = self._parent(found)
        return found

    def _recorded_behind(self, checkpoint: Checkpoint) -> tuple[int, ...] | None:
        """List what was behind the boundary when a checkpoint was made; None: nobody knows."""
        for event in self._by_slot()[checkpoint.slot_uid]:
            match event.payload:
                case Metadata(key=key, value=value) if (
                    key == COMPACTED and value.get("checkpoint_id") == checkpoint.checkpoint_id
                ):
                    return _behind(self._view_at(checkpoint.slot_uid, event.seq), checkpoint)
                case _:
                    pass
        return None

    def _view_at(self, uid: str, seq: int) -> SlotHistory:
        """Return what a slot saw once event `seq` was written: what a child made then sees."""
        slots = self._loaded.slots
        child = msgspec.structs.replace(slots[uid], uid="", parent_uid=uid, fork_seq=seq)
        return view_of("", {**slots, "": child}, self._by_slot())

    def _has_changed_since(self, seq: int) -> bool:
        """Return whether a rewind or clear came after a seq."""
        for event in reversed(self._loaded.events):
            if event.seq <= seq:
                break
            if isinstance(event.payload, Rewind | Clear):
                return True
        return False

    def _by_slot(self) -> defaultdict[str, list[LedgerEvent]]:
        by_slot: defaultdict[str, list[LedgerEvent]] = defaultdict(list)
        for event in self._loaded.events:
            if event.slot_uid is not None:
                by_slot[event.slot_uid].append(event)
        return by_slot

    def _parent(self, checkpoint: Checkpoint) -> Checkpoint | None:
        return self._loaded.checkpoints.get(checkpoint.parent_checkpoint_id or "")


def _behind(view: SlotHistory, checkpoint: Checkpoint) -> tuple[int, ...]:
    at = bisect_left(view.events, checkpoint.first_retained_seq, key=_seq)
    return tuple(event.seq for event in view.events[:at])


def _id_of(checkpoint: Checkpoint | None) -> str | None:
    return checkpoint.checkpoint_id if checkpoint else None
