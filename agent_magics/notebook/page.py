"""Where an answer grows: Markdown in a notebook's cell, or plain text in a terminal.

Both take the model's words and lines of ours in the order they come.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import secrets
import time
from collections.abc import Callable
from typing import Any, TextIO, cast

from IPython import get_ipython

from agent_magics.core.turns import ToolEnded
from agent_magics.notebook.markdown import code_span, escape_markdown, safe_parts

FAST_BYTES = 2_048
FAST_INTERVAL_S = 0.1
SLOW_BYTES = 20_480
SLOW_INTERVAL_S = 1 / 3
# Small and grey where styles are kept (JupyterLab, nbconvert), plain italics where they aren't
# (GitHub); grey by opacity, so that it fits light and dark pages.
_SMALL = '<small style="opacity: 0.7">'
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def interval_s(size_bytes: int) -> float:
    """Tell how long to wait between two updates of a text: JupyterLab renders it whole each time.

    10 Hz up to 2 KB, 3 Hz at 20 KB, slower beyond (measured: about 190 ms for 20 KB).
    """
    over = max(0, size_bytes - FAST_BYTES)
    return FAST_INTERVAL_S + over * (SLOW_INTERVAL_S - FAST_INTERVAL_S) / (SLOW_BYTES - FAST_BYTES)


def without_controls(text: str) -> str:
    """Leave out what could steer a terminal: `text/plain` is written to one by some front ends."""
    return _CONTROLS.sub("", text)


class Line:
    """A line of ours between the model's words: a note, or a tool call and how it ended."""

    def __init__(self, text: str, *, code: str = "", key: str = "") -> None:
        self.text = text
        self.code = code
        self.key = key

    def markdown(self) -> str:
        said = f"_{escape_markdown(self.text)}_" if self.text and not self.code else self.text
        return f"{code_span(self.code)} {said}".strip()

    def plain(self) -> str:
        return f"{self.code} {self.text}".strip()


class Page:
    """Markdown in a notebook's cell, updated by its display id."""

    def __init__(self, *, is_live: bool) -> None:
        self.is_live = is_live
        self._parts: list[str | Line] = []
        self._hint = ""
        self._display_id = secrets.token_hex(8)
        self._context = contextvars.copy_context()
        self._publish = cast("Any", get_ipython()).display_pub.publish
        self._is_shown = False
        self._is_over = False
        self._size = 0
        self._shown_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def add_text(self, text: str) -> None:
        text = without_controls(text)
        if self._parts and isinstance(self._parts[-1], str):
            self._parts[-1] += text
        else:
            self._parts.append(text)
        self._size += len(text.encode(errors="replace"))
        self._hint = ""
        self._changed()

    def add_line(self, line: Line) -> None:
        self._parts.append(line)
        self._changed()

    def end_call(self, ended: ToolEnded) -> None:
        for line in self._lines():
            if line.key == ended.call_id:
                line.text = mark_of(ended, is_exact=self.is_live)
        self._changed()

    def has_text(self) -> bool:
        return any(isinstance(part, str) for part in self._parts)

    def hint(self, sentence: str) -> None:
        self._hint = sentence
        self._changed()

    def end(self, line: str, facts: dict[str, Any]) -> None:
        self._is_over = True
        self._hint = ""
        if self._timer:
            self._timer.cancel()
        bundle = self._bundle(line)
        if self._is_shown or bundle["text/plain"]:
            self._show(bundle, {"agent_magics": facts} if facts else {})

    def _lines(self) -> list[Line]:
        return [part for part in self._parts if isinstance(part, Line)]

    def _changed(self) -> None:
        """Show now, or when the interval has passed; never more often than a page can render."""
        if not self.is_live or self._is_over or self._timer:
            return
        wait_s = self._shown_at + interval_s(self._size) - time.monotonic()
        if wait_s <= 0:
            self._update()
        else:
            self._timer = _later(wait_s, self._update)

    def _update(self) -> None:
        self._timer = None
        if not self._is_over:
            self._show(self._bundle(self._hint), {})
            self._shown_at = time.monotonic()

    def _bundle(self, line: str) -> dict[str, str]:
        """Give the output's MIME types; `line` is the last one, small and in italics."""
        said = iter(safe_parts([part.strip("\n") for part in self._parts if isinstance(part, str)]))
        safe = [next(said) if isinstance(part, str) else part.markdown() for part in self._parts]
        plain = [p.strip("\n") if isinstance(p, str) else p.plain() for p in self._parts]
        last = f"{_SMALL}_{escape_markdown(line)}_</small>" if line else ""
        return {
            "text/markdown": "\n\n".join(filter(None, [*safe, last])),
            "text/plain": "\n\n".join(filter(None, [*plain, line])),
        }

    def _show(self, data: dict[str, str], metadata: dict[str, Any]) -> None:
        transient = {"display_id": self._display_id} if self.is_live else {}
        self._context.copy().run(
            self._publish, data, metadata, transient=transient, update=self._is_shown
        )
        self._is_shown = True


class Terminal:
    """Plain text written as it comes; what could steer a terminal is left out."""

    is_live = True

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_line_start = True
        self._has_text = False
        self._calls: dict[str, str] = {}

    def add_text(self, text: str) -> None:
        self._has_text = True
        self._write(without_controls(text))

    def has_text(self) -> bool:
        return self._has_text

    def add_line(self, line: Line) -> None:
        if line.key:
            self._calls[line.key] = line.code
            return  # one line, written when the call has ended
        self._write_line(line.plain())

    def end_call(self, ended: ToolEnded) -> None:
        self._write_line(f"{self._calls.pop(ended.call_id, '')} {mark_of(ended, is_exact=True)}")

    def hint(self, sentence: str) -> None:
        self._write_line(sentence)

    def end(self, line: str, _facts: dict[str, Any]) -> None:
        if line or not self._at_line_start:
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        start = "" if self._at_line_start else "\n"
        text = without_controls(line).strip()
        self._write(f"{start}{text}\n" if text else start)

    def _write(self, text: str) -> None:
        if text:
            self._stream.write(text)
            self._stream.flush()
            self._at_line_start = text.endswith("\n")


def _later(wait_s: float, call: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Call later on the loop that feeds us; without one the next event or the end shows it."""
    try:
        return asyncio.get_running_loop().call_later(wait_s, call)
    except RuntimeError:
        return None


def mark_of(ended: ToolEnded, *, is_exact: bool) -> str:
    """Say how a call ended; its time only where outputs needn't be the same in every run."""
    mark = "✗" if ended.output.is_error else "✓"
    return f"{mark} {ended.duration_ms} ms" if is_exact else mark
