"""The one background loop that sessions live on, and the ways to it from other loops and threads.

A session belongs to this loop alone: its locks and tasks are never shared with another one.
Public coroutines hop here and may be awaited from any loop.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import logging
import os
import threading
import traceback
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from agent_magics.core.errors import AgentError, AgentShutdown
from agent_magics.threads.handles import DaemonThreads, Handle
from agent_magics.threads.main_thread import TICK_S, MainThread

__all__ = [
    "Handle",
    "MainThread",
    "SessionLoop",
    "background_loop",
    "hop_iter",
    "on_session_loop",
    "on_session_loop_undoing",
    "run",
]

T = TypeVar("T")
P = ParamSpec("P")
UndoCall = Callable[[T], Coroutine[Any, Any, object]]
_log = logging.getLogger("agent_magics.session")
CLOSE_PATIENCE_S = 1.0  # a kernel has 2 s in all


class SessionLoop:
    """An asyncio loop in a daemon thread named "agent-magics"; `main` is its way back."""

    def __init__(self) -> None:
        self.main = MainThread()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonThreads())
        self._handles: set[Handle[Any]] = set()
        self._was_forked = False
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="agent-magics", daemon=True)
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=_marking_forked(self))
        self._thread.start()

    def is_here(self) -> bool:
        """Return whether the caller runs on this loop's thread."""
        return threading.current_thread() is self._thread

    def post(self, coro: Coroutine[Any, Any, T]) -> Handle[T]:
        """Start `coro` here as a task in the caller's context; return at once, from any thread.

        Raises `AgentError` in a forked child, `AgentShutdown` once the loop is closed.
        """
        handle: Handle[T] = Handle(self._loop)
        try:
            self._check()
            # The caller's context carries the cell: what the task displays goes to the cell that
            # asked.
            self._loop.call_soon_threadsafe(handle.start, coro, contextvars.copy_context())
        except AgentError:
            coro.close()
            raise
        self._handles.add(handle)
        handle.add_done_callback(lambda: self._handles.discard(handle))
        return handle

    def post_unwatched(self, coro: Coroutine[Any, Any, T], *, doing: str) -> Handle[T]:
        """Post what nobody waits for: an error of it is logged, "`doing` failed"."""
        handle = self.post(coro)
        handle.add_done_callback(lambda: _log_failure(handle, doing))
        return handle

    async def hop(self, make: Callable[[], Awaitable[T]], *, undo: UndoCall[T] | None = None) -> T:
        """Await `make()` on this loop, from whichever loop the caller runs on.

        A cancel is forwarded and waits until the inner task has ended; a second one stops
        waiting. A result that the cancel came too late for goes to `undo`, here, which is waited
        for too. On a main-thread loop, main-thread work is served meanwhile.
        """
        if self.is_here():
            return await make()
        # Made over there: an asyncio object made on one loop and awaited on another hangs or
        # raises.
        handle = self.post(_awaiting(make))
        try:
            await self._ending(handle)
        except asyncio.CancelledError:
            if undo is not None:
                undone = self.post_undo(handle, undo)
                if handle.done():  # else nobody waits any more
                    await self._cleaning(undone)
            raise
        return handle.result()

    def post_undo(self, handle: Handle[T], undo: UndoCall[T]) -> Handle[None]:
        """Once `handle` has ended, give its result, if it has one, to `undo` here."""

        async def undoing() -> None:
            try:
                result = await handle.ended()
            except BaseException:  # noqa: BLE001 - it gave nothing, so there is nothing to undo
                return
            await undo(result)

        return self.post_unwatched(undoing(), doing="undoing what a stop came too late for")

    async def hop_iter(self, make: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        """Iterate `make()` on this loop, from whichever loop the caller runs on.

        Leaving early cancels the inner iteration and waits until it has ended.
        """
        if self.is_here():
            async for item in make():
                yield item
            return
        inbox: deque[T] = deque()
        caller, news = asyncio.get_running_loop(), asyncio.Event()

        async def forward() -> None:
            async for item in make():
                inbox.append(item)
                caller.call_soon_threadsafe(news.set)

        handle = self.post(forward())
        handle.add_done_callback(lambda: _wake(caller, news))
        try:
            with self._served(caller, handle.cancel):
                is_over = False
                while not is_over:
                    is_over = handle.done()  # looked at before the inbox, or the last item is lost
                    while inbox:
                        yield inbox.popleft()
                    if not is_over:
                        await _tick(news)
            handle.result()
        except asyncio.CancelledError as stopped:
            _shorten_traceback(stopped)
            raise
        finally:
            if not handle.done():
                handle.cancel()
                await self._ending(handle)

    def call(self, read: Callable[[], T]) -> T:
        """Call `read` here, wait, and return or raise what it does; from any thread.

        It waits for nothing, so a caller on the main thread serves no work meanwhile.
        """
        if self.is_here():
            return read()

        async def reading() -> T:
            return read()

        return self.post(reading()).result()

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run `coro` here and wait for it; on the main thread, main-thread work is served.

        Raises `AgentError` at once on this loop itself, which would wait for itself for ever, and
        KeyboardInterrupt after SIGINT, once the coroutine has cleaned up.
        """
        if self.is_here():
            coro.close()
            raise AgentError("run() was called on the session's own loop; use await there.")
        handle, interrupts = self.main.pump(lambda: self.post(coro))
        if interrupts:
            stopped = KeyboardInterrupt()
            _shorten_traceback(stopped)
            raise stopped
        return handle.result()

    def close(self, patience_s: float = CLOSE_PATIENCE_S) -> None:
        """Cancel what runs, wait up to `patience_s` for its cleanup, and end the thread."""
        # In a forked child there is no such thread to join; on the loop itself it would wait for
        # itself.
        if self._was_forked or self._is_closing or self.is_here():
            return
        self._is_closing = True
        self._loop.call_soon_threadsafe(self._begin_closing, patience_s)
        # A little more than the loop gives its tasks, so that it can still say goodbye.
        self._thread.join(patience_s + 0.25)
        # Whoever still waits would wait for ever: the loop that could answer is gone.
        for handle in tuple(self._handles):
            handle.give_up()

    async def _ending(self, handle: Handle[Any]) -> None:
        """Wait until `handle` has ended; a cancel is forwarded, a second one stops waiting."""
        caller, news = asyncio.get_running_loop(), asyncio.Event()
        handle.add_done_callback(lambda: _wake(caller, news))
        try:
            with self._served(caller, handle.cancel):
                while not handle.done():
                    await _tick(news)
        except asyncio.CancelledError as stopped:
            _shorten_traceback(stopped)
            handle.cancel()
            await self._cleaning(handle)
            raise

    async def _cleaning(self, handle: Handle[Any]) -> None:
        """Wait until `handle` has ended, after a cancel; another one, or SIGINT, stops waiting."""
        caller, news = asyncio.get_running_loop(), asyncio.Event()
        handle.add_done_callback(lambda: _wake(caller, news))
        # A tool may need the main thread to clean up, so it is served even now.
        with self._served(caller), self._hurried(news) as hurry:
            while not handle.done() and not hurry:
                await _tick(news)

    @contextmanager
    def _hurried(self, news: asyncio.Event) -> Iterator[list[bool]]:
        hurry: list[bool] = []

        def stop() -> None:
            hurry.append(True)
            news.set()

        with self.main.hurried_by(stop) if self.main.is_here() else nullcontext():
            yield hurry

    def _served(
        self, caller: asyncio.AbstractEventLoop, on_interrupt: Callable[[], None] | None = None
    ) -> AbstractContextManager[None]:
        if not self.main.is_here():
            return nullcontext()
        return self.main.served_by(caller, on_interrupt)

    def _check(self) -> None:
        if self._was_forked:
            raise AgentError(
                "This process was forked from the one that holds the session; use the session"
                " there, or start this process by multiprocessing's spawn method."
            )
        if self._is_closing:
            raise AgentShutdown

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                continue  # a task's own; asyncio passes it on, and the others must live
            break
        self._loop.close()

    def _begin_closing(self, patience_s: float) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._closing = self._loop.create_task(self._finish_closing(patience_s))

    async def _finish_closing(self, patience_s: float) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=patience_s)
        # what didn't end is dropped with the process; asyncio would complain of each
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._loop.stop()

    def mark_forked(self) -> None:
        """Refuse all work from now on: the thread stayed in the parent process."""
        self._was_forked = True


@functools.cache
def background_loop() -> SessionLoop:
    """Return the process's session loop; the first call starts it. It ends with the interpreter."""
    loop = SessionLoop()
    atexit.register(loop.close)
    return loop


def on_session_loop(
    method: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a coroutine function: it may be awaited from any loop."""

    @functools.wraps(method)
    async def hopping(*args: P.args, **kwargs: P.kwargs) -> T:
        return await background_loop().hop(lambda: method(*args, **kwargs))

    return hopping


def on_session_loop_undoing(
    undo: UndoCall[T],
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Decorate as `on_session_loop`; `undo` gets what a cancelled caller can't take any more."""

    def decorate(
        method: Callable[P, Coroutine[Any, Any, T]],
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(method)
        async def hopping(*args: P.args, **kwargs: P.kwargs) -> T:
            return await background_loop().hop(lambda: method(*args, **kwargs), undo=undo)

        return hopping

    return decorate


def hop_iter(make: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
    """Iterate `make()` on the session's loop, from any loop; see `SessionLoop.hop_iter`."""
    return background_loop().hop_iter(make)


def run(coro: Coroutine[Any, Any, T]) -> T:
    """Run `coro` on the session's loop and wait for it; see `SessionLoop.run`."""
    return background_loop().run(coro)


def _shorten_traceback(stopped: BaseException) -> None:
    """Let a cell that was stopped say so: IPython asks an error for its traceback."""
    stopped._render_traceback_ = lambda: ["stopped"]  # type: ignore[attr-defined]


def _log_failure(handle: Handle[Any], doing: str) -> None:
    """Log what a handle that has ended raised: kind and place, no word of it."""
    try:
        handle.result()
    except (asyncio.CancelledError, AgentShutdown):
        pass
    except BaseException as error:  # noqa: BLE001 - nobody else would hear of it
        *_, frame = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        _log.error("%s failed: %s at %s", doing, type(error).__name__, place)


async def _awaiting(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


async def _tick(news: asyncio.Event) -> None:
    """Wait for news, but no longer than a tick: ipykernel 7.4 doesn't wake its loop on SIGINT."""
    waiter = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait([waiter], timeout=TICK_S)
    finally:
        waiter.cancel()
    news.clear()


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)


def _marking_forked(loop: SessionLoop) -> Callable[[], None]:
    """Hold the loop weakly: a fork handler can't be taken back."""
    reference = weakref.ref(loop)

    def mark() -> None:
        if found := reference():
            found.mark_forked()

    return mark
