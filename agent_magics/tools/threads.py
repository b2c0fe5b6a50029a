"""Threads of ours for tools: daemons, so that a tool that hangs never holds the kernel's end up."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def on_own_thread(work: Callable[[], T], *, name: str) -> T:
    """Run `work` on a new daemon thread; cancelling the wait leaves the thread running."""
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
    if not loop.is_closed():
        loop.call_soon_threadsafe(what)
