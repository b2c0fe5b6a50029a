"""Every call gets exactly one result, whatever the tool does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import Interrupted
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.ports import Tool
from agent_magics.tools.dispatch import ABANDONED, CANCELLED, Answered, Dispatcher
from agent_magics.tools.schema import tool

T = TypeVar("T")


class Here:
    async def call(self, work: Callable[[], T]) -> T:
        return work()


def call(name: str, arguments: dict[str, Any] | None = None, call_id: str = "c") -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=name, arguments=arguments, raw="{oops")


def run_all(
    tools: list[Tool],
    *calls: ToolCall,
    stopped: bool = False,
    abandoned: bool = False,
    **settings: Any,
) -> list[Answered]:
    async def scene() -> list[Answered]:
        stop, abandon = asyncio.Event(), asyncio.Event()
        if stopped:
            stop.set()
        if abandoned:
            abandon.set()
        config = AgentConfig(default_model="x:y", **settings)
        dispatcher = Dispatcher(tools, config, Here())
        return [answer async for answer in dispatcher.run(calls, stop=stop, abandon=abandon)]

    return asyncio.run(scene())


@tool
def echo(text: str = "hi") -> str:
    return text


@tool
def fails() -> str:
    raise ValueError("no such column")


@tool
def interrupted() -> str:
    raise Interrupted


@tool
async def hangs() -> str:
    await asyncio.sleep(60)
    return "never"


def test_results_keep_the_order_of_the_calls() -> None:
    """One result a call, in order, with its time."""
    answers = run_all([echo], call("echo", {"text": "a"}, "1"), call("echo", {"text": "b"}, "2"))
    assert [(each.call.call_id, each.output.content) for each in answers] == [
        ("1", "a"),
        ("2", "b"),
    ]
    assert all(each.duration_ms is not None for each in answers)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("fails", {}, "ValueError: no such column"),
        ("nobody", {}, 'There is no tool "nobody"'),
        ("echo", None, "not valid JSON"),
        ("echo", {"n": 1}, "unknown field `n`"),
        ("interrupted", {}, "Interrupted by the person"),
    ],
    ids=["raises", "unknown", "cut arguments", "wrong arguments", "interrupted"],
)
def test_a_failure_is_a_result(name: str, arguments: dict[str, Any] | None, says: str) -> None:
    """What goes wrong is told to the model, and the turn goes on."""
    (answer,) = run_all([echo, fails, interrupted], call(name, arguments))
    assert answer.output.is_error
    assert says in answer.output.content


@pytest.mark.req("E9")
def test_a_tool_that_takes_too_long_is_given_up() -> None:
    """The result says that it may still be running."""
    (answer,) = run_all([hangs], call("hangs", {}), tool_timeout_ms=20)
    assert "may still be running" in answer.output.content


@pytest.mark.req("E9")
def test_after_a_stop_no_call_begins() -> None:
    """Calls that had not begun get a result that says so, and no time."""
    answers = run_all([echo], call("echo", {}), stopped=True)
    assert [(each.output.content, each.duration_ms) for each in answers] == [(CANCELLED, None)]


@pytest.mark.req("dec11")
def test_a_second_interrupt_stops_waiting() -> None:
    """A tool that hangs is abandoned, and that is its result."""
    (answer,) = run_all([hangs], call("hangs", {}), abandoned=True)
    assert answer.output.content == ABANDONED


@pytest.mark.req("E10")
def test_long_output_is_cut_and_marked() -> None:
    """Content and metadata together stay within the limit; cuts are marked."""

    @tool
    def long() -> ToolOutput:
        return ToolOutput(content="é" * 1000, metadata={"k": "v" * 500})

    (answer,) = run_all(
        [long],
        call("long", {}),
        tool_output_max_bytes=600,
        tool_output_metadata_max_bytes=100,
    )
    output = answer.output
    assert output.metadata == {"_truncated": True, "_original_bytes": 508}
    assert output.content.endswith("é\n\n[output truncated]")
    size = len(output.content.encode()) + len(msgspec.json.encode(output.metadata))
    assert size <= 600
