"""Notices what is shown in a cell while an answer grows there, before it is shown.

So that what a tool prints and plots stands where it happened: below what was said before it, above
what is said after.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO, cast

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.kernel_run import replaced
from agent_magics.notebook.page import Page, Terminal
from agent_magics.session.loop import SessionLoop

PATIENCE_S = 0.5


@contextmanager
def making_way(shell: InteractiveShell, page: Page | Terminal, loop: SessionLoop) -> Iterator[None]:
    """Let `page`, which lives on `loop`, make way for what is printed or displayed meanwhile."""

    def announce() -> None:
        if page.is_in_the_way:
            _on_loop(loop, page.make_way)

    publisher = cast("Any", shell.display_pub)
    with ExitStack() as stack:
        for place, name, value in (
            (sys, "stdout", _Announcing(sys.stdout, announce)),
            (sys, "stderr", _Announcing(sys.stderr, announce)),
            (publisher, "publish", _announcing(publisher.publish, announce)),
        ):
            stack.enter_context(replaced(place, name, value))
        yield


class _Announcing:
    """A stream that tells before it writes to another one, which answers whatever else is asked."""

    def __init__(self, stream: TextIO, announce: Callable[[], None]) -> None:
        self._stream = stream
        self._announce = announce

    def write(self, text: str) -> int:
        if text:
            self._announce()
        return self._stream.write(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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

    loop.post(do())
    done.wait(PATIENCE_S)
