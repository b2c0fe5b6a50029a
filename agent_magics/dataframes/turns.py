"""Turns as rows: a question and what came of it; and the tool calls that were made in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    IncompleteCause,
    LedgerEvent,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    Usage,
    UserMessage,
)
from agent_magics.core.messages import text_of
from agent_magics.core.ports import SessionState
from agent_magics.dataframes.columns import Row
from agent_magics.dataframes.places import Places
from agent_magics.dataframes.shown import model_name

Outcome = Literal["completed", "stopped", "failed", "interrupted"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "stopped", "failed", "interrupted")
CALL_OUTCOMES = ("ok", "error", "not run", "unknown")
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
        self.cached_tokens: int | None = None
        self.cost_usd: float | None = None
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
                self._spent(payload)
            case _:
                return
        self.ended_at = event.created_at

    def _answered(self, answer: AssistantMessage) -> None:
        text = text_of(answer.content)
        if text:
            self.answers.append(text)
        if answer.model:
            self.model = model_name(answer.provider, answer.model)
        is_whole = answer.status == "complete"
        self.outcome = "completed" if is_whole else _BY_CAUSE[answer.cause]

    def _spent(self, spent: Usage) -> None:
        self.requests += spent.attempt > 0  # else nobody was asked
        self.input_tokens = _added(self.input_tokens, spent.input_tokens)
        self.output_tokens = _added(self.output_tokens, spent.output_tokens)
        if spent.input_tokens is not None:
            self.cached_tokens = _added(self.cached_tokens, spent.cached_tokens)
        if spent.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + spent.cost_usd

    @property
    def seconds(self) -> float | None:
        """How long it took, from the question to the last word; None while it runs."""
        if self.started is None or self.ended_at is None or self.outcome is None:
            return None
        return (self.ended_at - self.started.created_at).total_seconds()


def turn_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each turn, in the order they began."""
    places = Places(state)
    for turn in _turns(state.events):
        if turn.started is None:
            continue  # a turn counts once its question is recorded
        question = turn.started.payload
        assert isinstance(question, UserMessage)
        if state.running is not None and turn.turn_id not in state.running:
            turn.outcome = turn.outcome or "interrupted"  # its process ended before a word came
        yield {
            **places.columns(turn.slot_uid, turn.turn_id),
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
            "cached_tokens": turn.cached_tokens,
            "cost_usd": turn.cost_usd,
            "model": turn.model,
            "is_in_view": places.is_in_view(turn.turn_id),
        }


def call_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each tool call, in the order they were made, with what came of it."""
    places = Places(state)
    answers = _answers(state.events)
    words = {
        (event.turn_id, event.payload.call_id): event.payload.answer
        for event in state.events
        if isinstance(event.payload, Approval)
    }
    for event in state.events:
        call = event.payload
        if not isinstance(call, ToolCalled):
            continue
        waiting = answers.get((event.turn_id, call.call_id))
        yield {
            **places.columns(event.slot_uid, event.turn_id),
            "seq": event.seq,
            "call_id": call.call_id,
            "tool": call.tool_name,
            "arguments": call.raw if call.arguments is None else _json(call.arguments),
            "approval": words.get((event.turn_id, call.call_id)),
            "called_at": event.created_at,
            **_answer_of(waiting.pop(0) if waiting else None),
        }


def _answers(
    events: Iterable[LedgerEvent],
) -> Mapping[tuple[str | None, str], list[LedgerEvent]]:
    """Keep the results by turn and call id; models use the same id again in other turns."""
    found: defaultdict[tuple[str | None, str], list[LedgerEvent]] = defaultdict(list)
    for event in events:
        if isinstance(event.payload, ToolAnswered):
            found[event.turn_id, event.payload.call_id].append(event)
    return found


def _answer_of(event: LedgerEvent | None) -> dict[str, Any]:
    if event is None or not isinstance(event.payload, ToolAnswered):
        names = ("ran_with", "outcome", "answered_at", "duration_ms", "output", "output_tokens")
        return dict.fromkeys(names)
    answer = event.payload
    return {
        "ran_with": None if answer.ran_with is None else _json(answer.ran_with),
        "outcome": _outcome_of(answer),
        "answered_at": event.created_at,
        "duration_ms": answer.duration_ms,
        "output": answer.output.content,
        "output_tokens": event.tokens,
    }


def _outcome_of(answer: ToolAnswered) -> str:
    """Return what came of a call; of one whose process ended nobody knows whether it ran."""
    if answer.duration_ms is not None:
        return "error" if answer.output.is_error else "ok"
    return str(answer.output.metadata.get("outcome") or "not run")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


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


def _added(total: int | None, more: int | None) -> int | None:
    """Add what is known; None only where nothing is."""
    if more is None:
        return total
    return more if total is None else total + more
