"""Between the main thread and the session's loop: magics post their coroutine there and pump here.

While a magic waits, SIGINT is a message; a stopped or failed cell ends with an exception that
shows one sentence, so that its status is error and queued cells don't run on
(docs/decisions.md#11).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.kernel.host import cell_origin, kernel_id, notebook_path, somebody_there
from agent_magics.notebook.text.lines import columns, fitted
from agent_magics.threads.loop import Handle, background_loop

__all__ = [
    "FailedCell",
    "FailedDisplay",
    "LoopBridge",
    "StoppedCell",
    "cell_origin",
    "kernel_id",
    "notebook_path",
    "somebody_there",
]

T = TypeVar("T")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _QuietEnd(Exception):
    """Ends a cell with the status error; its text is all that is shown, and nobody else says it."""

    def _render_traceback_(self) -> list[str]:
        return [fitted(" ".join(_CONTROLS.sub(" ", str(self)).split()), columns())]


class StoppedCell(_QuietEnd):
    """The person stopped what the cell did."""


class FailedCell(_QuietEnd):
    """What the cell did failed; its text says what, and what to do now."""


class FailedDisplay(BaseException):
    """Ends the cell whose display raised `error`, which it shows.

    IPython reports an `Exception` of a display and goes on, as if nothing had failed.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        if isinstance(error, _QuietEnd):
            self._render_traceback_ = error._render_traceback_


class LoopBridge:
    """The way of one shell to the session's loop. `close()` takes everything back."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.loop = background_loop()
        self.main = self.loop.main
        self.kernel_loop = _kernel_loop(shell)
        self._taken = ExitStack()
        if self.kernel_loop:  # serves main-thread work while no magic waits
            self._taken.enter_context(self.main.served_by(self.kernel_loop))

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        *,
        on_interrupt: Callable[[], None] | None = None,
        undo: Callable[[T], Coroutine[Any, Any, object]] | None = None,
    ) -> T:
        """Run `make()` on the session's loop, serving the main thread meanwhile.

        The first interrupt calls `on_interrupt` (default: cancel the coroutine), waits for the
        coroutine's cleanup and then raises `StoppedCell`, whatever it gave: `undo` gets that, on
        the session's loop, and is waited for; the second raises it at once. Raises what the
        coroutine raises. `on_interrupt` runs in a signal handler: it may only tell
        (`RunningTurn.cancel`).
        """
        # Not `run_coroutine_threadsafe`: its cancel counts as done before the task has cleaned up,
        # and tools that need the main thread would wait for ever.
        handle, interrupts = self.main.pump(
            lambda: self.loop.post(make()), on_interrupt=on_interrupt
        )
        # A stop that came too late still ends the cell: the person pressed the button, so the cells
        # behind must not run.
        if interrupts:
            if undo is not None:
                self._undo(handle, undo, waits=handle.done())
            raise StoppedCell("stopped")
        try:
            return handle.result()
        except asyncio.CancelledError:
            raise StoppedCell("stopped") from None

    def _undo(
        self, handle: Handle[T], undo: Callable[[T], Coroutine[Any, Any, object]], *, waits: bool
    ) -> None:
        if waits:
            self.main.pump(lambda: self.loop.post_undo(handle, undo), on_interrupt=lambda: None)
        else:  # it was asked for twice: it ends behind
            self.loop.post_undo(handle, undo)

    def close(self) -> None:
        """Stop serving the kernel's loop; the session's loop goes on."""
        self._taken.close()


def _kernel_loop(shell: InteractiveShell) -> asyncio.AbstractEventLoop | None:
    """Find the loop that the kernel runs on the main thread; None in a terminal."""
    io_loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
    found = getattr(io_loop, "asyncio_loop", None)
    return found if isinstance(found, asyncio.AbstractEventLoop) else None
