"""Tools that hang, shout, fork and break their word: their time, their threads, their results."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from agent_magics import tool_timed_out
from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import Tool
from agent_magics.threads.loop import SessionLoop
from agent_magics.tools.dispatch import ABANDONED, CANCELLED
from agent_magics.tools.schema import tool
from tests.tools.dispatching import Here, Seen, Stage, call, calls, run_all

T = TypeVar("T")
LATE = "did not answer within"


@tool
def echo() -> str:
    return "hi"


@pytest.mark.req("E9", "E20.24")
def test_a_tool_that_takes_too_long_is_cancelled() -> None:
    """The tool hears of it, the model reads that it may still be running, the watcher its code."""
    heard: list[str] = []

    @tool
    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def scene() -> None:
        seen = await Stage([hangs], settings={"tool_timeout_ms": 20}).run(call("hangs", {}))
        await asyncio.sleep(0)
        (answer,) = seen.answers
        assert "may still be running" in answer.output.content
        assert answer.error is not None
        assert answer.error.code == "TOOL_TIMEOUT"
        assert answer.duration_ms is not None
        assert 20 <= answer.duration_ms < 1_000
        assert heard == ["cancelled"]

    asyncio.run(scene())


@pytest.mark.req("E9", "E20.24")
def test_a_tool_on_a_thread_can_ask_whether_its_time_is_over() -> None:
    """No thread can be cancelled; a function that asks can end by itself."""
    asked: list[bool] = []
    ended = threading.Event()

    @tool(thread=True)
    def works() -> str:
        asked.append(tool_timed_out())
        while not tool_timed_out():
            time.sleep(0.002)
        ended.set()
        return "late"

    seen = run_all([works], call("works", {}), tool_timeout_ms=20)
    assert LATE in seen.said["c"]
    assert ended.wait(2)
    assert asked == [False]
    assert not tool_timed_out()  # outside a tool


@pytest.mark.req("E9")
def test_a_cancelled_turn_does_not_end_a_tool_s_time() -> None:
    """Only its time-out, or a person who stops waiting, does."""

    async def scene() -> None:
        stage = Stage([])
        asked: list[bool] = []

        @tool
        async def works() -> str:
            stage.stop.set()
            await asyncio.sleep(0.01)
            asked.append(tool_timed_out())
            return "done"

        stage.tools = [works]
        assert (await stage.run(*calls("works"))).said == {"1": "done"}
        assert asked == [False]

    asyncio.run(scene())


@pytest.mark.req("E9")
def test_a_late_answer_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One result a call: what comes after the time-out is in the log only, without its text."""
    release = threading.Event()

    @tool(thread=True)
    def slow() -> str:
        release.wait(2)
        return "secret"

    @tool
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "secret"
        raise AssertionError

    async def scene() -> None:
        stage = Stage([slow, stubborn], settings={"tool_timeout_ms": 20})
        seen = await stage.run(*calls("slow", "stubborn"))
        release.set()
        while len(caplog.records) < 2:  # noqa: ASYNC110  # a thread logs
            await asyncio.sleep(0.002)
        assert all(LATE in said for said in seen.said.values())

    with caplog.at_level(logging.WARNING, "agent_magics.tools"):
        asyncio.run(asyncio.wait_for(scene(), 2))
    assert {record.args for record in caplog.records} == {("slow",), ("stubborn",)}
    assert "secret" not in caplog.text


@pytest.mark.req("E9")
def test_a_tool_that_ignores_its_cancel_is_not_waited_for() -> None:
    """The time-out is kept though the tool swallows the cancel."""

    @tool
    async def stubborn() -> None:
        for _ in range(10):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue

    async def scene() -> float:
        began = time.monotonic()
        stage = Stage([stubborn], settings={"tool_timeout_ms": 20})
        assert LATE in (await stage.run(call("stubborn", {}))).said["c"]
        return time.monotonic() - began

    assert asyncio.run(scene()) < 0.15


class Mute(Exception):
    """An error that can't even be printed."""

    def __str__(self) -> str:
        raise RuntimeError


class Foreign(BaseException):
    """What some libraries raise past every `except Exception`."""


ERRORS = [
    Foreign("x"),
    GeneratorExit(),
    KeyboardInterrupt(),
    SystemExit(3),
    asyncio.CancelledError(),
    Mute(),
    StopIteration(1),
    RecursionError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["thread", "main", "loop"])
@pytest.mark.req("E9", "inv10")
def test_whatever_a_tool_raises_is_its_result(error: BaseException, where: str) -> None:
    """No exception of a tool, however odd, ends the turn or is waited for until the time-out."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    odds: dict[str, Tool] = {
        "thread": tool(name="odd", thread=True)(fail),
        "main": tool(name="odd")(fail),
        "loop": tool(name="odd")(fail_later),
    }
    seen = run_all([odds[where], echo], *calls("odd", "odd", "echo"), tool_timeout_ms=2_000)
    failed = [answer.output for answer in seen.answers if answer.call.tool_name == "odd"]
    assert [output.is_error for output in failed] == [True, True]
    assert LATE not in failed[0].content
    assert seen.said["3"] == "hi"


@pytest.mark.req("E10", "inv17")
@pytest.mark.parametrize("kind", ["text", "value", "metadata"])
def test_a_hundred_megabytes_are_cut(kind: str) -> None:
    """The limit holds whatever a tool gives, and the loop isn't held up for long."""

    @tool
    def big() -> object:
        text = "é" * 50_000_000
        if kind == "text":
            return text
        return [text] if kind == "value" else ToolOutput(content="ok", metadata={"text": text})

    output = run_all([big], call("big", {})).answers[0].output
    assert len(output.content.encode()) <= 1_048_576
    assert output.content.endswith("[output truncated]") == (kind != "metadata")
    if kind == "metadata":
        assert output.metadata == {"_truncated": True, "_original_bytes": 100_000_011}


class Queue:
    """A main thread that is busy until it is told to take the next piece of work."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.asked = asyncio.Event()

    async def call(self, work: Callable[[], T]) -> T:
        self.asked.set()
        await self.free.wait()
        return work()

    def break_off(self, work: Callable[[], object]) -> None:
        """Do nothing: no test waits for it."""


@pytest.mark.req("E9", "dec15")
def test_the_wait_for_the_main_thread_is_not_the_tool_s_time() -> None:
    """Tools that need the main thread begin one after the other, each with its whole time."""

    @tool
    def takes_time() -> str:
        time.sleep(0.03)
        return "done"

    class Apart(Here):
        """A main thread on a thread of its own, so that the loop's clock goes on."""

        async def call(self, work: Callable[[], T]) -> T:
            return await asyncio.to_thread(work)

    async def scene() -> None:
        stage = Stage([takes_time], on_main=Apart(), settings={"tool_timeout_ms": 60})
        seen = await stage.run(*calls(*["takes_time"] * 4))
        assert list(seen.said.values()) == ["done"] * 4
        assert [answer.call.call_id for answer in seen.answers] == ["1", "2", "3", "4"]

    asyncio.run(scene())


@pytest.mark.req("E9", "E20.24")
def test_what_hangs_on_the_main_thread_is_broken_off() -> None:
    """The main thread is free again for the next call."""
    loop = SessionLoop()

    @tool
    def hangs() -> None:
        time.sleep(5)

    async def scene() -> Seen:
        stage = Stage([hangs, echo], on_main=loop.main, settings={"tool_timeout_ms": 50})
        return await stage.run(*calls("hangs", "echo"))

    began = time.monotonic()
    seen = loop.run(scene())
    loop.close()
    assert LATE in seen.said["1"]
    assert seen.said["2"] == "hi"
    assert time.monotonic() - began < 1


@pytest.mark.req("E9")
def test_a_main_thread_that_stays_busy_is_told() -> None:
    """The call did not run, says why, and never runs afterwards."""
    ran: list[int] = []

    @tool
    def write() -> None:
        ran.append(1)

    async def scene() -> None:
        busy = Queue()
        stage = Stage([write], on_main=busy, settings={"tool_timeout_ms": 20})
        seen = await stage.run(call("write", {}))
        assert seen.said["c"].startswith("[Tool not run: the main thread was busy for ")
        assert seen.answers[0].duration_ms is None
        assert seen.began == []
        busy.free.set()
        await asyncio.sleep(0.01)
        assert ran == []

    asyncio.run(scene())


@pytest.mark.req("E9", "N7", "dec11")
def test_a_stop_withdraws_what_waits_for_the_main_thread() -> None:
    """A call that the main thread has not taken has not begun."""
    ran: list[int] = []

    @tool
    def write() -> None:
        ran.append(1)

    async def scene() -> None:
        busy = Queue()
        stage = Stage([write], on_main=busy)
        running = asyncio.ensure_future(stage.run(*calls("write", "write")))
        await busy.asked.wait()
        stage.stop.set()
        seen = await asyncio.wait_for(running, 0.2)
        busy.free.set()
        await asyncio.sleep(0.01)
        assert seen.said == {"1": CANCELLED, "2": CANCELLED}
        assert ran == []

    asyncio.run(scene())


@pytest.mark.req("E9", "inv10")
def test_main_thread_work_that_ignores_the_withdrawal_does_not_run() -> None:
    """Where the queue can't be cancelled, the work itself looks before it begins."""
    ran: list[int] = []

    @tool
    def write() -> None:
        ran.append(1)

    class Deaf(Queue):
        async def call(self, work: Callable[[], T]) -> T:
            return await asyncio.shield(super().call(work))

    async def scene() -> None:
        busy = Deaf()
        stage = Stage([write], on_main=busy)
        running = asyncio.ensure_future(stage.run(*calls("write")))
        await busy.asked.wait()
        stage.stop.set()
        seen = await asyncio.wait_for(running, 0.2)
        busy.free.set()
        await asyncio.sleep(0.01)
        assert (seen.said, ran) == ({"1": CANCELLED}, [])

    asyncio.run(scene())


@pytest.mark.req("dec11")
def test_an_abandoned_thread_is_told_too() -> None:
    """A person who stops waiting ends the tool's time as well."""
    over = threading.Event()

    @tool(thread=True)
    def works() -> None:
        while not tool_timed_out():
            time.sleep(0.002)
        over.set()

    async def scene() -> None:
        stage = Stage([works])
        running = asyncio.ensure_future(stage.run(*calls("works")))
        await asyncio.sleep(0.01)
        stage.abandon.set()
        assert (await running).said == {"1": ABANDONED}
        assert over.wait(2)

    asyncio.run(scene())


@pytest.mark.req("inv10")
def test_what_a_tool_prints_from_a_thread_is_not_its_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Printing is the person's; only what is returned goes to the model."""

    @tool(thread=True)
    def shouts() -> str:
        sys.stdout.write("to the person\n")
        other = threading.Thread(target=lambda: sys.stdout.write("from a thread\n"))
        other.start()
        other.join()
        return "to the model"

    assert run_all([shouts], call("shouts", {})).said == {"c": "to the model"}
    assert capsys.readouterr().out == "to the person\nfrom a thread\n"


FORKS = """
import asyncio, os, sys, warnings
warnings.simplefilter("ignore")
from agent_magics.tools.schema import tool
from tests.tools.dispatching import calls, run_all

def fork():
    return "child" if os.fork() == 0 else "parent"

def fork_and_raise():
    if os.fork() == 0:
        raise SystemExit(5)
    return "parent"

async def fork_later():
    return fork()

tools = [
    tool(name="main")(fork),
    tool(name="thread", thread=True)(fork),
    tool(name="raises")(fork_and_raise),
    tool(name="loop")(fork_later),
]
for one in tools:
    print(one.name, run_all([one], *calls(one.name)).said, flush=True)
    os.wait()
"""


@pytest.mark.req("dec50", "E2", "inv10")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_that_a_tool_forks_does_not_come_back() -> None:
    """What follows a tool is done once, by the parent."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKS)],
        timeout=30,
        check=False,
        capture_output=True,
        text=True,
    )
    expected = [f"{name} {{'1': 'parent'}}" for name in ("main", "thread", "raises", "loop")]
    assert done.stdout.splitlines() == expected, done.stderr
