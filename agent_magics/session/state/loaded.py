"""A session as it is in the store, in memory: what every view is computed from.

Only `record.Recorder` changes it, after the store has the same change. Views are kept per slot and
extended as events arrive, so a turn doesn't read the whole log again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from agent_magics.context.view import SlotHistory, TurnSpan, turns_of, view_of
from agent_magics.core.errors import SlotNotFound
from agent_magics.core.events import (
    SPOKEN,
    Clear,
    Draft,
    LedgerEvent,
    MemorySet,
    Metadata,
    Rewind,
    SlotChanged,
    Usage,
)
from agent_magics.core.money import Spent
from agent_magics.core.ports import Change, SessionRow, SessionState
from agent_magics.core.slots import DEFAULT_SLOT, Checkpoint, Slot, Static, clamped
from agent_magics.core.text import clean_text
from agent_magics.session.state.calibration import TokenCalibration
from agent_magics.session.state.spending import spent_for


class LoadedSession:
    """The state of one open session. Not for use by two threads at once."""

    def __init__(self, state: SessionState) -> None:
        self.row: SessionRow = state.row
        self.slots: dict[str, Slot] = {slot.uid: clamped(slot) for slot in _in_order_made(state)}
        self.checkpoints: dict[str, Checkpoint] = {
            checkpoint.checkpoint_id: checkpoint for checkpoint in state.checkpoints
        }
        self.events: list[LedgerEvent] = []
        self.memory: dict[str, str] = {}
        self.drafts: tuple[Draft, ...] = state.drafts
        self.metadata: dict[str, dict[str, object]] = {}
        self.held: set[str] = set()
        self.current_uid: str = self._current_or_anchor(state.row.current_slot_uid)
        self.spent = Spent()
        self.spent_by_slot: defaultdict[str | None, Spent] = defaultdict(Spent)
        self._by_slot: defaultdict[str, list[LedgerEvent]] = defaultdict(list)
        self._views: dict[str, SlotHistory] = {}
        self._calibrations: dict[str, TokenCalibration] = {}
        self._spans: dict[str, tuple[SlotHistory, tuple[TurnSpan, ...]]] = {}
        self._add(state.events)

    def apply(self, change: Change, events: Sequence[LedgerEvent]) -> None:
        """Take in what the store has written."""
        for slot in change.slots:
            self.slots[slot.uid] = slot
        if change.checkpoint is not None:
            self.checkpoints[change.checkpoint.checkpoint_id] = change.checkpoint
        if change.current_slot_uid is not None:
            self.current_uid = change.current_slot_uid
        if change.title is not None:
            self.row = msgspec.structs.replace(self.row, title=clean_text(change.title))
        self._add(events)

    def snapshot(self, running: Sequence[str] = ()) -> SessionState:
        """Return the whole session as the store would load it; `running` turns are told."""
        return SessionState(
            row=msgspec.structs.replace(self.row, current_slot_uid=self.current_uid),
            slots=tuple(self.slots.values()),
            checkpoints=tuple(self.checkpoints.values()),
            events=tuple(self.events),
            drafts=(),
            running=tuple(running),
        )

    @property
    def name(self) -> str:
        """The session as people know it: its title, else its id."""
        return self.row.title or self.row.session_id

    @property
    def chosen_model(self) -> str | None:
        """The model that was chosen for this session; None: it asks the agent's default."""
        chosen = self.metadata.get("session_config", {}).get("model_id")
        return str(chosen) if chosen else None

    @property
    def prompt_override(self) -> str | None:
        """The session's own prompt; a slot's own takes its place."""
        override = self.metadata.get("session_config", {}).get("system_prompt_override")
        return str(override) if override else None

    @property
    def living(self) -> dict[str, Slot]:
        """The slots that aren't deleted, by id, in the order they were made."""
        return {slot.slot_id: slot for slot in self.slots.values() if not slot.deleted}

    @property
    def restorable(self) -> dict[str, str]:
        """The uids of deleted slots whose names are free, by name: of each the newest deleted."""
        living, found = self.living, dict[str, str]()
        for event in self.events:
            slot = self.slots.get(event.slot_uid or "")
            is_delete = isinstance(event.payload, SlotChanged) and event.payload.action == "deleted"
            if is_delete and slot and slot.deleted and slot.slot_id not in living:
                found[slot.slot_id] = slot.uid
        return found

    def slot(self, slot_id: str | None) -> Slot:
        """Find a slot by id (None: the current one) or raise `SlotNotFound`."""
        if slot_id is None:
            return self.slots[self.current_uid]
        living = self.living
        if slot_id not in living:
            raise SlotNotFound(slot_id, tuple(living))
        return living[slot_id]

    def checkpoint_of(self, slot: Slot) -> Checkpoint | None:
        """Find the slot's active checkpoint; None also where the one it names is gone."""
        if slot.checkpoint_id is None:
            return None
        return self.checkpoints.get(slot.checkpoint_id)

    def view(self, slot: Slot) -> SlotHistory:
        """Return the slot's visible events."""
        kept = self._views.get(slot.uid)
        if kept is None:
            kept = view_of(slot.uid, self.slots, self._by_slot)
            self._views[slot.uid] = kept
        return kept

    def calibration_of(self, slot: Slot) -> TokenCalibration:
        """Return what the counted requests of the turns in a slot's view have taught.

        What left the view counts no more: a notebook that runs again is measured, and so
        compacted, as it was the first time.
        """
        kept = self._calibrations.get(slot.uid)
        if kept is None:
            # Usage events are not spoken and so not in the view; their turn ids tie them to it.
            turns = {event.turn_id for event in self.view(slot).events}
            kept = TokenCalibration(event for event in self.events if event.turn_id in turns)
            self._calibrations[slot.uid] = kept
        return kept

    def turns(self, slot: Slot, running: str | None = None) -> tuple[TurnSpan, ...]:
        """Return the turns of a slot's view; only what came since the last call is looked at."""
        view = self.view(slot)
        spans = self._spans_of(view)
        self._spans[slot.uid] = (view, spans)
        if running is None:
            return spans
        return tuple(
            msgspec.structs.replace(span, is_finished=False) if span.turn_id == running else span
            for span in spans
        )

    def _spans_of(self, view: SlotHistory) -> tuple[TurnSpan, ...]:
        known, spans = self._spans.get(view.slot_uid, (None, ()))
        if known is view:
            return spans
        if known is None or not spans or not _extends(known, view):
            return turns_of(view)
        # The last turn may have grown, so it is grouped again with what is new.
        last = spans[-1]
        at = bisect_left(view.events, last.first_seq, key=lambda event: event.seq)
        newer = turns_of(msgspec.structs.replace(view, events=view.events[at:]))
        return spans[:-1] + tuple(
            msgspec.structs.replace(span, index=span.index + last.index - 1) for span in newer
        )

    def undoable(self, slot: Slot, seq: int | None) -> Rewind | Clear | None:
        """Find the rewind or clear of that slot with this seq."""
        for event in self._by_slot[slot.uid]:
            if event.seq == seq and isinstance(event.payload, Rewind | Clear):
                return event.payload
        return None

    def last_finished_seq(self, slot: Slot, running: str | None) -> int:
        """Find the newest seq of the slot before its running turn; its fork where it has none.

        Rewinds and clears count: a child made now must see what they left.
        """
        own = self._by_slot[slot.uid]
        began = next((event.seq for event in own if event.turn_id == running), None)
        if running is None or began is None:
            return own[-1].seq if own else slot.fork_seq
        return max((event.seq for event in own if event.seq < began), default=slot.fork_seq)

    def _current_or_anchor(self, uid: str) -> str:
        """Fall back on `default` where the slot that was current is gone (a static one is)."""
        slot = self.slots.get(uid)
        if slot is not None and not slot.deleted:
            return uid
        anchor = self.living.get(DEFAULT_SLOT)
        return anchor.uid if anchor else uid

    def _add(self, events: Iterable[LedgerEvent]) -> None:
        touched: defaultdict[str, list[LedgerEvent]] = defaultdict(list)
        for event in events:
            self.events.append(event)
            match event.payload:
                case MemorySet(key=key, value=None):
                    self.memory.pop(key, None)
                case MemorySet(key=key, value=str(value)):
                    self.memory[key] = value
                case Usage():
                    if event.slot_uid in self._calibrations:
                        # Only those that were asked for: the others read it all when they are made.
                        self._calibrations[event.slot_uid].learn(event.payload)
                    spent = spent_for(event.payload)
                    self.spent = self.spent.plus(spent)
                    self.spent_by_slot[event.slot_uid] = self.spent_by_slot[event.slot_uid].plus(
                        spent
                    )
                case Metadata(key=key, value=value):
                    self.metadata[key] = value
                    if key == "context_compaction" and event.slot_uid is not None:
                        self._note_undone(event.slot_uid, value)
                case _:
                    pass
            if event.slot_uid is not None:
                self._by_slot[event.slot_uid].append(event)
                touched[event.slot_uid].append(event)
        for uid, added in touched.items():
            self._extend_view(uid, added)

    def _note_undone(self, uid: str, fact: dict[str, object]) -> None:
        """Note slots whose last compaction was undone; the trigger leaves them alone.

        Why: docs/decisions.md#37.
        """
        if "undone" in fact:
            self.held.add(uid)
        else:
            self.held.discard(uid)

    def _extend_view(self, uid: str, added: Sequence[LedgerEvent]) -> None:
        if any(isinstance(event.payload, Rewind | Clear) for event in added):
            # What was rewound can come back by an undo, so the view is computed anew. Children
            # needn't be: their view of this slot ends at the fork.
            self._views.pop(uid, None)
            self._spans.pop(uid, None)
            self._calibrations.pop(uid, None)
            return
        kept = self._views.get(uid)
        if kept is not None:
            spoken = tuple(event for event in added if isinstance(event.payload, SPOKEN))
            self._views[uid] = msgspec.structs.replace(kept, events=kept.events + spoken)


def _in_order_made(state: SessionState) -> list[Slot]:
    """Order slots by their first events: clocks go backwards, seqs don't."""
    first: dict[str, int] = {}
    for event in state.events:
        if event.slot_uid is not None:
            first.setdefault(event.slot_uid, event.seq)
    return sorted(state.slots, key=lambda slot: first.get(slot.uid, 0))


def _extends(before: SlotHistory, after: SlotHistory) -> bool:
    """Return whether a view is another with events added at its end."""
    count = len(before.events)
    return 0 < count <= len(after.events) and after.events[count - 1] is before.events[-1]


def is_static(slot: Slot) -> bool:
    """Return whether the slot lives in this process only."""
    return isinstance(slot.config.source, Static)
