"""Ask a provider, which may be anybody's code, and let through only what the contract names.

What comes out of here can be recorded, read again, and sent back to a strict server.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal, TypeGuard

import msgspec

from agent_magics.core.chat import (
    CallReady,
    ChatEvent,
    ChatRequest,
    Done,
    ModelInfo,
    ReasoningDelta,
    Retrying,
    TextDelta,
)
from agent_magics.core.errors import (
    AgentError,
    ContextOverflow,
    ProviderError,
    StreamInterrupted,
    said_by,
)
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import Answerer, Clock, Provider
from agent_magics.core.redact import redact
from agent_magics.core.streams import closing
from agent_magics.core.text import clean_value
from agent_magics.session.request.incoming_answer import IncomingAnswer

_UNFIT = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


async def ask(provider: Answerer, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
    """Yield the events of one answer up to its `Done`; events of no known kind are left out.

    Raises `ProviderError` on an event of wrong types, `StreamInterrupted` where no `Done` comes,
    and what the provider raises; no exception of its own ends the session's loop.
    """
    try:
        async with closing(provider.chat(request)) as events:
            async for event in events:
                if not isinstance(event, ChatEvent):
                    continue
                yield _checked(event, provider)
                if isinstance(event, Done):
                    return
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        # A provider's KeyboardInterrupt or SystemExit would end the loop that all sessions live on.
        raise RuntimeError(said_by(error)) from error
    raise StreamInterrupted("The model's answer ended before it was complete.")


async def collect(
    answer: IncomingAnswer, provider: Answerer, request: ChatRequest, clock: Clock
) -> None:
    """Fill `answer` with all that a provider says to a request that nobody watches."""
    try:
        async with aclosing(ask(provider, request)) as events:
            async for event in events:
                answer.add(event, clock.monotonic())
    except Exception as error:
        answer.note_failure(error)
        raise


async def describe(provider: Provider, model: str) -> ModelInfo:
    """Ask what is known of a model; raises `ProviderError` on an answer of wrong types."""
    told = await provider.describe(model)
    try:
        data = msgspec.msgpack.encode(clean_value(told))
        return msgspec.msgpack.decode(data, type=ModelInfo)
    except _UNFIT as error:
        raise _unfit(provider, str(error)) from error


def with_choice(request: ChatRequest, tool_choice: Literal["auto", "none"]) -> ChatRequest:
    """Let the model call tools, or forbid it."""
    return msgspec.structs.replace(request, tool_choice=tool_choice)


def is_curable(error: Exception) -> TypeGuard[ProviderError]:
    """Return whether a shorter request could be answered."""
    return isinstance(error, ContextOverflow) or (
        isinstance(error, ProviderError) and error.kind == "output_reservation"
    )


def detail_of(error: Exception) -> str:
    """Say what an error says, as it is recorded with the answer that it ended."""
    return error.message if isinstance(error, AgentError) else redact(said_by(error))


def _checked(event: ChatEvent, provider: Answerer) -> ChatEvent:
    match event:
        case TextDelta(text=str()) | ReasoningDelta(text=str()):  # the many: nothing to look at
            return event
        # Arguments are foreign JSON and are judged for themselves: one bad number must not lose the
        # whole answer.
        case CallReady(call=ToolCall() as call):
            named = msgspec.structs.replace(call, arguments=None)
            made = _read_again(CallReady(call=named), provider)
            assert isinstance(made, CallReady)
            whole = msgspec.structs.replace(made.call, arguments=_strict(call.arguments))
            return CallReady(call=whole)
        case Retrying(wait_s=float() as wait_s) if not math.isfinite(wait_s):
            raise _unfit(provider, f"a wait of {wait_s} s")
        case _:
            return _read_again(event, provider)


def _read_again(event: ChatEvent, provider: Answerer) -> ChatEvent:
    """Write an event and read it: what comes back is of the declared types."""
    try:
        # A struct built in Python isn't checked; a wrong type would be found only when the ledger
        # is read again.
        data = msgspec.msgpack.encode(clean_value(event))
        read: ChatEvent = msgspec.msgpack.decode(data, type=ChatEvent)
    except _UNFIT as error:
        raise _unfit(provider, str(error)) from error
    return read


def _strict(arguments: Any) -> dict[str, Any] | None:
    """Return arguments as strict JSON carries them; None, which can't be run, where it can't."""
    try:
        value = json.loads(json.dumps(clean_value(arguments), allow_nan=False))
    except _UNFIT:
        return None
    return value if isinstance(value, dict) else None


def _unfit(provider: Answerer, what: str) -> ProviderError:
    return ProviderError(
        f"The provider {provider.provider_id} broke its contract ({what}); what it said before is"
        " kept. Try again, or choose another model."
    )
