"""The events that an answer becomes: its message, its calls, failed attempts, what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agent_magics.context.tokens import count_payload, count_text
from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import (
    AssistantMessage,
    IncompleteCause,
    NewEvent,
    Purpose,
    Retry,
    ToolCalled,
    Usage,
)
from agent_magics.core.messages import Text, ToolCall
from agent_magics.core.text import clean_text
from agent_magics.core.values import TokenUsage
from agent_magics.session.request.incoming_answer import IncomingAnswer


def message_event(
    answer: IncomingAnswer,
    model: ModelInfo,
    text: str,
    cause: IncompleteCause | None,
    detail: str = "",
) -> AssistantMessage:
    """Make the assistant's message; with a `cause` it is incomplete."""
    return AssistantMessage(
        content=(Text(text=text),) if text else (),
        status="complete" if cause is None else "incomplete",
        cause=cause,
        detail=clean_text(detail),
        reasoning=answer.reasoning_of(model),
        provider=model.provider,
        model=model.name,
    )


def call_event(call: ToolCall) -> ToolCalled:
    """Make the event of a call."""
    return ToolCalled(
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        raw=call.raw,
    )


def retry_events(answer: IncomingAnswer, model: ModelInfo, purpose: Purpose) -> list[Retry | Usage]:
    """Make the events of the attempts that failed; each with what its server had counted."""
    made: list[Retry | Usage] = []
    for failed in answer.retried:
        if failed.usage is not None:
            made.append(_usage(answer, model, purpose, failed.usage, failed.attempt))
        made.append(
            Retry(
                provider=model.provider,
                model=model.name,
                attempt=failed.attempt,
                reason=failed.reason,
                wait_ms=round(failed.wait_s * 1000),
            )
        )
    return made


def usage_event(
    answer: IncomingAnswer, model: ModelInfo, purpose: Purpose, now_s: float
) -> Usage | None:
    """Make the last attempt's usage event; what no server counted stays None.

    An answer that was left before its next attempt began has that of the attempt before; None
    where `retry_events` has that already.
    """
    first_s = answer.first_token_s
    attempt = 1 + len(answer.retried) if answer.was_sent else 0
    # A turn that was stopped between two attempts must not count one that was never sent.
    if answer.waits_for_attempt(now_s):
        if answer.retried[-1].usage is not None:
            return None
        attempt = answer.retried[-1].attempt
    replayed_ms = answer.done.replayed_ms if answer.done else None
    measured_ms = round((now_s - answer.began_s) * 1000)
    return msgspec.structs.replace(
        _usage(answer, model, purpose, answer.usage, attempt),
        duration_ms=measured_ms if replayed_ms is None else replayed_ms,
        first_token_ms=None if first_s is None else round((first_s - answer.began_s) * 1000),
        is_replayed=replayed_ms is not None,
    )


def _usage(
    answer: IncomingAnswer,
    model: ModelInfo,
    purpose: Purpose,
    counted: TokenUsage | None,
    attempt: int,
) -> Usage:
    return Usage(
        purpose=purpose,
        provider=model.provider,
        model=model.name,
        attempt=attempt,
        input_tokens=counted.input_tokens if counted else None,
        output_tokens=counted.output_tokens if counted else None,
        cached_tokens=counted.cached_tokens if counted else 0,
        reasoning_tokens=counted.reasoning_tokens if counted else 0,
        estimated_input_tokens=answer.estimated_tokens,
        digest=answer.digest,
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
    tokens = sum(event.tokens for event in recorded) + count_text(answer.reasoning_text)
    kinds = {type(event.payload) for event in recorded}
    if AssistantMessage not in kinds:
        tokens += count_text(answer.full_text)
    if ToolCalled not in kinds:
        tokens += sum(count_payload(call_event(call)) for call in answer.calls)
    # A stream that broke off after an empty chunk has cost its prompt.
    return max(tokens, int(answer.has_come))
