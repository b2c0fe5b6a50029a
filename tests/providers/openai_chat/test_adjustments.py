"""What servers refuse of a request, in their words, and what is sent then (providers.md)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import (
    Assistant,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.core.slots import ModelParams
from agent_magics.providers.presets import Quirks
from tests.providers.answers import Gathered, gather, hello_stream, server

pytestmark = pytest.mark.req("P1")

TOOL = ToolDefinition(name="f", description="d", parameters={"type": "object"})
REQUEST = ChatRequest(
    model="m",
    messages=(
        System(text="be kind"),
        User(content=(Text(text="go"),)),
        Assistant(
            calls=(ToolCall(call_id="call-1", tool_name="f", arguments={}),),
            reasoning=Reasoning(text="hm", provider="openai", model="m"),
        ),
        ToolResult(call_id="call-1", tool_name="f", content="done"),
        Assistant(content=(Text(text="of another model"),)),
        User(content=(Text(text="and?"),)),
    ),
    tools=(TOOL,),
    tool_choice="none",
    params=ModelParams(temperature=0.2, max_tokens=5, reasoning_effort="low"),
)
ALL = Quirks(reasoning="reasoning_content", parallel_tools=True)


def message(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "invalid_request_error"}}


def pydantic(*where: str) -> dict[str, Any]:
    said = {
        "type": "extra_forbidden",
        "loc": ["body", *where],
        "msg": "Extra inputs are not permitted",
    }
    return {"detail": [said]}


REFUSALS: dict[str, tuple[int, dict[str, Any], str]] = {
    "stream_options": (400, message("Unknown field: stream_options"), "stream_options"),
    "stream_options, pydantic": (422, pydantic("stream_options"), "stream_options"),
    "max_tokens": (
        400,
        message(
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead."
        ),
        "max_tokens",
    ),
    "temperature": (
        400,
        message(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the"
            " default (1) value is supported."
        ),
        "temperature",
    ),
    "reasoning_effort": (
        400,
        message("Unrecognized request argument supplied: reasoning_effort"),
        "reasoning_effort",
    ),
    "reasoning_effort, Ollama": (
        400,
        message('"m" does not support thinking'),
        "reasoning_effort",
    ),
    "tool_choice": (400, message("tool_choice is not supported by this model"), "tool_choice"),
    "parallel_tool_calls": (
        400,
        message("Unsupported parameter: 'parallel_tool_calls' is not supported with this model."),
        "parallel_tool_calls",
    ),
    "reasoning_content": (
        400,
        message("messages.2.reasoning_content: Extra inputs are not permitted"),
        "reasoning_content",
    ),
    "system role": (500, message("Jinja Exception: System role not supported"), "role system"),
    "developer role": (400, message("developer role is not supported"), "role system"),
}


def parts(body: dict[str, Any]) -> set[str]:
    fields = {name for each in body["messages"] for name in each}
    return {*body, *fields, *(f"role {each['role']}" for each in body["messages"])}


def sent(
    status: int, refusal: dict[str, Any], refused: Any, quirks: Quirks = ALL
) -> tuple[list[dict[str, Any]], Gathered, Gathered]:
    """Ask twice a server that refuses some requests; give what it got and what it answered."""
    bodies: list[dict[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(status, json=refusal) if refused(bodies[-1]) else hello_stream()

    async def run() -> tuple[Gathered, Gathered]:
        provider = server(handle, quirks=quirks)
        return await gather(provider, REQUEST), await gather(provider, REQUEST)

    return (bodies, *asyncio.run(run()))


@pytest.mark.parametrize(("status", "refusal", "part"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_refused_is_left_out_once_and_for_all(
    status: int, refusal: dict[str, Any], part: str
) -> None:
    """One refusal, one more try, and never again; nothing else is taken out with it."""
    bodies, first, second = sent(status, refusal, lambda body: part in parts(body))
    assert (first.text, second.text) == ("Hello", "Hello")
    assert len(bodies) == 3
    gone = parts(bodies[0]) - parts(bodies[1])
    assert part in gone
    assert gone <= {part, "tools", "parallel_tool_calls"}
    assert bodies[1] == bodies[2]


def test_reasoning_that_must_come_back_does_so_everywhere() -> None:
    """DeepSeek wants the field on every message once it thinks, on another model's as well."""
    refusal = message(
        "The `reasoning_content` in the thinking mode must be passed back to the API."
    )

    def lacks(body: dict[str, Any]) -> bool:
        said = [each for each in body["messages"] if each["role"] == "assistant"]
        return any("reasoning_content" not in each for each in said)

    for quirks in (ALL, Quirks()):
        bodies, first, _ = sent(400, refusal, lacks, quirks)
        assert first.text == "Hello"
        said = [each for each in bodies[-1]["messages"] if each["role"] == "assistant"]
        assert [each["reasoning_content"] for each in said] == ["hm", ""]


def test_a_user_after_a_tool_gets_an_answer_between() -> None:
    """Where a template says so, as Mistral's do."""
    request = ChatRequest(model="m", messages=(*REQUEST.messages[:4], REQUEST.messages[5]))
    bodies: list[dict[str, Any]] = []

    def handle(asked: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(asked.content))
        roles = " ".join(each["role"] for each in bodies[-1]["messages"])
        if "tool user" in roles:
            return httpx.Response(
                400, json={"object": "error", "message": "Unexpected role 'user' after role 'tool'"}
            )
        return hello_stream()

    assert asyncio.run(gather(server(handle), request)).text == "Hello"
    assert len(bodies) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        message("The model `m` does not exist"),
        message("max_completion_tokens is not a number"),  # we sent none
        message("Invalid value for content"),
    ],
)
def test_what_cannot_be_mended_is_told(refusal: dict[str, Any]) -> None:
    """With the server's words, after one request."""
    bodies, first, _ = sent(400, refusal, lambda _: True)
    assert len(bodies) == 2  # one for each asking
    assert isinstance(first.error, ProviderError)
    assert refusal["error"]["message"] in first.error.message


def test_the_sentence_names_the_field_that_a_server_names() -> None:
    """pydantic's errors say what is wrong in one place and where in another."""
    _, first, _ = sent(422, pydantic("messages", "0", "colour"), lambda _: True)
    assert first.error is not None
    assert "body.messages.0.colour: Extra inputs are not permitted" in first.error.message
