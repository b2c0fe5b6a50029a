"""One run of one tool: started, timed, and given up where it takes too long or nobody waits.

The tool's time is its own: what it waits for the main thread isn't counted, as other tools and
the person's own cells run there (docs/decisions.md#15).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from agent_magics.core.errors import said_by
from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import OwnedMain, Tool, ToolInput
from agent_magics.tools.schema import as_output
from agent_magics.tools.threads import ToolTime, end_if_forked, log_late, timed_by

T = TypeVar("T")
GivenUp = Literal["timed out", "main thread busy", "abandoned", "cancelled"]
# Work that holds the main thread for ever would hold the session. A signal that comes just before a
# blocking call is heard after it, so there is more than one.
_BREAK_OFF_AFTER_S = (0.0, 0.1, 1.0)
INTERRUPTED = "[Tool interrupted by the person]"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a tool returned, or that it failed."""

    output: ToolOutput
    duration_s: float


class _TooLate(Exception):
    """Work for the main thread came to its turn when nobody waited for it any more."""


def needs_main(tool: Tool) -> bool:
    """Return whether a tool does nothing before it is on the main thread."""
    return bool(getattr(tool, "runs_on_main", False))


class _Claim:
    """Who gets a piece of work: the main thread begins it, or we give it up; never both.

    Asked from the loop and from the main thread. `time` is over once it was given up.
    """

    def __init__(self, time: ToolTime) -> None:
        self._lock = threading.Lock()
        self._time = time
        self._has_begun = False
        self._is_queued = False

    def queue(self) -> None:
        """Let the main thread begin it, when its turn comes."""
        with self._lock:
            self._is_queued = True

    def begin(self) -> None:
        """Begin it; raises `_TooLate` where it was given up meanwhile."""
        with self._lock:
            # Given up while it stood in the queue: running it now would do something of which the
            # model was told that it didn't happen.
            if self._time.is_over:
                raise _TooLate
            self._is_queued = False
            self._has_begun = True

    def give_up(self) -> None:
        """Give it up, begun or not."""
        with self._lock:
            self._time.is_over = True

    def give_up_queued(self) -> GivenUp | None:
        """Give it up where the main thread has not begun it: None where it has."""
        with self._lock:
            if not self._is_queued:
                return None
            self._time.is_over = True
            return "timed out" if self._has_begun else "main thread busy"

    def withdraw(self) -> bool:
        """Give it up where nothing of the tool has begun; return whether that is so."""
        with self._lock:
            if self._has_begun:
                return False
            self._time.is_over = True
            return True


class _Countdown:
    """The time that a tool has left; it stands still while it waits for the main thread."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._left_s = seconds
        self._ends_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def go_on(self, at_end: Callable[[], None]) -> None:
        """Count what is left, then call `at_end`."""
        self._ends_s = self._loop.time() + self._left_s
        self._set(self._left_s, at_end)

    def stand_still(self, wait_s: float, at_end: Callable[[], None]) -> None:
        """Count a wait that isn't the tool's own in its place."""
        if self._ends_s is not None:
            self._left_s = max(0.0, self._ends_s - self._loop.time())
            self._ends_s = None
        self._set(wait_s, at_end)

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, seconds: float, at_end: Callable[[], None]) -> None:
        self.stop()
        self._timer = self._loop.call_later(seconds, at_end)


class Attempt:
    """A tool while it runs, and its way to the main thread (it is the tool's `OnMain`).

    `on_start` is called once, on the loop, when the tool really starts: a tool that needs the main
    thread starts when that takes it.
    """

    def __init__(
        self,
        tool: Tool,
        given: ToolInput,
        *,
        on_main: OwnedMain,
        timeout_s: float,
        on_start: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tool = tool
        self._given = given
        self._on_main = on_main
        self._timeout_s = timeout_s
        self._on_start = on_start
        self._verdict: asyncio.Future[Ran | GivenUp] = self._loop.create_future()
        self._time = ToolTime()
        self._claim = _Claim(self._time)
        self._countdown = _Countdown(timeout_s)
        self._started_s: float | None = None
        self._main_work: Callable[[], object] | None = None

    async def run(self, *, stop: asyncio.Event, abandon: asyncio.Event) -> Ran | GivenUp:
        """Run to the end, or until it is given up.

        `stop` withdraws a tool that has not begun; `abandon` ends the wait for any. A tool that is
        given up is cancelled; one that goes on all the same is left alone, and its answer dropped.
        """
        working = self._loop.create_task(self._work(), context=timed_by(self._time))
        working.add_done_callback(self._note_result)
        watching = (
            asyncio.ensure_future(_when(stop, self._withdraw)),
            asyncio.ensure_future(_when(abandon, lambda: self._give_up("abandoned"))),
        )
        if not needs_main(self._tool):
            self._claim.begin()
            self._start()
        try:
            return await self._verdict
        finally:
            self._time.is_over = True
            working.cancel()
            for watcher in watching:
                watcher.cancel()
            self._countdown.stop()

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the main thread; the wait for it has a limit of its own."""
        self._claim.queue()
        self._countdown.stand_still(self._timeout_s, self._give_up_queued)

        def main_work() -> T:
            self._claim.begin()
            self._loop.call_soon_threadsafe(self._start)
            return work()

        self._main_work = main_work
        return await self._on_main.call(main_work)

    def _start(self) -> None:
        """Count the tool's own time, from now or from where it stood still."""
        if not self._verdict.done():
            self._announce()
            self._countdown.go_on(lambda: self._give_up("timed out"))

    def _announce(self) -> None:
        if self._started_s is None:
            self._started_s = self._loop.time()
            self._on_start()

    def _give_up(self, why: GivenUp) -> None:
        self._claim.give_up()
        self._decide(why)
        if self._main_work is not None:
            # More than once: code that catches everything in a loop swallows the first.
            for after_s in _BREAK_OFF_AFTER_S:
                self._loop.call_later(after_s, self._on_main.break_off, self._main_work)

    def _give_up_queued(self) -> None:
        why = self._claim.give_up_queued()
        if why is not None:
            self._decide(why)

    def _withdraw(self) -> None:
        if self._claim.withdraw():
            self._decide("cancelled")

    def _decide(self, verdict: Ran | GivenUp) -> None:
        if not self._verdict.done():
            self._verdict.set_result(verdict)

    def _note_result(self, working: asyncio.Task[ToolOutput]) -> None:
        """Take what came of the tool; what comes too late is dropped, and logged."""
        if working.cancelled():
            self._decide("abandoned")  # the whole loop ends
        elif error := working.exception():  # ours, not the tool's
            if not self._verdict.done():
                self._verdict.set_exception(error)
        elif self._verdict.done():
            log_late(self._tool.name)
        else:
            self._announce()  # it failed before it came to the main thread, say
            assert self._started_s is not None
            spent_s = self._loop.time() - self._started_s
            self._decide(Ran(output=working.result(), duration_s=spent_s))

    async def _work(self) -> ToolOutput:
        pid = os.getpid()
        try:
            return as_output(await self._tool.execute(self._given, self))
        except _TooLate:
            raise asyncio.CancelledError from None
        except KeyboardInterrupt:
            return _error(INTERRUPTED)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _error(said_by(error))  # the tool's own cancel, not ours
        except BaseException as error:  # noqa: BLE001  # a tool is foreign code; its fault is a result
            return _error(said_by(error))
        finally:
            end_if_forked(pid)


async def _when(event: asyncio.Event, then: Callable[[], None]) -> None:
    await event.wait()
    then()


def _error(content: str) -> ToolOutput:
    return ToolOutput(content=content, is_error=True)
