"""The one thread that touches a store's connection, so that no event loop ever waits for a disk."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple["Future[Any]", Callable[[], Any]]


class Worker:
    """A daemon thread that does one piece of work after the other, in the order given.

    The thread starts with the first piece and ends when the worker is stopped or forgotten.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._queueing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._finalizer = weakref.finalize(self, self._jobs.put, None)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work`; return a future of its result or error; `RuntimeError` once stopped."""
        future: Future[T] = Future()
        with self._queueing:
            if not self._finalizer.alive:
                raise RuntimeError(f"{self._name} was stopped")
            self._start()
            self._jobs.put((future, work))
        return future

    async def run(self, work: Callable[[], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Run `work` there and wait for it from any event loop.

        Cancelled before it began, it never runs. Cancelled later, it is waited for, so that
        nothing happens after the caller went on; `undo` then gets its result.
        """
        future = self.submit(work)
        waiter = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            if not future.cancel():
                while not waiter.done():  # however often cancelled, or work would be left behind
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([waiter])
                if undo is not None:
                    self._undo(future, undo)  # queued before the caller can ask for anything else
            raise

    def _undo(self, done: Future[T], undo: Callable[[T], object]) -> None:
        if done.exception() is None:
            result = done.result()
            self.submit(lambda: undo(result))

    def stop(self) -> None:
        """Let the thread end once everything queued is done; wait for nothing."""
        with self._queueing:
            self._finalizer()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=_serve, args=(self._jobs,), name=self._name, daemon=True
            )
            self._thread.start()


def _serve(jobs: SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        _do(*job)
        del job  # what it holds must not live until the next one comes


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  whatever it is belongs to the one who waits
        future.set_exception(error)
    else:
        future.set_result(result)
