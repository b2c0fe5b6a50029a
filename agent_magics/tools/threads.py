"""What runs a tool apart from the loop: a daemon thread, the tool's time, forks that come back."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
_log = logging.getLogger("agent_magics.tools")


class ToolTime:
    """The time of one run of a tool, as the tool itself can see it from wherever it runs."""

    def __init__(self) -> None:
        self.is_over = False


_time: contextvars.ContextVar[ToolTime | None] = contextvars.ContextVar(
    "agent_magics_tool_time", default=None
)


def tool_timed_out() -> bool:
    """Tell a tool that its time is over: it timed out, or the person stopped waiting for it.

    Its result is dropped then. Async tools are cancelled; a function that works on a thread for
    long asks this now and then, and returns. False outside a tool.
    """
    time = _time.get()
    return time is not None and time.is_over


def timed_by(time: ToolTime) -> contextvars.Context:
    """Return a copy of this context in which `tool_timed_out` asks `time`."""
    context = contextvars.copy_context()
    context.run(_time.set, time)
    return context


def end_if_forked(pid: int) -> None:
    """End a child process that a tool forked and let come back here: only its parent goes on.

    Its loop, its locks and its files belong to the parent.
    """
    if os.getpid() != pid:
        # Not exit(): the handlers of the parent would run in the child, and close what the parent
        # uses.
        os._exit(0)


def log_late(name: str) -> None:
    """Note that a tool answered when nobody waited any more; its answer is in no ledger."""
    _log.warning("tool %.64s answered after it was given up; its answer was dropped", name)


async def on_own_thread(work: Callable[[], T], *, name: str) -> T:
    """Run `work` on a new daemon thread; cancelling the wait leaves the thread running.

    A daemon, so that a tool that hangs never holds the kernel's end up.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(set_it: Callable[[], None]) -> None:
        if not result.done():
            set_it()

    def main() -> None:
        try:
            value = context.run(work)
        except BaseException as error:  # noqa: BLE001  # whatever it is goes to who waits
            failure = _raisable(error)
            _tell(loop, lambda: settle(lambda: result.set_exception(failure)))
        else:
            _tell(loop, lambda: settle(lambda: result.set_result(value)))

    threading.Thread(target=main, name=name, daemon=True).start()
    return await result


def _raisable(error: BaseException) -> BaseException:
    """A future takes no `StopIteration` (a bare `next()` in a tool): wrap it as coroutines do."""
    if not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("the tool raised StopIteration")
    wrapped.__cause__ = error
    return wrapped


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has been closed meanwhile
        loop.call_soon_threadsafe(what)
