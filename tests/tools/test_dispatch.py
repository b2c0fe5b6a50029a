"""Every call gets exactly one result, whatever the tool does; batches run at once or in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_magics.core.errors import AgentError, Interrupted, PluginAborted
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.ports import OnMain, Tool, ToolInput
from agent_magics.tools.dispatch import (
    ABANDONED,
    CANCELLED,
    Approved,
    FinishedCall,
    Refused,
)
from agent_magics.tools.schema import tool
from tests.tools.dispatching import Here, Stage, call, calls, run_all


@tool
def echo(text: str = "hi") -> str:
    return text


@tool
def fails() -> str:
    raise ValueError("no such column")


@tool(mutating=True)
def breaks() -> str:
    raise ValueError("disk full")


@tool(mutating=True)
def writes() -> str:
    return "written"


@tool(mutating=True)
def says_it_failed() -> ToolOutput:
    return ToolOutput(content="exit status 1", is_error=True)


@tool
def interrupted() -> str:
    raise Interrupted


@tool
async def hangs() -> str:
    await asyncio.sleep(60)
    return "never"


@tool(mutating=True)
async def hangs_writing() -> str:
    await asyncio.sleep(60)
    return "never"


@pytest.mark.parametrize(
    ("name", "arguments", "says", "code"),
    [
        ("fails", {}, "ValueError: no such column", "TOOL_EXECUTION_ERROR"),
        ("nobody", {}, 'There is no tool "nobody"', "TOOL_NOT_FOUND"),
        ("echo", None, "not valid JSON", "TOOL_EXECUTION_ERROR"),
        ("echo", {"n": 1}, "unknown field `n`", "TOOL_EXECUTION_ERROR"),
        ("interrupted", {}, "Interrupted by the person", "TOOL_EXECUTION_ERROR"),
        ("says_it_failed", {}, "exit status 1", "TOOL_EXECUTION_ERROR"),
    ],
    ids=["raises", "unknown", "cut arguments", "wrong arguments", "interrupted", "says so"],
)
@pytest.mark.req("E19")
def test_a_failure_is_a_result(
    name: str, arguments: dict[str, Any] | None, says: str, code: str
) -> None:
    """What goes wrong is told to the model, and to the watcher by its code."""
    seen = run_all([echo, fails, interrupted, says_it_failed], call(name, arguments))
    (answer,) = seen.answers
    assert answer.output.is_error
    assert says in answer.output.content
    assert answer.error is not None
    assert answer.error.code == code
    assert says in answer.error.message


@pytest.mark.req("E8")
def test_calls_that_change_nothing_run_at_once() -> None:
    """Each of three waits for the two others, so they can only end if all of them run."""
    tool_approval = asyncio.Barrier(3)

    @tool
    async def meet() -> str:
        await tool_approval.wait()
        return "met"

    seen = run_all([meet], *calls("meet", "meet", "meet"), tool_timeout_ms=2_000)
    assert seen.said == {"1": "met", "2": "met", "3": "met"}


@pytest.mark.req("E8")
def test_at_once_a_failure_is_of_that_call_only() -> None:
    """Unknown tools and errors stand beside the results of the others."""
    seen = run_all([echo, fails], *calls("fails", "nobody", "echo"))
    assert seen.said["3"] == "hi"
    assert {answer.call.call_id for answer in seen.answers if answer.output.is_error} == {"1", "2"}


@pytest.mark.req("E8", "E20.26")
@pytest.mark.parametrize(
    ("first", "says"),
    [
        ("nobody", "[Tool not run: `nobody` was not found before it]"),
        ("breaks", "[Tool not run: `breaks` failed before it]"),
        ("says_it_failed", "[Tool not run: `says_it_failed` failed before it]"),
        ("hangs_writing", "[Tool not run: `hangs_writing` timed out before it]"),
        ("fails", "[Tool not run: `fails` failed before it]"),
    ],
)
def test_a_failure_in_a_mutating_batch_skips_the_rest(first: str, says: str) -> None:
    """What didn't run says why: which tool failed before it, and how; never that it failed."""
    tools: list[Tool] = [echo, breaks, says_it_failed, hangs_writing, fails, writes]
    seen = run_all(tools, *calls("writes", first, "writes", "echo"), tool_timeout_ms=30)
    assert seen.said["1"] == "written"
    assert (seen.said["3"], seen.said["4"]) == (says, says)
    assert [answer.duration_ms is None for answer in seen.answers] == [
        False,
        first == "nobody",
        True,
        True,
    ]


@pytest.mark.req("E8")
def test_a_batch_with_a_mutating_call_runs_in_order() -> None:
    """Also its read-only calls wait: the model may count on what was written before them."""
    order: list[str] = []

    @tool
    async def look() -> None:
        order.append("look begins")
        await asyncio.sleep(0.01)
        order.append("look ends")

    @tool(mutating=True)
    async def write() -> None:
        order.append("write begins")
        await asyncio.sleep(0.01)
        order.append("write ends")

    seen = run_all([look, write], *calls("look", "write", "look"))
    assert order == [
        "look begins",
        "look ends",
        "write begins",
        "write ends",
        "look begins",
        "look ends",
    ]
    assert [answer.call.call_id for answer in seen.answers] == ["1", "2", "3"]


class Unsure:
    """A foreign tool that can't even say whether it changes something."""

    name = "unsure"
    description = ""
    parameters: dict[str, Any] = {}  # noqa: RUF012  # the protocol's shape

    @property
    def is_mutating(self) -> bool:
        raise RuntimeError

    async def execute(self, _call: ToolInput, _on_main: OnMain) -> ToolOutput:
        raise ValueError


@pytest.mark.req("E8")
def test_a_tool_that_cannot_say_is_taken_as_mutating() -> None:
    """What may change something runs in order."""
    seen = run_all([Unsure(), echo], *calls("unsure", "echo"))
    assert seen.said["2"] == "[Tool not run: `unsure` failed before it]"


@pytest.mark.req("E9")
def test_a_finished_call_is_told_before_the_slow_ones_end() -> None:
    """A crash in a slow call loses no result that was there."""

    async def scene() -> None:
        done = asyncio.Event()

        @tool
        async def slow() -> str:
            await done.wait()
            return "slow"

        async def told(_finished: FinishedCall) -> None:
            done.set()  # it can only end once the other's result was told

        stage = Stage([slow, echo])
        stage.seen.on_answer = told
        seen = await stage.run(*calls("slow", "echo"))
        assert [answer.output.content for answer in seen.answers] == ["hi", "slow"]

    asyncio.run(scene())


@pytest.mark.req("E9")
def test_after_a_stop_no_call_begins() -> None:
    """Calls that had not begun get a result that says so, and no time."""

    async def scene() -> None:
        stage = Stage([echo])
        stage.stop.set()
        seen = await stage.run(*calls("echo", "echo"))
        assert seen.began == []
        assert [(each.output.content, each.duration_ms) for each in seen.answers] == [
            (CANCELLED, None)
        ] * 2

    asyncio.run(scene())


@pytest.mark.req("E9", "E20.6")
@pytest.mark.parametrize("mutating", [True, False])
def test_a_stop_lets_what_runs_finish(*, mutating: bool) -> None:
    """In order, the rest is cancelled; at once, all have begun and all finish."""

    async def scene() -> None:
        stage = Stage([])

        async def slow() -> str:
            stage.stop.set()
            await asyncio.sleep(0.01)
            return "finished"

        stage.tools = [tool(mutating=mutating)(slow)]
        seen = await stage.run(*calls("slow", "slow"))
        assert seen.said == {"1": "finished", "2": CANCELLED if mutating else "finished"}

    asyncio.run(scene())


@pytest.mark.req("dec11")
def test_a_second_interrupt_stops_waiting() -> None:
    """A tool that hangs is abandoned, and that is its result."""

    async def scene() -> None:
        stage = Stage([hangs])
        stage.abandon.set()
        assert (await stage.run(call("hangs", {}))).said == {"c": ABANDONED}

    asyncio.run(scene())


class Judge:
    """A gate that says what it is told to."""

    def __init__(self, **says: Any) -> None:
        self.says = says
        self.looked: list[tuple[str, bool]] = []

    async def before(self, call: ToolCall, _tool: Tool, /) -> Approved | Refused:
        said = self.says.get(call.call_id, Approved(call=call))
        if callable(said):
            said = await said()
        assert isinstance(said, Approved | Refused)
        return said

    async def after(self, finished: FinishedCall, /) -> AgentError | None:
        call_id = finished.call.call_id
        self.looked.append((call_id, not finished.failure))
        found: AgentError | None = self.says.get(f"{call_id}_after")
        return found


@pytest.mark.req("E13")
def test_the_gate_changes_a_call_and_says_so() -> None:
    """The tool gets the arguments that the gate let through; the model reads the note first."""
    other = call("echo", {"text": "other"})
    tool_approval = Judge(c=Approved(call=other, note="[edited]"))
    seen = asyncio.run(Stage([echo], tool_approval).run(call("echo", {"text": "mine"})))
    assert seen.said == {"c": "[edited]\n\nother"}
    assert seen.answers[0].call.arguments == {"text": "other"}


@pytest.mark.req("E8", "E13")
@pytest.mark.parametrize(
    ("tools", "third"),
    [
        pytest.param(("echo", "echo", "echo"), "hi", id="at once"),
        pytest.param(
            ("writes", "echo", "echo"),
            "[Tool not run: `echo` was refused before it]",
            id="in order",
        ),
    ],
)
def test_a_refused_call_does_not_run(tools: tuple[str, ...], third: str) -> None:
    """At once the others go on; in order the rest is skipped."""
    tool_approval = Judge(**{"2": Refused(content="[no]", failure="was refused")})
    seen = asyncio.run(Stage([echo, writes], tool_approval).run(*calls(*tools)))
    assert seen.said["2"] == "[no]"
    assert seen.said["3"] == third
    assert "2" not in seen.began
    assert [call_id for call_id, _ in tool_approval.looked] == [i for i in "13" if i in seen.began]


@pytest.mark.req("E13", "E20.22")
def test_in_order_a_plugin_that_ends_it_skips_the_rest() -> None:
    """What was done is told before the plugin sees it; the rest says that a plugin ended it."""
    error = PluginAborted("after_tool_use", "enough")
    seen = asyncio.run(Stage([writes], Judge(**{"1_after": error})).run(*calls("writes", "writes")))
    assert seen.said["1"] == "written"
    assert "a plugin ended the tool calls" in seen.said["2"]
    assert seen.ended_by is error


@pytest.mark.req("E13", "E20.28", "dec15")
def test_at_once_a_plugin_that_ends_it_lets_what_runs_finish() -> None:
    """Calls in flight are told as they end; those that still wait for the main thread don't run."""

    async def scene() -> None:
        aborted = asyncio.Event()
        error = PluginAborted("after_tool_use", "enough")

        class Ends(Judge):
            async def after(self, finished: FinishedCall, /) -> AgentError | None:
                await super().after(finished)
                aborted.set()
                return error if finished.call.call_id == "1" else None

        class BusyAfterTheFirst(Here):
            async def call(self, work: Any) -> Any:
                if "1" in stage.seen.began:
                    await aborted.wait()
                return work()

        @tool
        async def flies() -> str:
            await aborted.wait()
            await asyncio.sleep(0.01)
            return "landed"

        stage = Stage([echo, flies], Ends(), BusyAfterTheFirst(), {"tool_timeout_ms": 2_000})
        seen = await stage.run(*calls("echo", "flies", "echo", "echo"))
        assert seen.said["1"] == "hi"
        assert seen.said["2"] == "landed"
        assert seen.said["3"] == "hi"
        assert "a plugin ended the tool calls" in seen.said["4"]
        assert seen.ended_by is error

    asyncio.run(scene())


@pytest.mark.req("E9", "N7")
def test_a_stop_withdraws_the_question_of_the_gate() -> None:
    """A call that waits for leave is cancelled, and who is asked hears of it."""

    async def scene() -> None:
        stage = Stage([echo])
        withdrawn: list[bool] = []

        async def asks() -> Approved:
            stage.stop.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                withdrawn.append(True)
                raise
            raise AssertionError

        stage.tool_approval = Judge(**{"1": asks})
        assert (await stage.run(*calls("echo"))).said == {"1": CANCELLED}
        assert withdrawn == [True]

    asyncio.run(scene())


@pytest.mark.req("E9")
def test_leave_that_comes_with_the_stop_is_too_late() -> None:
    """A call that is let through when the turn has been stopped does not run."""

    async def scene() -> None:
        stage = Stage([echo])

        async def both() -> Approved:
            stage.stop.set()
            return Approved(call=calls("echo")[0])

        stage.tool_approval = Judge(**{"1": both})
        seen = await stage.run(*calls("echo"))
        assert (seen.began, seen.said) == ([], {"1": CANCELLED})

    asyncio.run(scene())


@pytest.mark.req("E2")
def test_a_watcher_that_fails_ends_the_batch() -> None:
    """Where results can't be recorded nothing goes on, and no tool is left running."""

    async def scene() -> None:
        ended: list[str] = []

        @tool
        async def waits() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("waits")

        async def refuse(_finished: FinishedCall) -> None:
            await asyncio.sleep(0.01)
            raise AgentError("the disk is full")

        stage = Stage([waits, echo])
        stage.seen.on_answer = refuse
        with pytest.raises(AgentError, match="disk is full"):
            await stage.run(*calls("waits", "echo"))
        await asyncio.sleep(0)
        assert ended == ["waits"]

    asyncio.run(scene())


@pytest.mark.req("E10", "inv17")
def test_a_model_s_long_tool_name_is_not_repeated() -> None:
    """What we say about a call is no way round the limits."""
    seen = run_all([writes], call("x" * 10_000, {}, "1"), call("writes", {}, "2"))
    assert len(seen.said["1"]) < 200
    seen = run_all([writes, fails], *calls("writes"), call("y" * 10_000, {}, "2"), *calls("x")[:0])
    assert len(seen.said["2"]) < 200
