"""A session's ledger for looking at: which events match, and a line of each.

Made for 100,000 events: what costs is computed when it is asked for, and a window at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from agent_magics.core.events import (
    KINDS,
    Approval,
    AssistantMessage,
    Imported,
    LedgerEvent,
    Payload,
    ToolAnswered,
    ToolCalled,
    UserMessage,
    kind_of,
)
from agent_magics.core.messages import Value
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import lineage
from agent_magics.dataframes.events import text_of_payload
from agent_magics.dataframes.places import Places
from agent_magics.notebook.ledger_lines import line_of, parts_of, said_in


class Query(Value):
    """Which events: of a slot, of a turn, of some kinds, with all of the words in them.

    A turn is found along the slot's lineage, so that of a child may be its parent's; without a
    slot it is the turn of that number in each. Case doesn't count.
    """

    slot: str | None = None
    turn: int | None = None
    kinds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Tell whether it lets everything through."""
        return self == Query()


class Row(Value):
    """A line of the list. `turn` None: of no turn. `slot` "": of the session itself."""

    seq: int
    at: datetime
    slot: str
    turn: int | None
    kind: str
    line: str
    tokens: int


class LedgerRows:
    """The events of one state of a session."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._names = {slot.uid: slot.slot_id for slot in state.slots}
        self._made_places: Places | None = None

    def __len__(self) -> int:
        return len(self._state.events)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, deleted ones last."""
        by_life = sorted(self._state.slots, key=lambda slot: slot.deleted)
        return tuple(dict.fromkeys(slot.slot_id for slot in by_life))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that there are, in the order of the documentation."""
        there = {type(event.payload) for event in self._state.events}
        named = {str(kind.__struct_config__.tag) for kind in there}
        return tuple(kind for kind in KINDS if kind in named)

    def last_turn(self, slot: str | None) -> int:
        """Give the highest number that a turn has, in one slot or in any; 0 where there is none."""
        numbers = (
            self._places.index_of(event.turn_id)
            for event in self._state.events
            if isinstance(event.payload, UserMessage)
            and (slot is None or self._names.get(event.slot_uid or "") == slot)
        )
        return max((number for number in numbers if number is not None), default=0)

    def matching(self, query: Query) -> Sequence[int]:
        """Give the positions of the events that match, in order."""
        events = self._state.events
        if query.is_all:
            return range(len(events))
        bounds = self._bounds(query)
        words = tuple(word.casefold() for word in query.words)
        kinds = frozenset(query.kinds)
        return [
            at
            for at, event in enumerate(events)
            if (not kinds or kind_of(event.payload) in kinds)
            and (bounds is None or _is_within(event, bounds))
            and (query.turn is None or self._places.index_of(event.turn_id) == query.turn)
            and (not words or _has_all(event.payload, words))
        ]

    def rows(self, positions: Sequence[int], *, is_exact: bool = True) -> Iterator[Row]:
        """Make the lines of some events."""
        for at in positions:
            event = self._state.events[at]
            yield Row(
                seq=event.seq,
                at=event.created_at,
                slot=self._names.get(event.slot_uid or "", ""),
                turn=self._places.index_of(event.turn_id),
                kind=kind_of(event.payload),
                line=line_of(event.payload, is_exact=is_exact),
                tokens=event.tokens,
            )

    def event(self, seq: int) -> LedgerEvent | None:
        """Find an event by its seq."""
        events = self._state.events
        at = bisect_left(events, seq, key=lambda event: event.seq)
        return events[at] if at < len(events) and events[at].seq == seq else None

    @property
    def _places(self) -> Places:
        if self._made_places is None:
            self._made_places = Places(self._state)
        return self._made_places

    def _bounds(self, query: Query) -> dict[str, int | None] | None:
        """Give the slots to look in, each up to a seq; None: in all of them, and outside."""
        if query.slot is None:
            return None
        named = [slot for slot in self._state.slots if slot.slot_id == query.slot]
        if query.turn is None:
            return {slot.uid: None for slot in named}
        slots = {slot.uid: slot for slot in self._state.slots}
        living = [slot.uid for slot in named if not slot.deleted] or [s.uid for s in named]
        return {uid: bound for root in living for uid, bound in lineage(root, slots)}


def _is_within(event: LedgerEvent, bounds: Mapping[str, int | None]) -> bool:
    if event.slot_uid is None or event.slot_uid not in bounds:
        return False
    bound = bounds[event.slot_uid]
    return bound is None or event.seq <= bound


def _has_all(payload: Payload, words: Sequence[str]) -> bool:
    text = _searched(payload).casefold()
    return all(word in text for word in words)


def _searched(payload: Payload) -> str:
    match payload:
        case UserMessage(content=content):
            return "\n".join(part.text for part in parts_of(payload)) + said_in(content)
        case AssistantMessage() | Imported():
            return "\n".join(part.text for part in parts_of(payload))
        case ToolCalled(tool_name=name) | ToolAnswered(tool_name=name) | Approval(tool_name=name):
            return f"{name} {text_of_payload(payload)}"
        case _:
            return text_of_payload(payload) or line_of(payload)
