"""The ledger as data frames: what happened, one row each, with dtypes that are promised (D1).

pandas is imported inside the functions: nothing here is needed before someone asks for a frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    Clear,
    Imported,
    IncompleteCause,
    LedgerEvent,
    MemorySet,
    Payload,
    Retry,
    Rewind,
    SlotChanged,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    Usage,
    UserMessage,
    kind_of,
)
from agent_magics.core.memories import Memory
from agent_magics.core.messages import (
    Assistant,
    System,
    ToolResult,
    User,
    Value,
    text_of,
)
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot, lineage

if TYPE_CHECKING:
    import pandas as pd

UTC_TIME = "datetime64[us, UTC]"

EVENT_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "seq": "Int64",
    "slot": "category",
    "slot_uid": "string",
    "turn_id": "string",
    "kind": "category",
    "created_at": UTC_TIME,
    "tokens": "Int64",
    "text": "string",
    "tool": "category",
    "payload": "string",
}
TURN_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "slot": "category",
    "turn_id": "string",
    "turn_index": "Int64",
    "started_at": UTC_TIME,
    "ended_at": UTC_TIME,
    "seconds": "Float64",
    "outcome": "category",
    "user_text": "string",
    "assistant_text": "string",
    "tool_calls": "Int64",
    "requests": "Int64",
    "input_tokens": "Int64",
    "output_tokens": "Int64",
    "model": "category",
    "is_in_view": "boolean",
}
MEMORY_COLUMNS: Mapping[str, str] = {
    "memory_id": "string",
    "namespace": "category",
    "content": "string",
    "tags": "string",
    "source": "category",
    "created_at": UTC_TIME,
    "updated_at": UTC_TIME,
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "events": EVENT_COLUMNS,
    "turns": TURN_COLUMNS,
    "memories": MEMORY_COLUMNS,
}
"""What each frame has, in order: column to dtype. Docs and tests read it."""

Outcome = Literal["completed", "stopped", "failed", "interrupted"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "stopped", "failed", "interrupted")
_BY_CAUSE: Mapping[IncompleteCause | None, Outcome] = {
    None: "failed",
    "stopped": "stopped",
    "process ended": "interrupted",
    "connection lost": "interrupted",
    "failed": "failed",
    "limit reached": "failed",
    "cut by length": "completed",
    "ended by a plugin": "failed",
}


class Frames:
    """Data frames over the sessions and memories that are read; each call reads anew."""

    def __init__(
        self,
        read: Callable[[], Sequence[SessionState]],
        read_memories: Callable[[], Sequence[Memory]] = tuple,
    ) -> None:
        self._read = read
        self._read_memories = read_memories

    def __repr__(self) -> str:
        return "<frames: .events(), .turns() and .memories() give pandas data frames>"

    def events(self) -> pd.DataFrame:
        """Make a frame of every ledger event, in order, deleted slots and rewound turns included.

        `text` is what a person reads of it, `payload` the whole event as JSON, `slot` the slot's
        name (its last one, where it was renamed; missing for events of the session itself).
        """
        rows = [row for state in self._read() for row in _event_rows(state)]
        return _frame(rows, EVENT_COLUMNS)

    def turns(self) -> pd.DataFrame:
        """Make a frame of every turn; one row is one question and what came of it.

        `turn_index` counts along the slot's lineage, rewound numbers are given again (decision
        8); `is_in_view` tells which turns the slot still shows. `outcome` is missing while a turn
        runs. Tokens are the sums of the turn's own requests, missing where no server told any.
        """
        rows = [row for state in self._read() for row in _turn_rows(state)]
        frame = _frame(rows, TURN_COLUMNS)
        frame["outcome"] = frame["outcome"].cat.set_categories(OUTCOMES)
        return frame

    def memories(self) -> pd.DataFrame:
        """Make a frame of what lasts across sessions, the one that changed last first.

        Of the session's namespace; empty without a memory storage. `tags` are joined by commas.
        """
        return _frame([_memory_row(memory) for memory in self._read_memories()], MEMORY_COLUMNS)


def _frame(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  slow, and needed by nobody who asks for no frame

    made = {
        name: pd.Series([row[name] for row in rows], dtype="object").astype(_dtype(dtype))
        for name, dtype in columns.items()
    }
    return pd.DataFrame(made, columns=list(columns))


def _dtype(name: str) -> Any:
    import pandas as pd  # noqa: PLC0415  as above

    if name == "category":
        return pd.CategoricalDtype()
    # Missing is pd.NA in every text column, whatever pandas' default for "string" becomes.
    return pd.StringDtype("python") if name == "string" else name


def _memory_row(memory: Memory) -> dict[str, Any]:
    return {**msgspec.structs.asdict(memory), "tags": ", ".join(memory.tags)}


def _event_rows(state: SessionState) -> Iterable[dict[str, Any]]:
    names = {slot.uid: slot.slot_id for slot in state.slots}
    for event in state.events:
        payload = event.payload
        yield {
            "session_id": state.row.session_id,
            "session": state.row.title,
            "seq": event.seq,
            "slot": names.get(event.slot_uid or ""),
            "slot_uid": event.slot_uid,
            "turn_id": event.turn_id,
            "kind": kind_of(payload),
            "created_at": event.created_at,
            "tokens": event.tokens,
            "text": _text(payload),
            "tool": getattr(payload, "tool_name", None),
            "payload": msgspec.json.encode(payload).decode(),
        }


def _text(payload: Payload) -> str | None:  # noqa: C901, PLR0911, PLR0912  one line a kind
    """What a person reads of an event; None where it says nothing in words."""
    match payload:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return text_of(content)
        case ToolCalled(arguments=None, raw=raw):
            return raw
        case ToolCalled(arguments=arguments):
            return msgspec.json.encode(arguments).decode()
        case ToolAnswered(output=output):
            return output.content
        case SystemMessage(text=text):
            return text
        case Imported(message=System(text=text)):
            return text
        case Imported(message=User(content=content) | Assistant(content=content)):
            return text_of(content)
        case Imported(message=ToolResult(content=text)):
            return text
        case MemorySet(key=key, value=value):
            return f"{key}: {value}" if value is not None else f"{key} deleted"
        case SlotChanged(action=action, slot_id=slot_id):
            return f"{action} {slot_id}"
        case Retry(reason=reason):
            return reason
        case Approval(answer=answer):
            return answer
        case _:
            return None


class _Turn:
    """What one turn's events add up to."""

    def __init__(self, turn_id: str, slot_uid: str | None) -> None:
        self.turn_id = turn_id
        self.slot_uid = slot_uid
        self.started: LedgerEvent | None = None
        self.ended_at: datetime | None = None
        self.outcome: Outcome | None = None
        self.answers: list[str] = []
        self.calls = 0
        self.requests = 0
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.model: str | None = None

    def add(self, event: LedgerEvent) -> None:
        """Take in the turn's next event."""
        payload = event.payload
        match payload:
            case UserMessage():
                self.started = self.started or event
            case AssistantMessage():
                self._answered(payload)
            case ToolCalled():
                self.calls += 1
                self.outcome = None  # after its results the model speaks again
            case ToolAnswered() | SystemMessage():
                pass
            case Usage(purpose="turn"):
                self.requests += 1
                self.input_tokens = _added(self.input_tokens, payload.input_tokens)
                self.output_tokens = _added(self.output_tokens, payload.output_tokens)
            case _:
                return
        self.ended_at = event.created_at

    def _answered(self, answer: AssistantMessage) -> None:
        text = text_of(answer.content)
        if text:
            self.answers.append(text)
        if answer.model:
            self.model = f"{answer.provider}:{answer.model}" if answer.provider else answer.model
        is_whole = answer.status == "complete"
        self.outcome = "completed" if is_whole else _BY_CAUSE[answer.cause]

    @property
    def seconds(self) -> float | None:
        """How long it took, from the question to the last word; None while it runs."""
        if self.started is None or self.ended_at is None or self.outcome is None:
            return None
        return (self.ended_at - self.started.created_at).total_seconds()


def _turn_rows(state: SessionState) -> Iterable[dict[str, Any]]:
    slots = {slot.uid: slot for slot in state.slots}
    places = _places(slots, state.events)
    for turn in _turns(state.events):
        if turn.started is None:
            continue  # a turn counts once its question is recorded (decision 8)
        question = turn.started.payload
        assert isinstance(question, UserMessage)
        if state.running is not None and turn.turn_id not in state.running:
            turn.outcome = turn.outcome or "interrupted"  # its process ended before a word came
        slot = slots.get(turn.slot_uid or "")
        index, is_in_view = places[turn.turn_id]
        yield {
            "session_id": state.row.session_id,
            "session": state.row.title,
            "slot": None if slot is None else slot.slot_id,
            "turn_id": turn.turn_id,
            "turn_index": index,
            "started_at": turn.started.created_at,
            "ended_at": None if turn.outcome is None else turn.ended_at,
            "seconds": turn.seconds,
            "outcome": turn.outcome,
            "user_text": text_of(question.content),
            "assistant_text": "\n\n".join(turn.answers) if turn.answers else None,
            "tool_calls": turn.calls,
            "requests": turn.requests,
            "input_tokens": turn.input_tokens,
            "output_tokens": turn.output_tokens,
            "model": turn.model,
            "is_in_view": is_in_view and not (slot is not None and slot.deleted),
        }


def _turns(events: Iterable[LedgerEvent]) -> Iterable[_Turn]:
    turns: dict[str, _Turn] = {}
    for event in events:
        if event.turn_id is None:
            continue
        turn = turns.get(event.turn_id)
        if turn is None:
            turn = turns[event.turn_id] = _Turn(event.turn_id, event.slot_uid)
        turn.add(event)
    return turns.values()


class _Start(Value):
    """Where a turn begins."""

    seq: int
    turn_id: str


def _places(
    slots: Mapping[str, Slot], events: Sequence[LedgerEvent]
) -> dict[str, tuple[int, bool]]:
    """Tell each turn's number in its slot's lineage, and whether the slot still shows it."""
    moves = _moves(events)
    places: dict[str, tuple[int, bool]] = {}
    for uid in moves:
        view: list[_Start] = []
        removed: dict[int, list[_Start]] = {}
        numbers: dict[str, int] = {}
        for at, bound in lineage(uid, slots):
            for event in moves.get(at, ()):
                if bound is not None and event.seq > bound:
                    break
                view = _moved(event, view, removed)
                if at == uid and event.turn_id and isinstance(event.payload, UserMessage):
                    numbers[event.turn_id] = len(view)
        in_view = {start.turn_id for start in view}
        places.update((turn, (index, turn in in_view)) for turn, index in numbers.items())
    return places


def _moves(events: Iterable[LedgerEvent]) -> Mapping[str, list[LedgerEvent]]:
    """Keep, by slot, the events that begin turns or change the view."""
    moves: defaultdict[str, list[LedgerEvent]] = defaultdict(list)
    begun: set[str] = set()
    for event in events:
        match event.payload:
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
    """Give the turns in view after an event (decisions 8, 25)."""
    match event.payload:
        case Rewind(to_seq=to_seq, undoes=undoes):
            removed[event.seq] = [start for start in view if start.seq > to_seq]
            kept = [start for start in view if start.seq <= to_seq]
            back = [] if undoes is None else removed.pop(undoes, [])
            return sorted([*kept, *back], key=lambda start: start.seq)
        case Clear():
            removed[event.seq] = view
            return []
        case _:
            return [*view, _Start(seq=event.seq, turn_id=event.turn_id or "")]


def _added(total: int | None, more: int | None) -> int | None:
    """Add what is known; None only where nothing is."""
    if more is None:
        return total
    return more if total is None else total + more
