"""One answer of a model while it comes, and the events that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from agent_magics.core.chat import Done, ModelInfo, Retrying
from agent_magics.core.errors import ProviderError
from agent_magics.core.events import (
    AssistantMessage,
    IncompleteCause,
    Purpose,
    Retry,
    ToolCalled,
    Usage,
)
from agent_magics.core.messages import Reasoning, Text, TokenUsage, ToolCall
from agent_magics.core.text import clean_text

T = TypeVar("T")


@dataclass(kw_only=True)
class Answer:
    """What has come of one answer so far."""

    began_s: float
    estimated_tokens: int
    digest: str
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    retried: list[Retrying] = field(default_factory=list)
    done: Done | None = None
    told_at_break: TokenUsage | None = None
    was_sent: bool = True
    first_token_s: float | None = None

    @property
    def said(self) -> str:
        return clean_text("".join(self.text))

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted, of an answer that broke off too."""
        return self.done.usage if self.done else self.told_at_break

    def note_failure(self, error: Exception) -> None:
        """Remember what is known of an answer that failed."""
        if isinstance(error, ProviderError):
            self.told_at_break = error.usage
            self.was_sent = error.was_sent

    def retries(self, model: ModelInfo, purpose: Purpose) -> list[Retry | Usage]:
        """Make the events of the attempts that failed; each with what its server had counted."""
        made: list[Retry | Usage] = []
        for event in self.retried:
            if event.usage is not None:
                made.append(self._usage(model, purpose, event.usage, event.attempt))
            made.append(
                Retry(
                    provider=model.provider,
                    model=model.name,
                    attempt=event.attempt,
                    reason=event.reason,
                    wait_ms=round(event.wait_s * 1000),
                )
            )
        return made

    def message(
        self, model: ModelInfo, text: str, cause: IncompleteCause | None, detail: str = ""
    ) -> AssistantMessage:
        """Make the assistant message; with a `cause` it is incomplete."""
        return AssistantMessage(
            content=(Text(text=text),) if text else (),
            status="complete" if cause is None else "incomplete",
            cause=cause,
            detail=clean_text(detail),
            reasoning=self._reasoning(model),
            provider=model.provider,
            model=model.name,
        )

    def usage_event(
        self,
        model: ModelInfo,
        purpose: Purpose,
        now_s: float,
    ) -> Usage:
        """Make the request's usage event; what no server told stays None (decision 42)."""
        told, first = self.usage, self.first_token_s
        attempt = 1 + len(self.retried) if self.was_sent else 0
        return msgspec.structs.replace(
            self._usage(model, purpose, told, attempt),
            duration_ms=self._duration_ms(now_s),
            first_token_ms=None if first is None else round((first - self.began_s) * 1000),
            is_replayed=self._replayed_ms is not None,
        )

    def _usage(
        self, model: ModelInfo, purpose: Purpose, told: TokenUsage | None, attempt: int
    ) -> Usage:
        return Usage(
            purpose=purpose,
            provider=model.provider,
            model=model.name,
            attempt=attempt,
            input_tokens=told.input_tokens if told else None,
            output_tokens=told.output_tokens if told else None,
            cached_tokens=told.cached_tokens if told else 0,
            reasoning_tokens=told.reasoning_tokens if told else 0,
            estimated_input_tokens=self.estimated_tokens,
            digest=self.digest,
        )

    @property
    def _replayed_ms(self) -> int | None:
        return self.done.replayed_ms if self.done else None

    def _duration_ms(self, now_s: float) -> int:
        replayed_ms = self._replayed_ms
        return round((now_s - self.began_s) * 1000) if replayed_ms is None else replayed_ms

    def _reasoning(self, model: ModelInfo) -> Reasoning | None:
        if self.done is not None and self.done.reasoning is not None:
            return self.done.reasoning
        if not self.reasoning:
            return None
        text = clean_text("".join(self.reasoning))
        return Reasoning(text=text, provider=model.provider, model=model.name)


def called(call: ToolCall) -> ToolCalled:
    """Make the event of a call."""
    return ToolCalled(
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        raw=call.raw,
    )


def added(so_far: TokenUsage | None, more: TokenUsage) -> TokenUsage:
    """Sum the cost of two requests."""
    if so_far is None:
        return more
    return TokenUsage(
        input_tokens=so_far.input_tokens + more.input_tokens,
        output_tokens=so_far.output_tokens + more.output_tokens,
        cached_tokens=so_far.cached_tokens + more.cached_tokens,
        reasoning_tokens=so_far.reasoning_tokens + more.reasoning_tokens,
    )


def with_estimate(usage: Usage, said_tokens: int) -> Usage:
    """Note what an answer weighs by our own count, where no server counted the request."""
    if usage.input_tokens is not None or usage.output_tokens is not None:
        return usage
    return msgspec.structs.replace(usage, estimated_output_tokens=said_tokens)
