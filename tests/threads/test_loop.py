"""The session's loop: reached from any loop and thread, cancelled only with its cleanup done."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator

import pytest

from agent_magics.core.errors import AgentError, AgentShutdown
from agent_magics.threads.loop import SessionLoop, background_loop, hop_iter, on_session_loop, run
from tests.session.looping import PATIENCE_S, thread_name

WHO = contextvars.ContextVar("WHO", default="nobody")


async def failing() -> None:
    raise KeyError("gone")


@pytest.mark.req("dec60", "N11")
def test_a_hop_runs_on_the_sessions_thread(loop: SessionLoop) -> None:
    """Whatever loop awaits, the work happens on one thread."""
    assert asyncio.run(loop.hop(thread_name)) == "agent-magics"


@pytest.mark.req("dec60")
def test_a_hop_on_the_loop_itself_is_direct(loop: SessionLoop) -> None:
    """Hopping where one already is makes no new task."""

    async def outer() -> bool:
        task = asyncio.current_task()

        async def inner() -> bool:
            return asyncio.current_task() is task

        return await loop.hop(inner)

    assert loop.run(outer())


@pytest.mark.req("dec60")
def test_hops_makes_a_method_awaitable_from_any_loop() -> None:
    """The decorator keeps name, arguments and result."""

    class Session:
        @on_session_loop
        async def ask(self, text: str, *, loud: bool = False) -> tuple[str, str]:
            """Ask."""
            return threading.current_thread().name, text.upper() if loud else text

    assert asyncio.run(Session().ask("a", loud=True)) == ("agent-magics", "A")
    assert Session.ask.__name__ == "ask"
    assert run(Session().ask("a")) == ("agent-magics", "a")


def test_an_exception_comes_with_its_traceback(loop: SessionLoop) -> None:
    """Who reads it sees where it was raised, not only where it was waited for."""
    with pytest.raises(KeyError) as caught:
        asyncio.run(loop.hop(failing))
    assert "failing" in "".join(traceback.format_exception(caught.value))


def test_the_callers_context_is_carried(loop: SessionLoop) -> None:
    """A task created from a cell speaks in that cell's name, also back on the main thread."""

    async def asks() -> tuple[str, str]:
        return WHO.get(), await loop.main.call(WHO.get)

    async def cell() -> tuple[str, str]:
        WHO.set("this cell")
        return await loop.hop(asks)

    assert asyncio.run(cell()) == ("this cell", "this cell")


@pytest.mark.req("dec60")
def test_a_cancelled_hop_waits_for_the_inner_cleanup(loop: SessionLoop) -> None:
    """`run_coroutine_threadsafe().cancel()` says done too early; a hop doesn't."""
    steps: list[str] = []

    async def inner() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            steps.append("cleaned up")

    async def outer() -> None:
        task = asyncio.create_task(loop.hop(inner))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        steps.append("told")

    asyncio.run(outer())
    assert steps == ["cleaned up", "told"]


@pytest.mark.req("dec60")
def test_the_main_thread_is_served_while_a_cancelled_task_ends(loop: SessionLoop) -> None:
    """Cleanup that needs the main thread doesn't wait for ever."""
    served: list[str] = []

    async def inner() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await loop.main.call(lambda: served.append(threading.current_thread().name))

    async def outer() -> None:
        task = asyncio.create_task(loop.hop(inner))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE_S)

    asyncio.run(outer())
    assert served == ["MainThread"]


@pytest.mark.req("dec60")
def test_a_result_that_a_cancel_came_too_late_for_is_undone(loop: SessionLoop) -> None:
    """Nobody can take it; who cancelled goes on when it is undone."""
    steps: list[str] = []

    async def undo(result: str) -> None:
        await asyncio.sleep(0.02)
        steps.append(f"{result} undone on {threading.current_thread().name}")

    async def outer() -> None:
        waits, made = threading.Event(), threading.Event()

        async def inner() -> str:
            waits.wait(PATIENCE_S)
            asyncio.get_running_loop().call_later(0.02, made.set)  # after the task's end
            return "it"

        task = asyncio.create_task(loop.hop(inner, undo=undo))
        await asyncio.sleep(0)
        waits.set()
        made.wait(PATIENCE_S)  # the caller's loop is held meanwhile
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        steps.append("told")

    asyncio.run(outer())
    assert steps == ["it undone on agent-magics", "told"]


@pytest.mark.req("dec60")
def test_a_result_that_nobody_waits_for_any_more_is_undone_when_it_comes(
    loop: SessionLoop,
) -> None:
    """Two cancels stop the waiting, not the work; what it gives then is undone all the same."""
    undone = threading.Event()
    release = threading.Event()

    async def stubborn() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "it"

    async def undo(_result: str) -> None:
        undone.set()

    async def outer() -> None:
        task = asyncio.create_task(loop.hop(stubborn, undo=undo))
        for _ in range(2):
            await asyncio.sleep(0.05)
            task.cancel()
        await asyncio.wait([task])
        assert not undone.is_set()
        release.set()

    asyncio.run(outer())
    assert undone.wait(PATIENCE_S)


@pytest.mark.req("dec60")
def test_what_was_taken_or_never_came_is_not_undone(loop: SessionLoop) -> None:
    """`undo` hears only of a result that is lost."""
    undone: list[object] = []

    async def undo(result: object) -> None:
        undone.append(result)

    async def outer() -> None:
        assert await loop.hop(thread_name, undo=undo) == "agent-magics"
        with pytest.raises(KeyError):
            await loop.hop(failing, undo=undo)
        task = asyncio.create_task(loop.hop(lambda: asyncio.sleep(60), undo=undo))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(outer())
    assert undone == []


@pytest.mark.req("dec11")
def test_a_second_cancel_stops_waiting(loop: SessionLoop) -> None:
    """Cleanup that hangs doesn't hold whoever has asked twice."""
    release = threading.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            while not release.is_set():  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(0.01)

    async def outer() -> float:
        task = asyncio.create_task(loop.hop(stubborn))
        for _ in range(2):
            await asyncio.sleep(0.05)
            task.cancel()
        begun = time.monotonic()
        await asyncio.wait([task])
        return time.monotonic() - begun

    assert asyncio.run(outer()) < 1
    release.set()


def test_a_handle_is_done_only_after_cleanup(loop: SessionLoop) -> None:
    """Cancelling from any thread; done() is true once the task has ended."""
    cleaned, entered = threading.Event(), threading.Event()

    async def inner() -> None:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    handle = loop.post(inner())
    entered.wait(PATIENCE_S)
    handle.cancel()
    assert not handle.done()
    with pytest.raises(asyncio.CancelledError):
        handle.result()
    assert cleaned.is_set()


def test_a_handle_cancelled_at_once_never_begins(loop: SessionLoop) -> None:
    """No coroutine is left unawaited (warnings are errors here)."""
    handle = loop.post(asyncio.sleep(60))
    handle.cancel()
    with pytest.raises(asyncio.CancelledError):
        handle.result()


@pytest.mark.req("dec11")
def test_cancelling_again_does_not_break_into_the_cleanup(loop: SessionLoop) -> None:
    """A turn that is being recorded is recorded to its end."""
    cleaned, entered = threading.Event(), threading.Event()

    async def turn() -> None:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            cleaned.set()

    handle = loop.post(turn())
    entered.wait(PATIENCE_S)
    for _ in range(5):
        handle.cancel()
        time.sleep(0.01)
    handle.wait()
    assert cleaned.is_set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_loop_outlives_a_task_that_wants_to_exit(
    loop: SessionLoop, error: type[BaseException]
) -> None:
    """asyncio passes these on to the loop's runner; the other sessions must live."""

    async def exits() -> None:
        raise error

    with pytest.raises(error):
        loop.post(exits()).result()
    assert loop.run(thread_name()) == "agent-magics"


@pytest.mark.req("dec60")
def test_a_stream_hops_in_order_and_whole() -> None:
    """No item is lost or moved, also where the stream is faster than its reader."""

    async def numbers() -> AsyncIterator[int]:
        for number in range(500):
            if number % 100 == 0:
                await asyncio.sleep(0)
            yield number

    async def outer() -> list[int]:
        return [number async for number in hop_iter(numbers)]

    for _ in range(20):
        assert asyncio.run(outer()) == list(range(500))


def test_a_stream_ends_with_its_error() -> None:
    """What came before the error comes, then the error."""

    async def broken() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        raise KeyError("gone")

    async def outer() -> list[int]:
        seen = []
        try:
            async for number in hop_iter(broken):
                seen.append(number)  # noqa: PERF401 - the error comes in between
        except KeyError:
            seen.append(-1)
        return seen

    assert asyncio.run(outer()) == [1, -1]


@pytest.mark.req("dec60")
def test_leaving_a_stream_ends_it(loop: SessionLoop) -> None:
    """The inner iteration has cleaned up when leaving returns."""
    steps: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0.01)
        finally:
            steps.append("closed")

    async def outer() -> None:
        stream = loop.hop_iter(endless)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(outer())
    assert steps == ["closed"]


@pytest.mark.req("dec50")
def test_closing_cancels_and_lets_clean_up(loop: SessionLoop) -> None:
    """The end of a kernel in mid-turn: cancelled, recorded, within its patience."""
    cleaned, entered = threading.Event(), threading.Event()

    async def turn() -> None:
        entered.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            cleaned.set()

    handle = loop.post(turn())
    entered.wait(PATIENCE_S)
    loop.close()
    assert cleaned.is_set()
    assert handle.done()
    with pytest.raises(AgentShutdown):
        loop.run(thread_name())


@pytest.mark.req("dec50")
def test_closing_does_not_wait_for_a_task_that_hangs(loop: SessionLoop) -> None:
    """Patience ends; whoever waited is told."""
    release, entered = threading.Event(), threading.Event()

    async def stubborn() -> None:
        entered.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    handle = loop.post(stubborn())
    entered.wait(PATIENCE_S)
    begun = time.monotonic()
    loop.close(patience_s=0.2)
    assert time.monotonic() - begun < 1
    with pytest.raises(AgentShutdown):
        handle.result()
    release.set()


@pytest.mark.req("dec50")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_and_its_parent_works_on(loop: SessionLoop) -> None:
    """The thread stayed in the parent; a child that waited for it would hang."""
    pid = os.fork()
    if pid == 0:
        try:
            loop.run(thread_name())
        except AgentError as error:
            os._exit(0 if "forked" in str(error) else 1)
        except BaseException:  # noqa: BLE001 - nothing may return into pytest here
            os._exit(2)
        os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert loop.run(thread_name()) == "agent-magics"


SCRIPT = """
import asyncio, threading, time
from agent_magics.threads.loop import background_loop
async def hangs():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
async def blocks():
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
background_loop().post(hangs())
background_loop().post(blocks())
time.sleep(0.2)
"""


@pytest.mark.slow
@pytest.mark.req("dec50")
def test_the_interpreter_ends_though_coroutines_and_look_ups_hang() -> None:
    """Neither a coroutine that ignores its cancel nor a blocked thread delays the end for long."""
    begun = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "cancelled" in ended.stdout
    assert time.monotonic() - begun < 6


def test_name_look_ups_work_on_the_loop(loop: SessionLoop) -> None:
    """asyncio looks names up on the loop's default executor, which is ours."""

    async def look_up() -> int:
        found = await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
        return len(found)

    assert loop.run(look_up()) > 0
    with pytest.raises(socket.gaierror):
        loop.run(failing_look_up())


async def failing_look_up() -> None:
    await asyncio.get_running_loop().getaddrinfo("127.0.0.1", "no such service")


def test_there_is_one_background_loop() -> None:
    """Everything of a process meets on it."""
    assert background_loop() is background_loop()
