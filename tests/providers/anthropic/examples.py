"""What the tests of the Anthropic adapter share: short words for messages and for events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.messages import (
    Assistant,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.providers.anthropic.payload import payload_of
from tests.providers.answers import Gathered, anthropic_server, ask, gather, streamed

MARK = {"type": "ephemeral"}
TOOL = ToolDefinition(name="f", description="d", parameters={"type": "object"})
START = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def user(text: str) -> User:
    return User(content=(Text(text=text),))


def said(text: str, *calls: ToolCall, thought: Reasoning | None = None) -> Assistant:
    return Assistant(content=(Text(text=text),) if text else (), calls=calls, reasoning=thought)


def called(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="f", arguments={"x": 1})


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, tool_name="f", content=text, is_error=is_error)


def body_of(*messages: Message, **settings: Any) -> dict[str, Any]:
    request = ChatRequest(model="m", messages=messages, **settings)
    return payload_of(request, provider="anthropic")


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its marks, to compare."""
    blocks = [{k: v for k, v in b.items() if k != "cache_control"} for b in message["content"]]
    return {**message, "content": blocks}


def marked(body: dict[str, Any]) -> list[str]:
    """The places of the cache's marks: `system 0`, `messages 3.1`."""
    places = [f"tools {i}" for i, t in enumerate(body.get("tools", [])) if "cache_control" in t]
    places += [f"system {i}" for i, t in enumerate(body.get("system", [])) if "cache_control" in t]
    for i, message in enumerate(body["messages"]):
        places += [
            f"messages {i}.{j}" for j, b in enumerate(message["content"]) if "cache_control" in b
        ]
    return places


def events(*said: dict[str, Any]) -> httpx.Response:
    return streamed(*(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in said))


def stopped(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def opened(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def hello(text: str = "Hello") -> httpx.Response:
    return events(
        START,
        opened(0, type="text", text=""),
        piece(0, type="text_delta", text=text),
        stopped("end_turn", output_tokens=2),
        STOP,
    )


def refused(message: str, status: int = 400, kind: str = "invalid_request_error") -> httpx.Response:
    return httpx.Response(
        status, json={"type": "error", "error": {"type": kind, "message": message}}
    )


def asked(
    handle: Callable[[dict[str, Any]], httpx.Response], *requests: ChatRequest
) -> tuple[list[Gathered], list[dict[str, Any]]]:
    """Ask one after another; give the answers and the bodies that went out."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return handle(bodies[-1])

    async def run() -> list[Gathered]:
        provider = anthropic_server(answer)
        try:
            return [await gather(provider, request) for request in requests or [ask()]]
        finally:
            await provider.aclose()

    return asyncio.run(run()), bodies
