"""The main thread as a place for work, with interrupts as messages."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable

import pytest

from agent_magics.core.errors import AgentError, Interrupted
from agent_magics.threads.loop import SessionLoop
from agent_magics.threads.main_thread import MainThread
from tests.session.looping import PATIENCE_S, thread_name


def interrupt_in(seconds: float, *, times: int = 1, apart: float = 0.2) -> threading.Thread:
    """Send SIGINT to the main thread after a while, from a thread."""
    main = threading.main_thread().ident
    assert main

    def send() -> None:
        time.sleep(seconds)
        for _ in range(times):
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(apart)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_run_gives_the_result_and_serves_the_main_thread(loop: SessionLoop) -> None:
    """Work for the main thread is done there while run() waits."""

    async def asks() -> str:
        return await loop.main.call(lambda: threading.current_thread().name)

    assert loop.run(asks()) == "MainThread"


def test_run_on_the_loop_raises_at_once(loop: SessionLoop) -> None:
    """It would wait for itself for ever."""

    async def outer() -> None:
        with pytest.raises(AgentError, match="own loop"):
            loop.run(thread_name())

    loop.run(outer())


def test_run_works_on_other_threads(loop: SessionLoop) -> None:
    """A thread without main-thread duties only waits."""
    names: list[str] = []
    thread = threading.Thread(target=lambda: names.append(loop.run(thread_name())))
    thread.start()
    thread.join(PATIENCE_S)
    assert names == ["agent-magics"]


def test_work_raises_where_it_was_asked_for(loop: SessionLoop) -> None:
    """The main thread goes on serving."""

    async def asks() -> str:
        with pytest.raises(ZeroDivisionError):
            await loop.main.call(lambda: 1 / 0)
        return await loop.main.call(lambda: "still here")

    assert loop.run(asks()) == "still here"


def test_withdrawn_work_is_not_done(loop: SessionLoop) -> None:
    """Work that nobody waits for any more and that hasn't begun never begins."""
    done: list[str] = []

    async def asks() -> None:
        first = asyncio.create_task(loop.main.call(lambda: time.sleep(0.2)))
        second = asyncio.create_task(loop.main.call(lambda: done.append("second")))
        await asyncio.sleep(0.05)
        second.cancel()
        await first

    loop.run(asks())
    assert done == []


@pytest.mark.req("dec15")
def test_user_code_may_run_other_slots_from_inside_work(loop: SessionLoop) -> None:
    """run() inside work pumps in its turn, so that other work isn't stuck behind it."""

    async def other() -> str:
        return await loop.main.call(lambda: "inner work")

    async def asks() -> str:
        return await loop.main.call(lambda: loop.run(other()))

    assert loop.run(asks()) == "inner work"


@pytest.mark.req("dec11", "N7")
def test_an_interrupt_cancels_and_waits_for_cleanup(loop: SessionLoop) -> None:
    """SIGINT in a wait is a message; KeyboardInterrupt comes after the cleanup."""
    cleaned: list[bool] = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            cleaned.append(True)

    before = signal.getsignal(signal.SIGINT)
    sender = interrupt_in(0.1)
    with pytest.raises(KeyboardInterrupt):
        loop.run(long())
    sender.join()
    assert cleaned == [True]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.req("dec11")
def test_a_second_interrupt_stops_waiting(loop: SessionLoop) -> None:
    """A cleanup that hangs doesn't hold the cell."""
    release = threading.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            while not release.is_set():  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(0.01)

    sender = interrupt_in(0.1, times=2)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loop.run(stubborn())
    assert time.monotonic() - begun < 2
    sender.join()
    release.set()


@pytest.mark.req("dec11")
def test_code_on_the_main_thread_is_interrupted_and_the_turn_cancelled(loop: SessionLoop) -> None:
    """KeyboardInterrupt reaches the code, `Interrupted` whoever asked for it, cancel the turn."""
    seen: list[str] = []

    def code() -> None:
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            seen.append("code")
            raise

    async def turn() -> None:
        work = asyncio.ensure_future(loop.main.call(code))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            seen.append("turn")
            with pytest.raises(Interrupted):
                await work
            seen.append("asker")
            raise

    sender = interrupt_in(0.2)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loop.run(turn())
    assert time.monotonic() - begun < 2
    sender.join()
    assert sorted(seen) == ["asker", "code", "turn"]


@pytest.mark.req("dec60")
def test_work_is_served_by_a_loop_that_awaits(loop: SessionLoop) -> None:
    """Where nobody pumps, the awaiting loop on the main thread does the work."""

    async def asks() -> str:
        return await loop.main.call(lambda: threading.current_thread().name)

    async def cell() -> str:
        return await asyncio.wait_for(loop.hop(asks), PATIENCE_S)

    assert asyncio.run(cell()) == "MainThread"


@pytest.mark.req("dec11")
def test_code_served_by_a_loop_is_interrupted(loop: SessionLoop) -> None:
    """In an await cell too, code in the person's namespace gets KeyboardInterrupt."""
    told: list[int] = []

    async def asks() -> None:
        work = asyncio.ensure_future(loop.main.call(lambda: time.sleep(30)))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:  # it comes first: nobody goes on with the result
            with pytest.raises(Interrupted):
                await work
            raise

    async def cell() -> None:
        with pytest.raises(asyncio.CancelledError):
            await loop.hop(asks)

    before = signal.signal(signal.SIGINT, lambda signum, _: told.append(signum))
    try:
        sender = interrupt_in(0.2)
        begun = time.monotonic()
        asyncio.run(cell())
    finally:
        signal.signal(signal.SIGINT, before)
    sender.join()
    assert time.monotonic() - begun < 2
    assert told == [signal.SIGINT]


async def break_off(main: MainThread, work: Callable[[], None]) -> None:
    """Break off until it is heard: a signal just before a sleep begins is heard after it."""
    while True:
        main.break_off(work)
        await asyncio.sleep(0.05)


@pytest.mark.req("E9")
@pytest.mark.parametrize("is_awaited", [False, True])
def test_work_whose_time_is_over_is_broken_off(loop: SessionLoop, *, is_awaited: bool) -> None:
    """It gets KeyboardInterrupt, also in a sleep; nobody else is told, so what asked goes on."""
    begun, ended = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        try:
            time.sleep(PATIENCE_S)
        finally:
            ended.set()

    async def scene() -> str:
        waiting = asyncio.ensure_future(loop.main.call(hangs))
        await asyncio.to_thread(begun.wait)
        loop.main.break_off(ended.set)  # not what runs
        breaking = asyncio.ensure_future(break_off(loop.main, hangs))
        with pytest.raises(Interrupted):
            await waiting
        breaking.cancel()
        return await loop.main.call(lambda: "next")

    async def cell() -> str:
        return await loop.hop(scene)

    began = time.monotonic()
    assert (asyncio.run(cell()) if is_awaited else loop.run(scene())) == "next"
    assert time.monotonic() - began < 1
    assert ended.is_set()
    loop.main.break_off(hangs)  # nothing runs


@pytest.mark.req("N7")
def test_a_button_interrupts_as_sigint_does(loop: SessionLoop) -> None:
    """Who waits is told; between cells nothing happens."""
    told: list[str] = []

    async def scene() -> None:
        loop.main.interrupt()
        while not told:  # noqa: ASYNC110 - a signal handler tells
            await asyncio.sleep(0.01)

    loop.main.interrupt()  # nobody waits
    _, interrupts = loop.main.pump(
        lambda: loop.post(scene()), on_interrupt=lambda: told.append("stopped")
    )
    assert (told, interrupts) == (["stopped"], 1)
    assert not loop.main.is_waited_on


@pytest.mark.req("dec11")
def test_work_that_waits_does_not_begin_after_an_interrupt(loop: SessionLoop) -> None:
    """It is withdrawn by the same interrupt, before the main thread looks for more."""
    began: list[int] = []

    def work(number: int) -> None:
        began.append(number)
        signal.raise_signal(signal.SIGINT)

    async def ask(number: int) -> None:
        await loop.main.call(lambda: work(number))

    async def turns() -> None:
        working = [asyncio.ensure_future(ask(number)) for number in range(4)]
        here = asyncio.get_running_loop()
        stop = asyncio.Event()
        stops.append(lambda: here.call_soon_threadsafe(stop.set))
        await stop.wait()
        for _ in range(8):  # the way from a turn to its tool
            time.sleep(0.002)  # noqa: ASYNC251 - busy
            await asyncio.sleep(0)
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    def stop_all() -> None:
        for stop in stops:
            stop()

    stops: list[Callable[[], object]] = []
    _, interrupts = loop.main.pump(lambda: loop.post(turns()), on_interrupt=stop_all)
    assert (began, interrupts) == ([0], 1)
