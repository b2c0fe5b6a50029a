"""What each frame has: its columns, in order, with the dtypes that are promised.

pandas is imported inside the functions: nothing here is needed before someone asks for a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UTC_TIME = "datetime64[us, UTC]"
Row = Mapping[str, Any]

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
    "cached_tokens": "Int64",
    "cost_usd": "Float64",
    "model": "category",
    "is_in_view": "boolean",
}
CALL_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "slot": "category",
    "turn_id": "string",
    "turn_index": "Int64",
    "seq": "Int64",
    "call_id": "string",
    "tool": "category",
    "arguments": "string",
    "ran_with": "string",
    "approval": "category",
    "outcome": "category",
    "called_at": UTC_TIME,
    "answered_at": UTC_TIME,
    "duration_ms": "Int64",
    "output": "string",
    "output_tokens": "Int64",
}
SLOT_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "slot": "string",
    "slot_uid": "string",
    "mode": "category",
    "recent_messages": "Int64",
    "parent": "string",
    "parent_uid": "string",
    "fork_seq": "Int64",
    "created_at": UTC_TIME,
    "turns": "Int64",
    "events": "Int64",
    "tokens": "Int64",
    "model": "category",
    "system_prompt": "string",
    "generation": "Int64",
    "checkpoint_id": "string",
    "is_current": "boolean",
    "is_deleted": "boolean",
}
CHECKPOINT_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "slot": "category",
    "slot_uid": "string",
    "checkpoint_id": "string",
    "parent_checkpoint_id": "string",
    "generation": "Int64",
    "created_at": UTC_TIME,
    "reason": "category",
    "first_retained_seq": "Int64",
    "source_max_seq": "Int64",
    "tokens_before": "Int64",
    "tokens_after": "Int64",
    "model": "category",
    "is_degraded": "boolean",
    "is_active": "boolean",
    "summary": "string",
}
USAGE_COLUMNS: Mapping[str, str] = {
    "session_id": "string",
    "session": "string",
    "slot": "category",
    "turn_id": "string",
    "turn_index": "Int64",
    "seq": "Int64",
    "created_at": UTC_TIME,
    "purpose": "category",
    "model": "category",
    "attempt": "Int64",
    "input_tokens": "Int64",
    "output_tokens": "Int64",
    "cached_tokens": "Int64",
    "reasoning_tokens": "Int64",
    "estimated_input_tokens": "Int64",
    "estimated_output_tokens": "Int64",
    "cost_usd": "Float64",
    "is_replayed": "boolean",
    "duration_ms": "Int64",
    "first_token_ms": "Int64",
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
    "tool_calls": CALL_COLUMNS,
    "slots": SLOT_COLUMNS,
    "checkpoints": CHECKPOINT_COLUMNS,
    "usage": USAGE_COLUMNS,
    "memories": MEMORY_COLUMNS,
}
"""What each frame has, in order: column to dtype. Docs and tests read it."""


def frame_of(
    rows: Sequence[Row],
    columns: Mapping[str, str],
    categories: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Make a frame; `categories` are all that a column may hold, whether it does or not."""
    import pandas as pd  # noqa: PLC0415  slow, and needed by nobody who asks for no frame

    made = {
        name: pd.Series([row[name] for row in rows], dtype="object").astype(_dtype(dtype))
        for name, dtype in columns.items()
    }
    for name, known in (categories or {}).items():
        made[name] = made[name].cat.set_categories(list(known))
    return pd.DataFrame(made, columns=list(columns))


def _dtype(name: str) -> Any:
    import pandas as pd  # noqa: PLC0415  as above

    if name == "category":
        return pd.CategoricalDtype()
    # Missing is pd.NA in every text column, whatever pandas' default for "string" becomes.
    return pd.StringDtype("python") if name == "string" else name
