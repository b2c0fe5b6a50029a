"""One answer of a model while it comes, and the events that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from agent_magics.context.tokens import count_payload, count_text
from agent_magics.core.chat import Done, ModelInfo, Retrying
from agent_magics.core.errors import ProviderError
from agent_magics.core.events import (
    AssistantMessage,
    IncompleteCause,
    NewEvent,
    Purpose,
    Retry,
    ToolCalled,
    Usage,
)
from agent_magics.core.messages import Reasoning, Text, TokenUsage, ToolCall
from agent_magics.core.text import clean_text


@dataclass(kw_only=True)
class IncomingAnswer:
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
    resumes_s: float | None = None

    @property
    def said(self) -> str:
        return clean_text("".join(self.text))

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted, of an answer that broke off too."""
        return self.done.usage if self.done else self.told_at_break

    def note_failure(self, error: Exception) -> None:
        """Remember what is known of an answer that failed."""
        self.resumes_s = None
        if isinstance(error, ProviderError):
            self.told_at_break = error.usage
            self.was_sent = error.was_sent

    def note_retry(self, event: Retrying, now_s: float) -> None:
        """Remember an attempt that failed, and when the next one begins."""
        self.retried.append(event)
        self.resumes_s = now_s + event.wait_s

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
    ) -> Usage | None:
        """Make the last attempt's usage event; what no server told stays None.

        An answer that was left before its next attempt began has that of the attempt before; None
        where `retries` has that already.
        """
        told, first = self.usage, self.first_token_s
        attempt = 1 + len(self.retried) if self.was_sent else 0
        # A turn that was stopped between two attempts must not count one that was never sent.
        if self._waits(now_s):
            if self.retried[-1].usage is not None:
                return None
            attempt = self.retried[-1].attempt
        return msgspec.structs.replace(
            self._usage(model, purpose, told, attempt),
            duration_ms=self._duration_ms(now_s),
            first_token_ms=None if first is None else round((first - self.began_s) * 1000),
            is_replayed=self._replayed_ms is not None,
        )

    def _waits(self, now_s: float) -> bool:
        """Return whether the next attempt has yet to begin."""
        return self.resumes_s is not None and now_s < self.resumes_s and not self.has_come

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

    @property
    def has_come(self) -> bool:
        """Return whether the model has begun to answer."""
        return bool(self.text or self.reasoning or self.calls or self.done)

    @property
    def thought(self) -> str:
        """What the model reasoned, as far as it is text."""
        if self.done is not None and self.done.reasoning is not None:
            return self.done.reasoning.text
        return clean_text("".join(self.reasoning))

    def _reasoning(self, model: ModelInfo) -> Reasoning | None:
        if self.done is not None and self.done.reasoning is not None:
            return self.done.reasoning
        if not self.reasoning:
            return None
        return Reasoning(text=self.thought, provider=model.provider, model=model.name)


def called(call: ToolCall) -> ToolCalled:
    """Make the event of a call."""
    return ToolCalled(
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        raw=call.raw,
    )


def with_estimate(usage: Usage, answer: IncomingAnswer, recorded: Sequence[NewEvent] = ()) -> Usage:
    """Note what an answer weighs by our own count, where its server didn't count it."""
    if usage.output_tokens is not None:
        return usage
    return msgspec.structs.replace(
        usage, estimated_output_tokens=estimated_output(answer, recorded)
    )


def estimated_output(answer: IncomingAnswer, recorded: Sequence[NewEvent] = ()) -> int:
    """Weigh all that a model wrote: text, reasoning and calls.

    The texts of `recorded` events, which are made of the answer, were counted with them. At least
    1 where anything came: that the prompt was read is known by it.
    """
    tokens = sum(event.tokens for event in recorded) + count_text(answer.thought)
    kinds = {type(event.payload) for event in recorded}
    if AssistantMessage not in kinds:
        tokens += count_text(answer.said)
    if ToolCalled not in kinds:
        tokens += sum(count_payload(called(call)) for call in answer.calls)
    # A stream that broke off after an empty chunk has cost its prompt.
    return max(tokens, int(answer.has_come))
