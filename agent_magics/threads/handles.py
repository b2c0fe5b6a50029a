"""What the session's loop runs: a task as other threads hold it, and threads for blocking calls."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar

from agent_magics.core.errors import AgentShutdown

T = TypeVar("T")
P = ParamSpec("P")


class Handle(Generic[T]):
    """A coroutine under way on the session's loop. Every method may be called from any thread.

    `done()` holds only after the task's own cleanup, also after `cancel()`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._is_cancelled = False
        self._ended: Future[T] = Future()

    def cancel(self) -> None:
        """Ask the task to end, once: asking again would break into its cleanup."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel_task)

    def done(self) -> bool:
        return self._ended.done()

    def result(self) -> T:
        """Wait, and return or raise what the coroutine did (CancelledError included)."""
        return self._ended.result()

    async def ended(self) -> T:
        """Wait as `result` does, on any loop; a cancelled wait leaves the task alone."""
        # Unshielded, a cancelled waiter would cancel the future that all others wait for.
        return await asyncio.shield(asyncio.wrap_future(self._ended))

    def wait(self) -> None:
        """Wait until the coroutine has ended, whatever became of it."""
        self._ended.exception()

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call `callback` once it has ended: on the session's thread, or now where it has."""
        self._ended.add_done_callback(lambda _: callback())

    def start(self, coro: Coroutine[Any, Any, T], context: contextvars.Context) -> None:
        """Make the task, in `context`; on the session's loop, once."""
        self._task = self._loop.create_task(coro, context=context)
        self._task.add_done_callback(self._end)

    def _cancel_task(self) -> None:
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        # `give_up` may have been first.
        if self._ended.done():
            return
        if task.cancelled():
            self._ended.set_exception(asyncio.CancelledError())
        elif error := task.exception():
            self._ended.set_exception(error)
        else:
            self._ended.set_result(task.result())

    def give_up(self) -> None:
        """End for those who wait, though the task didn't end in time."""
        if not self._ended.done():
            self._ended.set_exception(AgentShutdown())


class DaemonThreads(ThreadPoolExecutor):
    """A loop's default executor (name look-ups use it) that never delays the interpreter's end."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it belongs to who submitted
                future.set_exception(error)

        # The pool of concurrent.futures is joined at exit: a hanging name look-up then kept the
        # kernel alive past Jupyter's patience, and atexit never ran.
        threading.Thread(target=work, name="agent-magics-worker", daemon=True).start()
        return future
