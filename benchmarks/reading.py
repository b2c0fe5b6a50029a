"""What it costs to read a streamed answer: deltas and bytes a second, and memory, per reader.

Every reader gets the same bytes from memory, an event a read, as servers send them; so what is
measured is reading, and no network.
"""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
from httpx_sse import EventSource

from agent_magics.core.chat import ChatRequest, TextDelta
from agent_magics.core.messages import Text, User
from agent_magics.core.ports import Provider
from agent_magics.core.streams import closing
from agent_magics.providers.anthropic import Anthropic
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from benchmarks.table import Row

DELTAS = 10_000
LONG = 100_000
ROUNDS = 5
KEY = "sk-none"
URL = "http://models.invalid/v1"
REQUEST = ChatRequest(model="m", messages=(User(content=(Text(text="Tell me all."),)),))
HEADERS = {"content-type": "text/event-stream"}

Reader = Callable[[int], Awaitable[int]]


def rows(_: Path) -> list[Row]:
    """Read the same answer by ours, by the floor and by the official clients, in turns."""
    return [
        *_compared("OpenAI", openai_events(2), ours_openai, floor, "openai", their_openai),
        *_compared("Anthropic", anthropic_events(2), ours_anthropic, floor, "anthropic", theirs),
    ]


def table() -> str:
    """Tell deltas and megabytes a second, and how memory grows from a short answer to a long."""
    readers: dict[str, tuple[Reader, Callable[[int], list[bytes]]]] = {
        "ours, OpenAI": (ours_openai, openai_events),
        "httpx-sse and json, OpenAI": (floor, openai_events),
        "package `openai`": (their_openai, openai_events),
        "ours, Anthropic": (ours_anthropic, anthropic_events),
        "package `anthropic`": (theirs, anthropic_events),
    }
    head = "| reader | deltas/s | MB/s | memory for 100,000 deltas more, KB |\n|---|--:|--:|--:|"
    return "\n".join([head, *(_line(name, *each) for name, each in readers.items())])


def _line(name: str, reader: Reader, events: Callable[[int], list[bytes]]) -> str:
    seconds = min(_taken_s(reader) for _ in range(ROUNDS))
    size = sum(map(len, events(DELTAS)))
    grown = (_peak_bytes(reader, LONG) - _peak_bytes(reader, DELTAS)) / 1_000
    return f"| {name} | {DELTAS / seconds:,.0f} | {size / seconds / 1e6:.1f} | {grown:,.0f} |"


def _compared(
    api: str, sample: list[bytes], ours: Reader, low: Reader, name: str, official: Reader
) -> list[Row]:
    times: dict[Reader, list[float]] = {ours: [], low: [], official: []}
    for _ in range(ROUNDS):
        for reader, taken in times.items():
            taken.append(1_000 * _taken_s(reader))
    what = f"read {DELTAS:,} deltas of {api}, {len(sample[1])} bytes each"
    mine = times[ours]
    return [
        Row(what=what, ours_ms=mine, floor="httpx-sse and json", floor_ms=times[low]),
        Row(what=what, ours_ms=mine, floor=f"the package {name}", floor_ms=times[official]),
    ]


def _taken_s(reader: Reader) -> float:
    begun = time.perf_counter()
    assert asyncio.run(_run(reader, DELTAS)) == DELTAS
    return time.perf_counter() - begun


def _peak_bytes(reader: Reader, count: int) -> int:
    tracemalloc.start()
    asyncio.run(_run(reader, count))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


async def _run(reader: Reader, count: int) -> int:
    return await reader(count)


# What is read


def openai_events(count: int) -> list[bytes]:
    """Write an answer of so many deltas as OpenAI sends it."""
    return [*map(_openai_delta, range(count)), *_OPENAI_END]


def anthropic_events(count: int) -> list[bytes]:
    """Write an answer of so many deltas as Anthropic sends it."""
    return [*_ANTHROPIC_BEGIN, *map(_anthropic_delta, range(count)), *_ANTHROPIC_END]


def _openai_delta(number: int) -> bytes:
    return _event(
        {
            "id": "chatcmpl-BHaQ5wUtsHdaqWLJE3ARPdGEqyh2Q",
            "object": "chat.completion.chunk",
            "created": 1_743_719_999,
            "model": "gpt-x",
            "choices": [{"index": 0, "delta": {"content": f"word {number % 10}"}}],
        }
    )


def _anthropic_delta(number: int) -> bytes:
    return _event(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": f"word {number % 10}"},
        }
    )


def _event(data: dict[str, Any]) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


_OPENAI_END = (
    _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    b"data: [DONE]\n\n",
)
_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 1},
}
_ANTHROPIC_BEGIN = (
    _event({"type": "message_start", "message": _MESSAGE}),
    _event(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    ),
)
_ANTHROPIC_END = (
    _event({"type": "content_block_stop", "index": 0}),
    _event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        }
    ),
    _event({"type": "message_stop"}),
)


async def _bytes(
    first: tuple[bytes, ...], delta: Any, count: int, last: Any
) -> AsyncIterator[bytes]:
    """Make the events one by one, so that the source takes no memory.

    Each is waited for, as at a socket.
    """
    for event in first:
        yield event
    for number in range(count):
        await asyncio.sleep(0)
        yield delta(number)
    for event in last:
        yield event


def _openai_bytes(count: int) -> AsyncIterator[bytes]:
    return _bytes((), _openai_delta, count, _OPENAI_END)


def _anthropic_bytes(count: int) -> AsyncIterator[bytes]:
    return _bytes(_ANTHROPIC_BEGIN, _anthropic_delta, count, _ANTHROPIC_END)


# Who reads


async def ours_openai(count: int) -> int:
    """Read with our adapter."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=HEADERS, content=_openai_bytes(count))
    )
    return await _counted(OpenAICompatible("o", base_url=URL, api_key=KEY, transport=transport))


async def ours_anthropic(count: int) -> int:
    """Read with our adapter."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=HEADERS, content=_anthropic_bytes(count))
    )
    return await _counted(Anthropic(base_url=URL, api_key=KEY, transport=transport))


async def _counted(provider: Provider) -> int:
    found = 0
    async with closing(provider.chat(REQUEST)) as events:
        async for event in events:
            found += isinstance(event, TextDelta)
    await provider.aclose()
    return found


async def floor(count: int) -> int:
    """Take events apart and parse their JSON: less than that nobody can do."""
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=HEADERS, content=_openai_bytes(count))
    )
    found = 0
    async with (
        httpx.AsyncClient(transport=transport) as client,
        client.stream("POST", URL) as response,
    ):
        async for event in EventSource(response).aiter_sse():
            if event.data != "[DONE]":
                choices = json.loads(event.data)["choices"]
                found += bool(choices[0]["delta"].get("content"))
    return found


async def their_openai(count: int) -> int:
    """Read with the package `openai`."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers=HEADERS, content=_openai_bytes(count))
    )
    found = 0
    async with openai.AsyncOpenAI(
        base_url=URL, api_key=KEY, http_client=httpx2.AsyncClient(transport=transport)
    ) as client:
        messages: Any = [{"role": "user", "content": "Tell me all."}]
        made: Any = client.chat.completions
        async for chunk in await made.create(model="m", messages=messages, stream=True):
            found += bool(chunk.choices and chunk.choices[0].delta.content)
    return found


async def theirs(count: int) -> int:
    """Read with the package `anthropic`."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers=HEADERS, content=_anthropic_bytes(count))
    )
    found = 0
    async with anthropic.AsyncAnthropic(
        base_url=URL, api_key=KEY, http_client=httpx2.AsyncClient(transport=transport)
    ) as client:
        messages: Any = [{"role": "user", "content": "Tell me all."}]
        made: Any = client.messages
        async for event in await made.create(
            model="m", max_tokens=9, messages=messages, stream=True
        ):
            found += event.type == "content_block_delta"
    return found
