"""A session's ledger for looking at: which events match, and a line of each.

Made for 100,000 events that grow: what costs is computed when it is asked for, kept, and extended
by what came since. Not for two threads at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    Clear,
    Imported,
    LedgerEvent,
    Payload,
    Rewind,
    ToolAnswered,
    ToolCalled,
    UserMessage,
    kind_of,
)
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import lineage
from agent_magics.core.values import Value
from agent_magics.dataframes.events import text_of_payload
from agent_magics.dataframes.places import Places
from agent_magics.notebook.views.ledger.lines import line_of, parts_of, said_in

MAX_KEPT_QUERIES = 8


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
        """Return whether it lets everything through."""
        return self == Query()


class LedgerRow(Value):
    """A line of the list. `turn` None: of no turn. `slot` "": of the session itself."""

    seq: int
    at: datetime
    slot: str
    turn: int | None
    kind: str
    line: str
    tokens: int


class LedgerRows:
    """The events of a session, as they are in a state of it."""

    def __init__(self, state: SessionState) -> None:
        self._events: Sequence[LedgerEvent] = ()
        self._searched: list[str] = []
        self._places: Places | None = None
        self._found: dict[Query, tuple[list[int], int]] = {}  # matches, and up to where
        self._state = state
        self.take(state)

    def __len__(self) -> int:
        return len(self._events)

    def take(self, state: SessionState) -> None:
        """Go on to a newer state of the same session."""
        newer = state.events[len(self._events) :]
        if state.slots != self._state.slots:
            self._found.clear()  # names may have changed
        # Only these give turns their numbers; anything else leaves them as they are.
        if any(isinstance(event.payload, UserMessage | Rewind | Clear) for event in newer):
            self._places = None
        self._state, self._events = state, state.events
        self._names = {slot.uid: slot.slot_id for slot in state.slots}

    def last_turn(self, slot: str | None) -> int:
        """Return the highest number of a turn, in one slot or in any; 0 where there is none."""
        numbers = (
            self.turn_of(event)
            for event in self._events
            if isinstance(event.payload, UserMessage)
            and (slot is None or self._names.get(event.slot_uid or "") == slot)
        )
        return max((number for number in numbers if number is not None), default=0)

    def matching(self, query: Query) -> Sequence[int]:
        """Return the positions of the events that match, in order."""
        if query.is_all:
            return range(len(self._events))
        # Taken out and put in again, so that the one unused for longest is the first to go; only
        # what came since is searched.
        found, upto = self._found.pop(query, ([], 0))
        if upto < len(self._events):
            found += self._matches(query, upto)
        while len(self._found) >= MAX_KEPT_QUERIES:
            del self._found[next(iter(self._found))]
        self._found[query] = (found, len(self._events))
        return found

    def rows(self, positions: Sequence[int], *, is_exact: bool = True) -> Iterator[LedgerRow]:
        """Make the lines of some events."""
        for at in positions:
            event = self._events[at]
            yield LedgerRow(
                seq=event.seq,
                at=event.created_at,
                slot=self.slot_of(event),
                turn=self.turn_of(event),
                kind=kind_of(event.payload),
                line=line_of(event.payload, is_exact=is_exact),
                tokens=event.tokens,
            )

    def position(self, seq: int) -> int | None:
        """Find where the event with a seq stands; None where there is none."""
        at = bisect_left(self._events, seq, key=lambda event: event.seq)
        return at if at < len(self._events) and self._events[at].seq == seq else None

    def event(self, at: int) -> LedgerEvent:
        """Return the event at a position."""
        return self._events[at]

    def slot_of(self, event: LedgerEvent) -> str:
        """Name the slot of an event; "" for one of the session itself."""
        return self._names.get(event.slot_uid or "", "")

    def turn_of(self, event: LedgerEvent) -> int | None:
        """Return the number of an event's turn along its slot's lineage."""
        if self._places is None:
            self._places = Places(self._state)
        return self._places.index_of(event.turn_id)

    def _matches(self, query: Query, start: int) -> list[int]:
        bounds = self._bounds(query)
        words = tuple(word.casefold() for word in query.words)
        kinds = frozenset(query.kinds)
        if words:
            self._read_texts()
        return [
            at
            for at, event in enumerate(islice(self._events, start, None), start)
            if (not kinds or kind_of(event.payload) in kinds)
            and (bounds is None or _is_within(event, bounds))
            and (query.turn is None or self.turn_of(event) == query.turn)
            and (not words or all(word in self._searched[at] for word in words))
        ]

    def _read_texts(self) -> None:
        """Keep what is searched of each event: a second search takes a tenth of the first."""
        newer = islice(self._events, len(self._searched), None)
        self._searched += [_searched(event.payload).casefold() for event in newer]

    def _bounds(self, query: Query) -> dict[str, int | None] | None:
        """Return the slots to look in, each up to a seq; None: in all of them, and outside."""
        if query.slot is None:
            return None
        named = [slot for slot in self._state.slots if slot.slot_id == query.slot]
        if query.turn is None:
            return {slot.uid: None for slot in named}
        slots = {slot.uid: slot for slot in self._state.slots}
        # A name may have been used again; the living slot is meant, if there is one.
        living = [slot.uid for slot in named if not slot.deleted] or [s.uid for s in named]
        return {uid: bound for root in living for uid, bound in lineage(root, slots)}


def slot_names(state: SessionState) -> tuple[str, ...]:
    """Return the names of a session's slots, deleted ones last."""
    by_life = sorted(state.slots, key=lambda slot: slot.deleted)
    return tuple(dict.fromkeys(slot.slot_id for slot in by_life))


def _is_within(event: LedgerEvent, bounds: Mapping[str, int | None]) -> bool:
    if event.slot_uid is None or event.slot_uid not in bounds:
        return False
    bound = bounds[event.slot_uid]
    return bound is None or event.seq <= bound


def _searched(payload: Payload) -> str:
    match payload:
        case UserMessage(content=content):
            return "\n".join([said_in(content), *(part.text for part in parts_of(payload))])
        case AssistantMessage() | Imported():
            return "\n".join(part.text for part in parts_of(payload))
        case ToolCalled(tool_name=name) | ToolAnswered(tool_name=name) | Approval(tool_name=name):
            return f"{name} {text_of_payload(payload)}"
        case _:
            return text_of_payload(payload) or line_of(payload)
