"""Servers that nobody here wrote, on loopback: LiteLLM's proxy and fakellm, over both their APIs.

They stand in an environment of their own beside ours (`make servers`), since their dependencies
are many; where it isn't there, these tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.errors import ContextOverflow
from agent_magics.core.messages import Assistant, Text, ToolResult, User
from agent_magics.core.ports import Provider
from agent_magics.providers.anthropic import Anthropic
from agent_magics.providers.http.provider import HTTPProvider
from tests.providers.answers import (
    QUICK,
    answer_of,
    ask,
    known_server,
)
from tests.providers.loopback import Exchange, free_port, serving

BIN = Path(sys.prefix).with_name(f"{Path(sys.prefix).name}-servers") / "bin"
PATIENCE_S = 120.0
KEY = "sk-master-0123456789"
TOOL = ToolDefinition(
    name="look",
    description="Look.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}},
)
pytestmark = [pytest.mark.slow, pytest.mark.req("P1")]


@contextmanager
def running(command: list[str], ready: str, folder: Path) -> Iterator[None]:
    """Run a server until it answers at `ready`; its log is shown where it never does."""
    if not (BIN / command[0]).exists():
        pytest.skip(f"needs {command[0]} in {BIN.parent.name}: make servers")
    log = folder / f"{command[0]}.log"
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [BIN / command[0], *command[1:]], stdout=file, stderr=file, cwd=folder, env=environ
        )
        try:
            _wait(process, ready, log)
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(ready, trust_env=False, timeout=2).status_code < 500:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    pytest.fail(log.read_text("utf-8", "replace")[-3_000:])


# LiteLLM


def upstream(exchange: Exchange) -> None:
    """Call a tool when asked to look; else say what the tool gave, or hello."""
    last = exchange.server.bodies[-1]["messages"][-1]
    exchange.begin()
    if last["role"] == "tool":
        exchange.piece(f"It says {last['content']}")
    elif "look" in str(last["content"]):
        for piece in ('{"at": "h', 'ere"}'):
            name = {"name": "look"} if piece.startswith("{") else {}
            call = {"index": 0, "type": "function", "function": {**name, "arguments": piece}}
            call |= {"id": "call_1"} if name else {}
            exchange.raw(f"data: {json.dumps(_chunk({'tool_calls': [call]}))}\n\n")
        exchange.raw(f"data: {json.dumps(_chunk({}, 'tool_calls'))}\n\n")
        exchange.raw("data: [DONE]\n\n")
        exchange.wfile.write(b"0\r\n\r\n")
        return
    else:
        exchange.piece("Hello from behind")
    exchange.end()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**made, "choices": [choice]}


@pytest.fixture(scope="module")
def litellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LiteLLM's proxy: mocked replies, and one model on a server of ours."""
    folder = tmp_path_factory.mktemp("litellm")

    def mocked(name: str, model: str, reply: str) -> dict[str, Any]:
        params = {"model": model, "api_key": "k", "mock_response": reply}
        return {"model_name": name, "litellm_params": params}

    with serving(upstream) as behind:
        through = {"model": "hosted_vllm/m", "api_key": "k", "api_base": behind.base_url}
        config = {
            "model_list": [
                mocked("mock", "openai/gpt-4o", "Hello from LiteLLM, é and 🙂."),
                mocked("claude", "anthropic/claude-sonnet-4-5", "Hello from Claude."),
                mocked("long", "openai/gpt-4o", "litellm.ContextWindowExceededError"),
                mocked("busy", "openai/gpt-4o", "litellm.RateLimitError"),
                mocked("broken", "openai/gpt-4o", "litellm.InternalServerError"),
                {"model_name": "through", "litellm_params": through},
            ],
            "general_settings": {"master_key": KEY},
            "litellm_settings": {"num_retries": 0},
            "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        }
        (folder / "config.yaml").write_text(json.dumps(config, ensure_ascii=False), "utf-8")
        port = free_port()
        command = ["litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
        url = f"http://127.0.0.1:{port}"
        with running([*command, "--port", str(port)], f"{url}/health/liveliness", folder):
            yield f"{url}/v1"


def by_openai(base_url: str, key: str = KEY) -> HTTPProvider:
    made = known_server("litellm", base_url=base_url, api_key=key)
    made._retry = QUICK
    return made


def by_anthropic(base_url: str) -> Provider:
    return Anthropic(base_url=base_url, api_key=KEY, retry=QUICK)


def test_litellm_answers_over_openais_api(litellm: str) -> None:
    """Text with its usage, whole characters, and what the proxy knows of the model."""
    answer = answer_of(by_openai(litellm), ask(model="mock"))
    assert (answer.text, answer.end) == ("Hello from LiteLLM, é and 🙂.", "done")
    assert answer.done
    assert answer.done.usage
    assert (answer.done.usage.input_tokens or 0) > 0

    async def facts() -> tuple[list[str], Any]:
        provider = by_openai(litellm)
        names = [info.name for info in await provider.models()]
        info = await provider.describe("mock")
        await provider.aclose()
        return names, info

    names, info = asyncio.run(facts())
    assert {"mock", "claude", "through"} <= set(names)
    assert (info.context_window, info.has_tools, info.has_vision) == (128_000, True, True)


@pytest.mark.req("P6", "P5")
@pytest.mark.parametrize(
    ("model", "kind", "tries"),
    [("long", "input_overflow", 1), ("busy", "quota", 3), ("broken", "other", 3)],
)
def test_litellms_errors_are_told_apart(litellm: str, model: str, kind: str, tries: int) -> None:
    """In its own wrapping; what may pass is tried again, what is too long isn't."""
    answer = answer_of(by_openai(litellm), ask(model=model))
    assert answer.error is not None
    assert answer.error.kind == kind
    assert len(answer.retries) == tries - 1
    assert isinstance(answer.error, ContextOverflow) is (kind == "input_overflow")
    assert "litellm." in answer.error.message


@pytest.mark.req("P6")
def test_litellm_refuses_a_wrong_key_in_a_sentence(litellm: str) -> None:
    """The key is told by its end alone, also where the proxy repeats it."""
    wrong = "sk-wrong-abcdefgh-9876543210"
    error = answer_of(by_openai(litellm, wrong), ask(model="mock")).error
    assert error is not None
    assert error.kind == "auth"
    assert wrong not in error.message
    assert "…210" in error.message


@pytest.mark.req("P2")
def test_litellm_answers_over_anthropics_api(litellm: str) -> None:
    """Its mock answers a stream request with JSON, what stands behind it with a stream."""
    assert answer_of(by_anthropic(litellm), ask(model="claude")).text == "Hello from Claude."
    answer = answer_of(by_anthropic(litellm), ask(model="through"))
    assert (answer.text, answer.end) == ("Hello from behind", "done")


@pytest.mark.parametrize("by", [by_openai, by_anthropic], ids=["openai", "anthropic"])
def test_a_tool_is_called_through_litellm(litellm: str, by: Any) -> None:
    """The call comes whole from either API, and its result finds its way back."""
    asked = User(content=(Text(text="please look"),))
    request = ChatRequest(model="through", messages=(asked,), tools=(TOOL,))
    (call,) = answer_of(by(litellm), request).calls
    assert (call.tool_name, call.arguments) == ("look", {"at": "here"})
    result = ToolResult(call_id=call.call_id, tool_name="look", content="red")
    more = ChatRequest(
        model="through", messages=(asked, Assistant(calls=(call,)), result), tools=(TOOL,)
    )
    assert answer_of(by(litellm), more).text == "It says red"


# fakellm


@pytest.fixture(scope="module")
def fakellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A mock of both APIs from a package of its own."""
    folder = tmp_path_factory.mktemp("fakellm")
    greeting = {
        "name": "greeting",
        "when": {"messages_contain": "hello"},
        "respond": {"content": "Hi there, from fakellm."},
    }
    config = {"version": 1, "defaults": {"fallback": "deterministic_echo"}, "rules": [greeting]}
    (folder / "fakellm.yaml").write_text(json.dumps(config))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running(["fakellm", "serve", "--port", str(port)], f"{url}/v1/models", folder):
        yield f"{url}/v1"


@pytest.mark.req("P2")
@pytest.mark.parametrize("by", [by_openai, by_anthropic], ids=["openai", "anthropic"])
def test_fakellm_answers_over_both_apis(fakellm: str, by: Any) -> None:
    """Streamed; a question that it has no rule for has an answer of its own."""
    answer = answer_of(by(fakellm), ask("hello", model="gpt-4o"))
    assert (answer.text, answer.end) == ("Hi there, from fakellm.", "done")
    other = answer_of(by(fakellm), ask("nothing of that", model="gpt-4o"))
    assert other.text.startswith("[mock response for gpt-4o")
