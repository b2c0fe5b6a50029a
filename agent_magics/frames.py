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
    Metadata,
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
from agent_magics.core.messages import (
    Assistant,
    File,
    System,
    ToolResult,
    User,
    Value,
    text_of,
)
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot

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
    "input_tokens": "Int64",
    "output_tokens": "Int64",
    "model": "category",
    "is_in_view": "boolean",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {"events": EVENT_COLUMNS, "turns": TURN_COLUMNS}
"""What each frame has, in order: column to dtype. Docs and tests read it."""

Outcome = Literal["completed", "stopped", "failed", "interrupted"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "stopped", "failed", "interrupted")
_BY_CAUSE: Mapping[IncompleteCause | None, Outcome] = {
    None: "failed",
    "stopped": "stopped",
    "process ended": "interrupted",
    "connection lost": "failed",
    "failed": "failed",
    "limit reached": "failed",
    "cut by length": "completed",
}


class Frames:
    """Data frames over the sessions that `read` gives; each call reads anew."""

    def __init__(self, read: Callable[[], Sequence[SessionState]]) -> None:
        self._read = read

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


def _text(payload: Payload) -> str | None:  # noqa: PLR0911 - one line a kind
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
