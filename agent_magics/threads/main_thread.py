"""The main thread as a place for work: whoever waits there serves it, and hears SIGINT meanwhile.

Sessions run on their own loop; user code, displays and questions belong to the main thread. Work
for it stands in one queue, served by whoever has the main thread: a magic that
waits (`pump`), or a loop that runs there while a cell awaits (`served_by`).
"""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any, Protocol, TypeVar

from agent_magics.core.errors import Interrupted

T = TypeVar("T")
TICK_S = 0.05
STOPS_WAITING = 2  # interrupts
STEPS_TO_HEAR, HEAR_PATIENCE_S = 20, 0.2


class Waitable(Protocol):
    """What a main thread can wait for; `done()` holds only after its cleanup."""

    def done(self) -> bool: ...

    def cancel(self) -> None: ...

    def add_done_callback(self, callback: Callable[[], None]) -> None: ...

    def wait(self) -> None: ...


W = TypeVar("W", bound=Waitable)


class _Job:
    """One piece of work, in the context of who asked for it; `loop` is where they wait."""

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.context = contextvars.copy_context()
        self.future: Future[Any] = Future()


class _Pump:
    """One wait under way; a job of it may wait again, so pumps stand on one another."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.interrupts = 0
        self.on_interrupt: Callable[[], None] | None = None

    def interrupt(self) -> None:
        self.interrupts += 1
        if self.interrupts == 1 and self.on_interrupt:
            self.on_interrupt()

    def begin(self, on_interrupt: Callable[[], None]) -> None:
        """Say what an interrupt does; one that came before there was anything counts too."""
        self.on_interrupt = on_interrupt
        if self.interrupts:
            on_interrupt()


class MainThread:
    """Implements `core.ports.OwnedMain` for the thread that Python started on."""

    def __init__(self) -> None:
        self._thread = threading.main_thread()
        # not SimpleQueue: a signal at the end of its timeout makes get() wait for ever (3.11)
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._servers: list[tuple[asyncio.AbstractEventLoop, Callable[[], None] | None]] = []
        self._pumps: list[_Pump] = []
        self._running: list[_Job] = []  # the innermost last
        self._broken: _Job | None = None
        self._handlers: list[Any] = []
        self._hurried: list[Callable[[], None]] = []
        self._before_hurry: Any = None

    @property
    def is_waited_on(self) -> bool:
        """Return whether something waits there and serves work (`pump`); from any thread."""
        return bool(self._pumps)

    def is_here(self) -> bool:
        """Return whether the caller runs on the main thread."""
        return threading.current_thread() is self._thread

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the main thread, in the caller's context, and return its result.

        Raises what `work` raises; KeyboardInterrupt comes as `Interrupted`. A cancel withdraws
        work that hasn't begun; work that runs goes on.
        """
        if self.is_here():
            return work()
        job = _Job(work, asyncio.get_running_loop())
        self._jobs.put(job)
        # The newest first: an older loop may be blocked inside the cell that the newer one serves.
        for loop, _ in reversed(self._servers):
            with suppress(RuntimeError):  # that loop was closed meanwhile
                loop.call_soon_threadsafe(self._serve_queued)
                break
        result: T = await asyncio.wrap_future(job.future)
        return result

    def break_off(self, work: Callable[[], object]) -> None:
        """Raise KeyboardInterrupt in `work` where it runs now: its time is over, nobody stopped it.

        Callable from any thread. Nothing happens where the work isn't the innermost one, or SIGINT
        would not come to us.
        """
        job = next(iter(self._running[-1:]), None)
        # A signal would hit whatever runs by then, which may be the person's own cell.
        if job is None or job.work is not work:
            return
        if signal.getsignal(signal.SIGINT) not in self._handlers:
            return
        self._broken = job
        self._signal()

    def interrupt(self) -> None:
        """Do what SIGINT does to those who wait here. Callable from any thread.

        Nothing happens where nobody waits, or SIGINT would not come to us.
        """
        if signal.getsignal(signal.SIGINT) in self._handlers:
            self._signal()

    def _signal(self) -> None:
        if hasattr(signal, "pthread_kill"):
            # A signal to the thread wakes a call that sleeps there; a flag would be seen only after
            # it.
            signal.pthread_kill(self._thread.ident or 0, signal.SIGINT)
        else:  # Windows: a call that sleeps is not woken
            _thread.interrupt_main()

    @contextmanager
    def served_by(
        self, loop: asyncio.AbstractEventLoop, on_interrupt: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Let `loop`, which runs on the main thread, serve work while nobody pumps.

        SIGINT during such work calls `on_interrupt` before the work hears of it: whoever waits
        for its result must not go on with it.
        """
        server = (loop, on_interrupt)
        self._servers.append(server)
        loop.call_soon_threadsafe(self._serve_queued)
        try:
            yield
        finally:
            self._servers.remove(server)

    def pump(
        self, start: Callable[[], W], *, on_interrupt: Callable[[], None] | None = None
    ) -> tuple[W, int]:
        """Start something, wait for it and serve work; return it, and how often SIGINT came.

        The first SIGINT calls `on_interrupt` (default: cancel what was started) and waiting goes
        on; the second cancels and stops waiting. Code that runs as work gets KeyboardInterrupt
        too. On any other thread there is neither work nor signal.
        """
        if not self.is_here():
            handle = start()
            handle.wait()
            return handle, 0
        pump = _Pump(len(self._running))
        with self._hearing_interrupts(pump):
            handle = start()
            # Wakes the wait at once; without it each cell would end up to a tick late.
            handle.add_done_callback(lambda: self._jobs.put(None))
            # SIGINT may have come while `start` ran and there was nothing to cancel yet.
            pump.begin(on_interrupt or handle.cancel)
            # In ticks: on Windows a wait without an end can't be interrupted.
            while not handle.done() and pump.interrupts < STOPS_WAITING:
                self._serve_next()
        if not handle.done():
            handle.cancel()
        return handle, pump.interrupts

    @contextmanager
    def hurried_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` on SIGINT, after whoever was told before, while a loop here cleans up.

        ipykernel hears only the first SIGINT of a cell that awaits.
        """
        self._hurried.append(stop)
        if len(self._hurried) == 1:
            self._before_hurry = signal.signal(signal.SIGINT, self._on_hurry)
        try:
            yield
        finally:
            self._hurried.remove(stop)
            if not self._hurried and signal.getsignal(signal.SIGINT) == self._on_hurry:
                signal.signal(signal.SIGINT, self._before_hurry)

    def _on_hurry(self, signum: int, frame: FrameType | None) -> None:
        for stop in tuple(self._hurried):
            stop()
        if callable(self._before_hurry):
            self._before_hurry(signum, frame)

    def _serve_next(self) -> None:
        with suppress(queue.Empty):
            job = self._jobs.get(timeout=TICK_S)
            if job is not None:
                self._do(job)

    def _serve_queued(self) -> None:
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    with self._raising():
                        self._do(job)

    def _do(self, job: _Job) -> None:
        # Withdrawn while it stood in the queue.
        if not job.future.set_running_or_notify_cancel():
            return
        depth = len(self._running)
        try:
            try:
                self._running.append(job)
                result = job.context.run(job.work)
            finally:
                del self._running[depth:]
        except KeyboardInterrupt as interrupt:
            del self._running[depth:]  # the signal may have come inside the finally above
            error = Interrupted()
            error.__cause__ = interrupt
            job.future.set_exception(error)
            _let_cancels_arrive(job.loop)  # or the next one starts before it is withdrawn
        except StopIteration as error:  # asyncio can't pass it on: who asked would wait for ever
            wrapped = RuntimeError("the work raised StopIteration")
            wrapped.__cause__ = error
            job.future.set_exception(wrapped)
        except BaseException as error:  # noqa: BLE001 - it belongs to who asked for the work
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    @contextmanager
    def _hearing_interrupts(self, pump: _Pump) -> Iterator[None]:
        """Hear SIGINT as a message for `pump` and for those it stands on."""
        old = signal.getsignal(signal.SIGINT)
        hears = callable(old)  # ignored, or not Python's: leave it so
        self._pumps.append(pump)
        try:
            with self._handling(self._on_sigint) if hears else nullcontext():
                yield
        finally:
            self._pumps.remove(pump)

    @contextmanager
    def _handling(self, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
        old = signal.getsignal(signal.SIGINT)
        self._handlers.append(handler)
        try:
            signal.signal(signal.SIGINT, handler)
            yield
        finally:
            signal.signal(signal.SIGINT, old)
            self._handlers.remove(handler)

    def _on_sigint(self, _signum: int, _frame: FrameType | None) -> None:
        if self._is_for_broken():
            return
        # All of them: an inner wait belongs to a tool of the outer one's turn, and that has to stop
        # as well.
        for pump in self._pumps:
            pump.interrupt()
        # Only where the person's code runs on top. Raised inside the pump it would leave the turn
        # running with nobody to serve it.
        if self._pumps and len(self._running) > self._pumps[-1].depth:
            raise KeyboardInterrupt

    def _is_for_broken(self) -> bool:
        """Return whether a signal is our own; raise KeyboardInterrupt where its work still runs."""
        # The signal comes some time after it was sent; the work that it was meant for may have
        # ended.
        job, self._broken = self._broken, None
        if job is not None and self._running and self._running[-1] is job:
            raise KeyboardInterrupt
        return job is not None

    @contextmanager
    def _raising(self) -> Iterator[None]:
        """Let SIGINT reach code that a loop serves: who was told before is told, then it raises.

        ipykernel ignores SIGINT between cells; code that runs there is stopped all the same.
        """
        old = signal.getsignal(signal.SIGINT)
        depth = len(self._running)

        def pass_on_and_raise(signum: int, frame: FrameType | None) -> None:
            if self._is_for_broken():
                return
            for _, on_interrupt in self._servers:
                if on_interrupt:
                    on_interrupt()
            if callable(old):
                old(signum, frame)
            if len(self._running) > depth:
                raise KeyboardInterrupt

        if old in (None, signal.SIG_DFL):
            yield
            return
        with self._handling(pass_on_and_raise):
            yield


def _let_cancels_arrive(loop: asyncio.AbstractEventLoop) -> None:
    """Wait until what was posted to a loop has come to all whom it concerns; never for long."""
    # A cancel takes several steps of the loop to travel from the turn to the tool that waits; the
    # queue must not give out its next job before that.
    done = threading.Event()

    def step(steps: int) -> None:
        if steps:
            loop.call_soon(step, steps - 1)
        else:
            done.set()

    with suppress(RuntimeError):  # that loop was closed meanwhile
        loop.call_soon_threadsafe(step, STEPS_TO_HEAR)
        done.wait(HEAR_PATIENCE_S)
