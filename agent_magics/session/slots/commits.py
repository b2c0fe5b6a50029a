"""How changes of slots are written: static slots stay in this process, all else goes to the store.

One change may touch both kinds, as a switch away from a static slot does.
"""

from __future__ import annotations

import msgspec

from agent_magics.core.events import LedgerEvent
from agent_magics.core.ports import Change
from agent_magics.session.state.loaded import is_static
from agent_magics.session.state.recorder import Recorder


async def commit_change(recorder: Recorder, change: Change) -> tuple[LedgerEvent, ...]:
    """Write a change and return its events."""
    loaded = recorder.loaded
    statics = {uid for uid, slot in loaded.slots.items() if is_static(slot)}
    statics.update(slot.uid for slot in change.slots if is_static(slot))
    stored = _without(change, statics)
    events = await recorder.commit(stored) if stored != Change() else ()
    loaded.apply(_only(change, statics), ())
    recorder.notify()
    return events


def _without(change: Change, uids: set[str]) -> Change:
    current = change.current_slot_uid
    return msgspec.structs.replace(
        change,
        events=tuple(event for event in change.events if event.slot_uid not in uids),
        slots=tuple(slot for slot in change.slots if slot.uid not in uids),
        current_slot_uid=None if current in uids else current,
    )


def _only(change: Change, uids: set[str]) -> Change:
    current = change.current_slot_uid
    return Change(
        slots=tuple(slot for slot in change.slots if slot.uid in uids),
        current_slot_uid=current if current in uids else None,
    )
