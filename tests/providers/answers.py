"""What the tests of this room share: one question, and an answer gathered to compare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import httpx

from agent_magics.core.chat import (
    CallReady,
    ChatEvent,
    ChatRequest,
    Done,
    ReasoningDelta,
    Retrying,
    TextDelta,
)
from agent_magics.core.errors import ProviderError, StreamInterrupted
from agent_magics.core.messages import Text, ToolCall, User
from agent_magics.core.ports import Provider
from agent_magics.core.values import Value
from agent_magics.providers.adapters import provider_of
from agent_magics.providers.anthropic import Anthropic
from agent_magics.providers.http.clients import Timeouts
from agent_magics.providers.http.connection import Connection
from agent_magics.providers.http.provider import HTTPProvider
from agent_magics.providers.http.retries import RetryPolicy
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from agent_magics.providers.presets import PRESETS, Preset, Quirks

CHAT_PRESETS = [each for each in PRESETS if each.adapter != "anthropic"]
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, longest_wait_s=0.02)
BASE_URL = "http://models.test/v1"
KEY = "sk-test-0123456789x3F"
ANTHROPIC_KEY = "sk-ant-api03-0123456789q7Z"


class Gathered(Value):
    """An answer as the corpus writes it; `end` is done, length, error or interrupted."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    done: Done | None = None
    retries: tuple[Retrying, ...] = ()
    end: str = ""
    error: ProviderError | None = None


def ask(text: str = "hello", model: str = "m", **more: Any) -> ChatRequest:
    return ChatRequest(model=model, messages=(User(content=(Text(text=text),)),), **more)


async def gather(provider: Provider, request: ChatRequest | None = None) -> Gathered:
    """Read an answer to its end, whatever end that is."""
    events: list[ChatEvent] = []
    error: ProviderError | None = None
    stream = provider.chat(request or ask())
    try:
        async with aclosing(stream):  # type: ignore[type-var]  # ours are generators
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before an error is kept
    except ProviderError as raised:
        error = raised
    return gathered(events, error)


def gathered(events: list[ChatEvent], error: ProviderError | None = None) -> Gathered:
    done = next((event for event in events if isinstance(event, Done)), None)
    if isinstance(error, StreamInterrupted):
        end = "interrupted"
    elif error is not None:
        end = "error"
    else:
        assert done is not None
        assert events[-1] is done
        end = done.finish
    return Gathered(
        text="".join(event.text for event in events if isinstance(event, TextDelta)),
        reasoning="".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        calls=tuple(event.call for event in events if isinstance(event, CallReady)),
        done=done,
        retries=tuple(event for event in events if isinstance(event, Retrying)),
        end=end,
        error=error,
    )


def server(
    handle: Callable[[httpx.Request], httpx.Response], *, base_url: str = BASE_URL, **more: Any
) -> OpenAICompatible:
    """A provider whose network is `handle`."""
    settings: dict[str, Any] = {
        "api_key": KEY,
        "key_name": "OPENAI_API_KEY",
        "retry": QUICK,
        "timeouts": Timeouts(connect_s=1, first_token_s=1, between_tokens_s=1),
        **more,
    }
    return OpenAICompatible(
        "openai", base_url=base_url, transport=httpx.MockTransport(handle), **settings
    )


def anthropic_server(handle: Callable[[httpx.Request], httpx.Response], **more: Any) -> Anthropic:
    """An Anthropic whose network is `handle`."""
    settings: dict[str, Any] = {
        "api_key": ANTHROPIC_KEY,
        "retry": QUICK,
        "timeouts": Timeouts(connect_s=1, first_token_s=1, between_tokens_s=1),
        **more,
    }
    return Anthropic(transport=httpx.MockTransport(handle), **settings)


def known_server(
    known: Preset | str, *, quirks: Quirks | None = None, **connection: Any
) -> HTTPProvider:
    """The provider of a preset; `connection` as `Connection`."""
    return provider_of(known, Connection(**connection), quirks=quirks)


def streamed(*chunks: bytes, content_type: str = "text/event-stream") -> httpx.Response:
    """A response whose body comes in the given reads."""

    async def reads() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return httpx.Response(200, headers={"content-type": content_type}, content=reads())


def hello_stream(text: str = "Hello") -> httpx.Response:
    return streamed(
        f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}\n\n'.encode(),
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    )


SHORT = Timeouts(connect_s=1, first_token_s=0.5, between_tokens_s=0.3)


def at(base_url: str, **more: Any) -> OpenAICompatible:
    settings: dict[str, Any] = {
        "api_key": KEY,
        "key_name": "OPENAI_API_KEY",
        "timeouts": SHORT,
        "retry": QUICK,
        **more,
    }
    return OpenAICompatible("openai", base_url=base_url, **settings)


def answer_of(provider: Provider, request: ChatRequest | None = None) -> Gathered:
    async def run() -> Gathered:
        try:
            return await gather(provider, request)
        finally:
            await provider.aclose()

    return asyncio.run(run())
