"""One run of one tool: begun, timed, and given up where it takes too long or nobody waits.

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
    """What a tool gave, or that it failed."""

    output: ToolOutput
    duration_s: float


class _TooLate(Exception):
    """Work for the main thread came to its turn when nobody waited for it any more."""


def needs_main(tool: Tool) -> bool:
    """Return whether a tool does nothing before it is on the main thread."""
    return bool(getattr(tool, "runs_on_main", False))


class Attempt:
    """A tool while it runs, and its way to the main thread (it is the tool's `OnMain`).

    `begun` is called once, on the loop, when the tool really starts: a tool that needs the main
    thread starts when that takes it.
    """

    def __init__(
        self,
        tool: Tool,
        given: ToolInput,
        *,
        on_main: OwnedMain,
        timeout_s: float,
        begun: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tool = tool
        self._given = given
        self._on_main = on_main
        self._timeout_s = timeout_s
        self._tell_begun = begun
        self._verdict: asyncio.Future[Ran | GivenUp] = self._loop.create_future()
        self._time = ToolTime()
        self._taking = threading.Lock()  # the main thread begins work, or we give up; never both
        self._has_begun = False
        self._waits_for_main = False
        self._began_s: float | None = None
        self._left_s = timeout_s
        self._timer: asyncio.TimerHandle | None = None
        self._on_main_now: Callable[[], object] | None = None

    async def run(self, *, stop: asyncio.Event, abandon: asyncio.Event) -> Ran | GivenUp:
        """Run to the end, or until it is given up.

        `stop` withdraws a tool that has not begun; `abandon` ends the wait for any. A tool that is
        given up is cancelled; one that goes on all the same is left alone, and its answer dropped.
        """
        working = self._loop.create_task(self._work(), context=timed_by(self._time))
        working.add_done_callback(self._take)
        watching = (
            asyncio.ensure_future(self._watch(stop, self._withdraw)),
            asyncio.ensure_future(self._watch(abandon, lambda: self._give_up("abandoned"))),
        )
        if not needs_main(self._tool):
            self._has_begun = True
            self._announce()
            self._count(self._left_s, lambda: self._give_up("timed out"))
        try:
            return await self._verdict
        finally:
            self._time.is_over = True
            working.cancel()
            for watcher in watching:
                watcher.cancel()
            if self._timer is not None:
                self._timer.cancel()

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the main thread; the wait for it has a limit of its own."""
        with self._taking:
            self._waits_for_main = True
        if self._began_s is not None:
            # The tool's own clock stands still while it waits for the main thread.
            self._left_s = max(0.0, self._deadline_s - self._loop.time())
        self._count(self._timeout_s, self._give_up_waiting)

        def piece() -> T:
            return self._begin(work)

        self._on_main_now = piece
        return await self._on_main.call(piece)

    def _begin(self, work: Callable[[], T]) -> T:
        """Do main-thread work, on the main thread, unless it was given up meanwhile."""
        with self._taking:
            # Given up while it stood in the queue: running it now would do something of which the
            # model was told that it didn't happen.
            if self._time.is_over:
                raise _TooLate
            self._waits_for_main = False
            self._has_begun = True
        self._loop.call_soon_threadsafe(self._go_on)
        return work()

    def _go_on(self) -> None:
        if not self._verdict.done():
            self._announce()
            self._count(self._left_s, lambda: self._give_up("timed out"))

    def _announce(self) -> None:
        if self._began_s is None:
            self._began_s = self._loop.time()
            self._tell_begun()

    def _count(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._deadline_s = self._loop.time() + seconds
        self._timer = self._loop.call_later(seconds, then)

    def _give_up(self, why: GivenUp) -> None:
        with self._taking:
            self._time.is_over = True
        self._decide(why)
        if self._on_main_now is not None:
            for after_s in _BREAK_OFF_AFTER_S:
                self._loop.call_later(after_s, self._on_main.break_off, self._on_main_now)

    def _give_up_waiting(self) -> None:
        with self._taking:
            if not self._waits_for_main:
                return
            self._time.is_over = True
            why: GivenUp = "timed out" if self._has_begun else "main thread busy"
        self._decide(why)

    def _withdraw(self) -> None:
        with self._taking:
            if self._has_begun:
                return
            self._time.is_over = True
        self._decide("cancelled")

    def _decide(self, verdict: Ran | GivenUp) -> None:
        if not self._verdict.done():
            self._verdict.set_result(verdict)

    async def _watch(self, event: asyncio.Event, then: Callable[[], None]) -> None:
        await event.wait()
        then()

    def _take(self, working: asyncio.Task[ToolOutput]) -> None:
        """Take what the tool gave; what comes too late is dropped, and logged."""
        if working.cancelled():
            self._decide("abandoned")  # the whole loop ends
        elif error := working.exception():  # ours, not the tool's
            if not self._verdict.done():
                self._verdict.set_exception(error)
        elif self._verdict.done():
            log_late(self._tool.name)
        else:
            self._announce()  # it failed before it came to the main thread, say
            assert self._began_s is not None
            spent_s = self._loop.time() - self._began_s
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


def _error(content: str) -> ToolOutput:
    return ToolOutput(content=content, is_error=True)
