"""Notices what is shown in a cell while an answer grows there, before it is shown.

So that what a tool prints and plots stands where it happened: below what was said before it, above
what is said after.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TextIO, cast

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.kernel.run_code import Passing, replaced
from agent_magics.notebook.text.page import Page, Terminal
from agent_magics.session.state.running_turn import ANSWERING
from agent_magics.threads.loop import SessionLoop

PATIENCE_S = 0.5
_announced: ContextVar[object] = ContextVar("announced", default=None)


@contextmanager
def making_way(
    shell: InteractiveShell, page: Page | Terminal, loop: SessionLoop
) -> Iterator[Callable[[], None]]:
    """Let `page`, which lives on `loop`, make way for what is printed or displayed meanwhile.

    Gives what to call before something is shown by another way.
    """
    here = object()

    def announce() -> None:
        # Each piece of main-thread work has a context of its own. What it shows first waits until
        # the page knows that it has begun: the line of a call stands above its output.
        if page.is_in_the_way or _announced.get() is not here:
            _announced.set(here)
            _on_loop(loop, page.make_way)

    with _told(shell, announce):
        yield announce


@contextmanager
def named_by_slot(
    shell: InteractiveShell, loop: SessionLoop, begin: Callable[[], None]
) -> Iterator[None]:
    """Print a slot's name above what its turn shows, where another one's came before.

    `begin` is called on `loop` before the first: it shows the answers, so that they stand above.
    What is shown from there is the answers themselves, which say whose they are.
    """
    stream, last = sys.stdout, ""

    def name() -> None:
        nonlocal last
        slot = ANSWERING.get()
        if slot and slot != last and not loop.is_here():
            if not last:
                _on_loop(loop, begin)
            stream.write(f"\n{slot}:\n" if last else f"{slot}:\n")
            last = slot

    with _told(shell, name):
        yield


@contextmanager
def _told(shell: InteractiveShell, announce: Callable[[], None]) -> Iterator[None]:
    """Call `announce` before anything is printed or displayed."""
    publisher = cast("Any", shell.display_pub)
    with ExitStack() as stack:
        for place, name, value in (
            (sys, "stdout", _Announcing(sys.stdout, announce)),
            (sys, "stderr", _Announcing(sys.stderr, announce)),
            (publisher, "publish", _announcing(publisher.publish, announce)),
        ):
            stack.enter_context(replaced(place, name, value))
        yield


class _Announcing(Passing):
    """A stream that tells before it writes."""

    def __init__(self, stream: TextIO, announce: Callable[[], None]) -> None:
        super().__init__(stream)
        self._announce = announce

    def write(self, text: str) -> int:
        if text:
            self._announce()
        return super().write(text)


def _announcing(publish: Callable[..., Any], announce: Callable[[], None]) -> Callable[..., Any]:
    def announcing(*args: Any, **kwargs: Any) -> Any:
        announce()
        return publish(*args, **kwargs)

    return announcing


def _on_loop(loop: SessionLoop, what: Callable[[], None]) -> None:
    """Do something on the session's loop and wait for it, not for long: a lock may be held here."""
    if loop.is_here():
        what()
        return
    done = threading.Event()

    async def do() -> None:
        try:
            what()
        finally:
            done.set()

    loop.post_unwatched(do(), doing="making way for an output")
    # A print of the loop's own thread that holds a lock would wait for us while we wait for it.
    done.wait(PATIENCE_S)
