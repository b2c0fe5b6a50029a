"""Where each turn stands: its number along its slot's lineage, and whether it is still in view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from agent_magics.core.events import Clear, LedgerEvent, Rewind, UserMessage
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import lineage
from agent_magics.core.values import Value
from agent_magics.dataframes.columns import Row


class _Start(Value):
    """Where a turn begins."""

    seq: int
    turn_id: str


class Places:
    """The places of a session's turns (docs/decisions.md#25)."""

    def __init__(self, state: SessionState) -> None:
        slots = {slot.uid: slot for slot in state.slots}
        self._session, self._slots = state.row, slots
        moves = _moves(state.events)
        self._places: dict[str, tuple[int, bool]] = {}
        for uid in moves:
            view: list[_Start] = []
            removed: dict[int, list[_Start]] = {}
            numbers: dict[str, int] = {}
            # The parent's turns first, as numbers go on along the lineage.
            for at, bound in lineage(uid, slots):
                for event in moves.get(at, ()):
                    if bound is not None and event.seq > bound:
                        break
                    view = _moved(event, view, removed)
                    if at == uid and event.turn_id and isinstance(event.payload, UserMessage):
                        numbers[event.turn_id] = len(view)
            slot = slots.get(uid)
            is_gone = slot is not None and slot.deleted
            # A deleted slot shows nothing, though its events are still there for its children.
            shown = set() if is_gone else {start.turn_id for start in view}
            self._places.update((turn, (index, turn in shown)) for turn, index in numbers.items())

    def index_of(self, turn_id: str | None) -> int | None:
        """Return a turn's number in its slot; None for what is no turn, or never began."""
        place = self._places.get(turn_id or "")
        return None if place is None else place[0]

    def columns(self, slot_uid: str | None, turn_id: str | None) -> Row:
        """Return the columns that say where a row belongs."""
        slot = self._slots.get(slot_uid or "")
        return {
            "session_id": self._session.session_id,
            "session": self._session.title,
            "slot": None if slot is None else slot.slot_id,
            "turn_id": turn_id,
            "turn_index": self.index_of(turn_id),
        }

    def is_in_view(self, turn_id: str | None) -> bool:
        """Return whether the turn's slot still shows it; never in a deleted slot."""
        place = self._places.get(turn_id or "")
        return place is not None and place[1]


def _moves(events: Iterable[LedgerEvent]) -> Mapping[str, list[LedgerEvent]]:
    """Keep, by slot, the events that begin turns or change the view."""
    moves: defaultdict[str, list[LedgerEvent]] = defaultdict(list)
    begun: set[str] = set()
    for event in events:
        match event.payload:
            # Steering is a user message as well; only a turn's first one begins it.
            case UserMessage() if event.turn_id and event.turn_id not in begun:
                begun.add(event.turn_id)
            case Rewind() | Clear():
                pass
            case _:
                continue
        moves[event.slot_uid or ""].append(event)
    return moves


def _moved(
    event: LedgerEvent, view: list[_Start], removed: dict[int, list[_Start]]
) -> list[_Start]:
    """Return the turns in view after an event."""
    match event.payload:
        case Rewind(to_seq=to_seq, undoes=undoes):
            # As `context.view` does it: kept by the seq of what removed it, for the undo to bring
            # back.
            removed[event.seq] = [start for start in view if start.seq > to_seq]
            kept = [start for start in view if start.seq <= to_seq]
            back = [] if undoes is None else removed.pop(undoes, [])
            return sorted([*kept, *back], key=lambda start: start.seq)
        case Clear():
            removed[event.seq] = view
            return []
        case _:
            view.append(_Start(seq=event.seq, turn_id=event.turn_id or ""))
            return view
