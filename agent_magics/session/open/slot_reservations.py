"""Which slots of an open session have work going on, and the checks before more of it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent_magics.core.errors import SlotReadonly, TurnBusy
from agent_magics.core.slots import Readonly, Slot
from agent_magics.session.open.lifetime import Lifetime
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.running_turn import RunningTurn


class SlotReservations:
    """Keeps each slot for one piece of work: a turn, or what `reserve` is asked for.

    `running` has the turns by slot uid. `changing` is held while slots are checked and changed.
    `tasks` are those of the work that is no turn.
    """

    def __init__(self, recorder: Recorder, lifetime: Lifetime) -> None:
        self._recorder = recorder
        self._loaded = recorder.loaded
        self._lifetime = lifetime
        self._work: dict[str, str] = {}
        self.running: dict[str, RunningTurn] = {}
        self.changing = asyncio.Lock()
        self.tasks: set[asyncio.Task[Any]] = set()

    def running_ids(self) -> dict[str, str]:
        """Return the ids of the running turns by slot uid."""
        return {uid: turn.turn_id for uid, turn in self.running.items()}

    def running_id(self, slot: Slot) -> str | None:
        """Return the id of the turn that runs in a slot."""
        turn = self.running.get(slot.uid)
        return turn.turn_id if turn else None

    def idle_slot(self, slot_id: str | None) -> Slot:
        """Find a slot in which nothing runs, or raise `SlotNotFound` or `TurnBusy`."""
        slot = self._loaded.slot(slot_id)
        if slot.uid in self._work:
            raise TurnBusy(slot.slot_id, self._work[slot.uid])
        return slot

    def writable_slot(self, slot_id: str | None) -> Slot:
        """Find an idle slot that may be added to; raises `SlotReadonly` too."""
        slot = self.idle_slot(slot_id)
        self.check_writable(slot.uid)
        return slot

    def check_writable(self, uid: str) -> None:
        """Raise `SlotReadonly` where the slot may not be added to."""
        slot = self._loaded.slots[uid]
        if isinstance(slot.config.mode, Readonly):
            raise SlotReadonly(slot.slot_id)

    def check_free(self, slot_id: str, *, replace: bool) -> None:
        """Raise `TurnBusy` where a slot that is to be replaced isn't idle."""
        if replace and slot_id in self._loaded.living:
            self.idle_slot(slot_id)

    @contextmanager
    def reserve(self, slot: Slot, what: str) -> Iterator[None]:
        """Keep a slot for one piece of work of the current task, which a close cancels."""
        self._lifetime.check_open()
        self.idle_slot(slot.slot_id)
        self._work[slot.uid] = what
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            yield
        finally:
            self.tasks.discard(task)
            self._work.pop(slot.uid, None)
            self._recorder.notify()

    def begin_turn(self, turn: RunningTurn) -> None:
        """Keep a turn's slot; `end_turn` frees it."""
        self._work[turn.slot_uid] = "a turn"
        self.running[turn.slot_uid] = turn

    def end_turn(self, turn: RunningTurn) -> None:
        """Free a turn's slot."""
        self.running.pop(turn.slot_uid, None)
        self._work.pop(turn.slot_uid, None)
