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


class Mute(Exception):
    """An error that can't even be printed."""

    def __str__(self) -> str:
        raise RuntimeError


class Foreign(BaseException):
    """What some libraries raise past every `except Exception`."""


@pytest.mark.parametrize(
    "error", [Foreign("x"), GeneratorExit(), asyncio.CancelledError(), Mute(), StopIteration(1)]
)
@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.req("E9", "inv10")
def test_whatever_a_tool_raises_is_its_result(error: BaseException, *, thread: bool) -> None:
    """No exception of a tool, however odd, ends the turn or is waited for until the time-out."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    odd = tool(name="odd", thread=True)(fail) if thread else tool(name="odd")(fail_later)
    first, second = run_all([odd], call("odd", {}), call("odd", {}), tool_timeout_ms=2_000)
    assert first.output.is_error
    assert second.output.is_error
    assert "did not answer" not in first.output.content


class Odd:
    """A foreign tool that keeps no promise about what it gives."""

    name = "odd"
    description = ""
    parameters: dict[str, Any] = {}  # noqa: RUF012
    is_mutating = False

    def __init__(self, given: Any) -> None:
        self.given = given

    async def execute(self, _call: object, _on_main: object) -> Any:
        return self.given


_LOOP: dict[str, Any] = {}
_LOOP["self"] = _LOOP


@pytest.mark.parametrize(
    "given",
    [
        None,
        5,
        ToolOutput(content=5),  # type: ignore[arg-type]
        ToolOutput(content="x", is_error="yes"),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata=None),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata=[1]),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata={1: {2}}),  # type: ignore[dict-item]
        ToolOutput(content="x", metadata={"n": float("nan"), "\ud800": "\0"}),
        ToolOutput(content="x", metadata=_LOOP),
    ],
    ids=str,
)
@pytest.mark.req("inv10", "inv16")
def test_an_output_of_wrong_types_is_one_that_can_be_read_again(given: Any) -> None:
    """What a reader would refuse never reaches the ledger."""
    (answer,) = run_all([Odd(given)], call("odd", {}))
    encoded = msgspec.msgpack.encode(answer.output)
    assert msgspec.msgpack.decode(encoded, type=ToolOutput) == answer.output


@pytest.mark.req("E10")
def test_a_tool_that_ignores_its_cancel_is_not_waited_for() -> None:
    """The time-out is kept though the tool swallows the cancel."""

    @tool
    async def stubborn() -> None:
        for _ in range(40):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    async def scene() -> Answered:
        config = AgentConfig(default_model="x:y", tool_timeout_ms=50)
        dispatcher = Dispatcher([stubborn], config, Here())
        answers = dispatcher.run(
            [call("stubborn", {})], stop=asyncio.Event(), abandon=asyncio.Event()
        )
        return await anext(answers)

    async def timed() -> Answered:
        return await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(scene())), 1.0)

    assert "did not answer within" in asyncio.run(timed()).output.content
