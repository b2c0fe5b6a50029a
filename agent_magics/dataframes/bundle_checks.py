"""What must hold of a session that comes from a file, before any of it is stored.

The file may be anybody's: whatever would break a store, a view or a rule of ours is refused, and
what grants rights (tools that run without asking) isn't taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import (
    DEFAULT_SLOT,
    Slot,
    Static,
    check_slot_config,
    check_slot_id,
    clamped,
)
from agent_magics.core.text import clean_text

MAX_ID_CHARACTERS = 200
MAX_TITLE_CHARACTERS = 1_000
MAX_NUMBER = 2**31


def check_state(state: SessionState, name: str) -> SessionState:
    """Return the session as it may be stored; raise `InputValidation` with what is wrong."""
    for reason in _faults(state):
        raise InputValidation(f"{name} can't be imported: {reason}. Nothing was imported.")
    return msgspec.structs.replace(state, slots=tuple(_untrusted(slot) for slot in state.slots))


def has_rights(state: SessionState) -> bool:
    """Return whether a slot lets tools run without asking."""
    return any("auto" in slot.config.approval.values() for slot in state.slots)


def _untrusted(slot: Slot) -> Slot:
    slot = clamped(slot)
    # A file from somebody else must not bring the right to run code along.
    config = msgspec.structs.replace(slot.config, approval={})
    return msgspec.structs.replace(slot, config=config)


def _faults(state: SessionState) -> Iterator[str]:
    """Find what is wrong, one after the other; later ones may rely on what earlier ones hold."""
    yield from _bad_names(state)
    yield from _bad_slots(state)
    yield from _bad_lineages(state)
    yield from _bad_events(state)


def _bad_names(state: SessionState) -> Iterator[str]:
    if len(state.row.title or "") > MAX_TITLE_CHARACTERS:
        yield f"its title has over {MAX_TITLE_CHARACTERS:,} characters"
    named: list[str | None] = [state.row.session_id, state.row.current_slot_uid]
    named += [name for slot in state.slots for name in (slot.uid, slot.parent_uid)]
    named += [name for one in state.checkpoints for name in (one.checkpoint_id, one.slot_uid)]
    named += [name for draft in state.drafts for name in (draft.slot_uid, draft.turn_id)]
    named += [name for event in state.events for name in (event.slot_uid, event.turn_id)]
    for text in named:
        if text is not None and not _is_plain(text):
            yield f"the name {text[:40]!r} in it can't be used"
    if not state.row.session_id.strip():
        yield "its session has no id"


def _bad_slots(state: SessionState) -> Iterator[str]:
    yield from _twice("slot", (slot.uid for slot in state.slots))
    living = [slot.slot_id for slot in state.slots if not slot.deleted]
    yield from _twice("slot", living)
    if DEFAULT_SLOT not in living:
        yield f"it has no slot {DEFAULT_SLOT}"
    for slot in state.slots:
        if isinstance(slot.config.source, Static):
            yield f'its slot "{slot.slot_id}" is static, and those are never stored'
        try:
            check_slot_id(slot.slot_id)
            check_slot_config(clamped(slot).config)
        except InputValidation as error:
            yield error.message.rstrip(".")
        if not all(map(_is_number, (slot.fork_seq, slot.focus_seq or 0, slot.generation))):
            yield f'slot "{slot.slot_id}" has a number that can\'t be'
    yield from _twice("checkpoint", (one.checkpoint_id for one in state.checkpoints))
    yield from _twice("draft", (f"{one.slot_uid} {one.turn_id}" for one in state.drafts))


def _bad_lineages(state: SessionState) -> Iterator[str]:
    parents = {slot.uid: slot.parent_uid for slot in state.slots}
    ends: set[str] = set()  # slots from which the way up is known to end
    for slot in state.slots:
        if slot.parent_uid is not None and slot.parent_uid not in parents:
            yield f'the parent of slot "{slot.slot_id}" isn\'t in it'
        way: dict[str, None] = {}
        at: str | None = slot.uid
        while at is not None and at not in ends:
            if at in way:
                yield f'slot "{slot.slot_id}" is its own ancestor'
                return
            way[at] = None
            at = parents.get(at)
        ends.update(way)


def _bad_events(state: SessionState) -> Iterator[str]:
    slots = {slot.uid for slot in state.slots}
    before = 0
    for event in state.events:
        # Everything searches events by bisection, which finds nothing in a list that isn't sorted.
        if event.seq <= before:
            yield f"seq {event.seq} comes after seq {before}"
        if event.slot_uid is not None and event.slot_uid not in slots:
            yield f"the slot of the event with seq {event.seq} isn't in it"
        if not _is_number(event.seq) or not _is_number(event.tokens):
            yield f"the event with seq {event.seq} has a number that can't be"
        if event.created_at.tzinfo is None:
            yield f"the time of the event with seq {event.seq} names no zone"
        before = event.seq
    if any(slot.fork_seq > before for slot in state.slots):
        yield "a slot forks from an event that isn't in it"
    times = [state.row.created_at, state.row.updated_at]
    times += [slot.created_at for slot in state.slots]
    times += [checkpoint.created_at for checkpoint in state.checkpoints]
    if any(time.tzinfo is None for time in times):
        yield "a time in it names no zone"


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f'its {what} "{name[:40]}" is there twice'
        seen.add(name)


def _is_plain(text: str) -> bool:
    """Return whether a name can be stored, shown and looked up."""
    return len(text) <= MAX_ID_CHARACTERS and clean_text(text) == text and text.isprintable()


def _is_number(number: int) -> bool:
    return 0 <= number < MAX_NUMBER
