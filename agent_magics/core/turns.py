"""A turn as it is watched: events for showing, and the outcome that is the truth.

Order: `TurnStarted` first; every `ToolStarted` before its `ToolEnded`;
exactly one of `TurnCompleted`, `TurnCancelled`, `TurnFailed` last. Events may be left unread:
the outcome comes by its own way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from agent_magics.core.approval import ApprovalWord
from agent_magics.core.errors import AgentError
from agent_magics.core.messages import ToolOutput
from agent_magics.core.values import TokenUsage, Value


class TurnStarted(Value, tag="turn_started"):
    model: str
    turn_index: int


class TextChunk(Value, tag="text"):
    text: str


class ReasoningChunk(Value, tag="reasoning"):
    text: str


class ToolStarted(Value, tag="tool_started"):
    call_id: str
    tool_name: str
    arguments: dict[str, Any]


class ToolEnded(Value, tag="tool_ended"):
    call_id: str
    tool_name: str
    output: ToolOutput
    duration_ms: int


class ErrorNoted(Value, tag="error"):
    """An error that doesn't end the turn by itself: of a tool, a limit, upkeep."""

    code: str
    message: str
    call_id: str | None = None


class ApprovalRequested(Value, tag="approval_requested"):
    """A tool waits for a person."""

    call_id: str
    tool_name: str
    preview: str


class ApprovalAnswered(Value, tag="approval_answered"):
    call_id: str
    tool_name: str
    word: ApprovalWord


class ContextCompacted(Value, tag="context_compacted"):
    """Older history left the requests. `turns` whole ones were summarised, and where
    `is_turn_cut` the beginning of the one after them.
    """

    reason: str
    tokens_before: int
    tokens_after: int
    degraded: bool
    turns: int = 0
    is_turn_cut: bool = False


class UsageReported(Value, tag="usage_reported"):
    usage: TokenUsage
    purpose: str = "turn"


class RetryScheduled(Value, tag="retry"):
    attempt: int
    reason: str
    wait_s: float


class TurnNotice(Value, tag="notice"):
    """Something to show while the turn runs; it isn't kept."""

    text: str


class TurnWarning(Value, tag="warning"):
    text: str


class SummaryWritten(Value, tag="summary_written"):
    """An automatic summary of the slot was written."""

    slot_id: str
    characters: int


class SummaryFailed(Value, tag="summary_failed"):
    """An automatic summary failed; the turn didn't."""

    slot_id: str
    message: str


class MemoriesChanged(Value, tag="memories_changed"):
    """What was said has been read for memories that last, and so many changed."""

    created: int = 0
    updated: int = 0
    deleted: int = 0


class TurnCompleted(Value, tag="turn_completed"):
    pass


class TurnCancelled(Value, tag="turn_cancelled"):
    pass


class TurnFailed(Value, tag="turn_failed"):
    code: str
    message: str


TurnPayload = (
    TurnStarted
    | TextChunk
    | ReasoningChunk
    | ToolStarted
    | ToolEnded
    | ErrorNoted
    | ApprovalRequested
    | ApprovalAnswered
    | ContextCompacted
    | UsageReported
    | RetryScheduled
    | TurnNotice
    | TurnWarning
    | SummaryWritten
    | SummaryFailed
    | MemoriesChanged
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
)


class AgentEvent(Value):
    """One thing that happened in a running turn; `sequence` rises by one within the turn."""

    session_id: str
    slot_id: str
    turn_id: str
    sequence: int
    created_at: datetime
    payload: TurnPayload


class Reply(Value):
    """What a turn gave: `text` is the model's answer, `seq` its ledger event.

    `usage` sums the turn's requests (cost, never context size); None where no server told.
    `context_tokens` and `context_window` are the last request's size and limit;
    `context_threshold` is the size past which the slot is compacted. `cost_usd` is the turn's
    price; None where a part of it isn't known.
    """

    text: str
    seq: int | None
    slot_id: str
    turn_id: str
    model: str
    tool_calls: tuple[str, ...] = ()
    usage: TokenUsage | None = None
    duration_s: float = 0.0
    context_tokens: int = 0
    context_window: int = 0
    context_threshold: int = 0
    cost_usd: float | None = None


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    reply: Reply
    warnings: tuple[str, ...] = ()


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """The turn was stopped; `reply` is what had been said."""

    reply: Reply


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    error: AgentError
    reply: Reply


class Panicked(msgspec.Struct, frozen=True, kw_only=True):
    """Neither our error nor a cancel: a fault of ours or a plugin's."""

    error: BaseException
    reply: Reply


TurnOutcome = Completed | Cancelled | Failed | Panicked
