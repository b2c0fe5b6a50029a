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

from agent_magics.core.text import clean_text
from agent_magics.core.turns import ToolEnded, ToolStarted
from agent_magics.notebook.text.lines import fitted
from agent_magics.notebook.text.markdown import (
    code_span,
    escape_markdown,
    fenced,
    folded,
    safe_parts,
)
from agent_magics.notebook.text.word_wrap import WordWrap

FAST_BYTES = 2_048
FAST_INTERVAL_S = 0.1
SLOW_BYTES = 20_480
SLOW_INTERVAL_S = 1 / 3
KEPT_INTERVAL_S = 10.0  # where a live view shows the text: only what is saved is kept up
MAX_REASON_CHARACTERS = 120
MAX_ARGUMENT_CHARACTERS = 60
MAX_DETAIL_CHARACTERS = 20_000
LINE_END = " ⏎ "
# Small and grey where styles are kept (JupyterLab, nbconvert), plain italics where they aren't
# (GitHub); grey by opacity, so that it fits light and dark pages.
_SMALL = '<small style="opacity: 0.7">'
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def interval_s(size_bytes: int) -> float:
    """Return how long to wait between two updates of a text: JupyterLab renders it whole each time.

    10 Hz up to 2 KB, 3 Hz at 20 KB, slower beyond (measured: about 190 ms for 20 KB).
    """
    over = max(0, size_bytes - FAST_BYTES)
    return FAST_INTERVAL_S + over * (SLOW_INTERVAL_S - FAST_INTERVAL_S) / (SLOW_BYTES - FAST_BYTES)


def without_controls(text: str) -> str:
    """Leave out what could steer a terminal: `text/plain` is written to one by some front ends."""
    return _CONTROLS.sub("", text)


class PageLine:
    """A line of ours between the model's words: a note, or a tool call and how it ended.

    `detail` is Markdown of ours that stands folded under a call.
    """

    def __init__(self, text: str, *, code: str = "", key: str = "", detail: str = "") -> None:
        self.text = text
        self.code = code
        self.key = key
        self.detail = detail

    @property
    def is_open(self) -> bool:
        """Return whether it is a call that hasn't ended."""
        return bool(self.key) and not self.text

    def markdown(self) -> str:
        said = escape_markdown(self.text)
        if self.code:
            line = f"{code_span(self.code)} {said}".strip()
            return f"{line}\n\n{self.detail}" if self.detail else line
        return f"_{said}_" if said else ""

    def plain(self) -> str:
        return f"{self.code} {self.text}".strip()


class _Output:
    """One output of a cell: what stands in it, and how the front end knows it."""

    def __init__(self, parts: list[str | PageLine] | None = None) -> None:
        self.parts = parts or []
        self.display_id = secrets.token_hex(8)
        self.is_shown = False

    def lines(self) -> list[PageLine]:
        return [part for part in self.parts if isinstance(part, PageLine)]

    def bundle(self, line: str) -> dict[str, str]:
        """Return the MIME types; `line` is the last one, small and in italics."""
        said = iter(safe_parts([part.strip("\n") for part in self.parts if isinstance(part, str)]))
        safe = [next(said) if isinstance(part, str) else part.markdown() for part in self.parts]
        plain = [p.strip("\n") if isinstance(p, str) else p.plain() for p in self.parts]
        last = f"{_SMALL}_{escape_markdown(line)}_</small>" if line else ""
        return {
            "text/markdown": "\n\n".join(filter(None, [*safe, last])),
            "text/plain": "\n\n".join(filter(None, [*plain, line])),
        }


class Page:
    """Markdown in a notebook's cell, updated by its display id.

    It is one output; where something else is shown in the cell meanwhile (`make_way`), what comes
    after it goes into another one below. `anchor` is the class by which a live view finds the
    outputs, "" for none; `is_watched`: a page draws that view, so that updates may be rare.
    """

    def __init__(self, *, is_live: bool, anchor: str = "") -> None:
        self.is_live = is_live
        self.anchor = anchor
        self.is_watched = False
        self._outputs = [_Output()]
        self._hint = ""
        self._context = contextvars.copy_context()
        self._publish = cast("Any", get_ipython()).display_pub.publish
        self._is_over = False
        self._is_showing = False
        self._size = 0
        self._shown_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def add_text(self, text: str) -> None:
        text = without_controls(text)
        parts = self._outputs[-1].parts
        if parts and isinstance(parts[-1], str):
            parts[-1] += text
        else:
            parts.append(text)
        self._size += len(text.encode(errors="replace"))
        self._hint = ""
        self._changed()

    def add_line(self, line: PageLine) -> None:
        self._outputs[-1].parts.append(line)
        self._changed()

    def end_call(self, ended: ToolEnded) -> None:
        for output in self._outputs:
            for line in output.lines():
                if line.key == ended.call_id:
                    line.text = mark_of(ended, is_exact=self.is_live)
                    self._changed(output)

    @property
    def place(self) -> str:
        """Name the newest output, as its anchor does."""
        return self._outputs[-1].display_id

    def begin(self) -> None:
        """Show the newest output, though nothing may stand in it yet: a view is drawn there."""
        if self.anchor and not self._outputs[-1].is_shown and not self._is_over:
            self._update()

    def has_text(self) -> bool:
        return any(isinstance(part, str) for output in self._outputs for part in output.parts)

    def hint(self, sentence: str) -> None:
        if sentence != self._hint:
            self._hint = sentence
            self._changed()

    @property
    def is_in_the_way(self) -> bool:
        """Return whether what is shown now would come above what was said before; any thread."""
        newest = self._outputs[-1]
        has_begun = newest.is_shown or bool(newest.parts)
        return has_begun and not (self._is_over or self._is_showing)

    def make_way(self) -> None:
        """Let something else be shown: what was said stands above it, what comes next below.

        With nobody there, where outputs are not updated, a call that runs goes below as well.
        """
        if not self.is_in_the_way:
            return
        output = self._outputs[-1]
        # nbclient and nbval ignore updates: a call shown now would stand there unfinished for ever.
        waits = [] if self.is_live else [line for line in output.lines() if line.is_open]
        output.parts = [part for part in output.parts if part not in waits]
        if output.parts or output.is_shown:
            self._forget_timer()
            self._show(self._bundle(output), {})
            self._outputs.append(_Output([*waits]))
            self._size, self._hint = 0, ""
            self._shown_at = float("-inf")
        else:
            output.parts = [*waits]

    def end(self, line: str, facts: dict[str, Any]) -> None:
        self._is_over = True
        self._hint = ""
        self._forget_timer()
        about = {"agent_magics": facts} if facts else {}
        output = self._outputs[-1]
        bundle = self._bundle(output, line)
        if output.is_shown or bundle["text/plain"]:
            self._show(bundle, about)
        elif self.is_live and len(self._outputs) > 1:
            self._show_one(self._outputs[-2], self._bundle(self._outputs[-2]), about)

    def drop_anchor(self) -> None:
        """Leave the outputs to what is saved of them."""
        if self.anchor:
            self.anchor = ""
            for output in self._outputs[:-1]:
                self._show_one(output, self._bundle(output), {})

    def _bundle(self, output: _Output, line: str = "") -> dict[str, str]:
        data = output.bundle(line)
        if self.anchor:
            opening = f'<div class="{self.anchor} am-turn--{output.display_id}">'
            data["text/markdown"] = f"{opening}\n\n{data['text/markdown']}\n\n</div>"
        return data

    def _changed(self, output: _Output | None = None) -> None:
        """Show now, or when the interval has passed; never more often than a page can render."""
        if not self.is_live or self._is_over:
            return
        if output is not None and output is not self._outputs[-1]:
            self._show_one(output, self._bundle(output), {})
            return
        self._show_soon(KEPT_INTERVAL_S if self.is_watched else interval_s(self._size))

    def _show_soon(self, each_s: float) -> None:
        """Show when `each_s` has passed since the last time, once for all that comes till then."""
        if self._timer:
            return
        wait_s = self._shown_at + each_s - time.monotonic()
        if wait_s <= 0:
            self._update()
        else:
            self._timer = _later(wait_s, self._update)

    def _update(self) -> None:
        self._timer = None
        if not self._is_over:
            self._show(self._bundle(self._outputs[-1], self._hint), {})
            self._shown_at = time.monotonic()

    def _forget_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _show(self, data: dict[str, str], metadata: dict[str, Any]) -> None:
        """Show the newest output."""
        self._show_one(self._outputs[-1], data, metadata)

    def _show_one(self, output: _Output, data: dict[str, str], metadata: dict[str, Any]) -> None:
        data = {kind: clean_text(text) for kind, text in data.items()}  # or it can't be sent
        transient = {"display_id": output.display_id} if self.is_live else {}
        self._is_showing = True  # publishers may print: that is no output of others
        try:
            # In the context of the cell that asked, or the output lands in whichever cell runs now.
            # A copy, as a context can't be entered twice.
            self._context.copy().run(
                self._publish, data, metadata, transient=transient, update=output.is_shown
            )
        finally:
            self._is_showing = False
        output.is_shown = True


class Terminal:
    """Plain text written as it comes; what could steer a terminal is left out.

    `width` in columns: lines of an answer are broken between words; None breaks none.
    """

    is_live = True

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        self._stream = stream
        self._wrap = WordWrap(width)
        self._width = width
        self._at_line_start = True
        self._has_text = False
        self._calls: dict[str, str] = {}

    def add_text(self, text: str) -> None:
        self._has_text = True
        self._write(self._wrap.feed(without_controls(text)))

    def has_text(self) -> bool:
        return self._has_text

    def add_line(self, line: PageLine) -> None:
        if line.key:
            self._calls[line.key] = line.code
            return  # one line, written when the call has ended
        self._write_line(line.plain())

    def end_call(self, ended: ToolEnded) -> None:
        self._write_line(f"{self._calls.pop(ended.call_id, '')} {mark_of(ended, is_exact=True)}")

    def hint(self, sentence: str) -> None:
        self._write_line(sentence)

    @property
    def is_in_the_way(self) -> bool:
        """Return whether a line is being written; any thread."""
        return not self._at_line_start or self._wrap.holds

    def make_way(self) -> None:
        """End the line that is being written."""
        self._write(self._wrap.flush())
        if not self._at_line_start:
            self._write("\n")
            self._wrap.end_line()

    def end(self, line: str, _facts: dict[str, Any]) -> None:
        if line or self.is_in_the_way:
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        self.make_way()
        text = without_controls(line).strip()
        if text:
            self._write(f"{fitted(text, self._width)}\n")

    def _write(self, text: str) -> None:
        if text:
            self._stream.write(clean_text(text))
            self._stream.flush()
            self._at_line_start = text.endswith("\n")


def _later(wait_s: float, call: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Call later on the loop that feeds us; without one the next event or the end shows it."""
    try:
        return asyncio.get_running_loop().call_later(wait_s, call)
    except RuntimeError:
        return None


def call_line(started: ToolStarted) -> str:
    """Write a call on one line: its first argument bare, the others by name."""
    shown = []
    for index, (name, value) in enumerate(started.arguments.items()):
        text = f'"{value.strip()}"' if isinstance(value, str) else str(value)
        text = LINE_END.join(" ".join(line.split()) for line in text.strip().splitlines())
        if len(text) > MAX_ARGUMENT_CHARACTERS:
            text = f"{text[:MAX_ARGUMENT_CHARACTERS]}…"
        shown.append(text if index == 0 else f"{name}={text}")
    return f"{started.tool_name}({', '.join(shown)})"


def detail_of(started: ToolStarted) -> str:
    """Fold the texts that a call's line cuts: what ran is read in the notebook, not only there."""
    texts = {n: v for n, v in started.arguments.items() if isinstance(v, str)}
    long = [
        n for n, v in texts.items() if "\n" in v.strip() or len(v) + 2 > MAX_ARGUMENT_CHARACTERS
    ]
    blocks = [
        fenced(without_controls(_cut(texts[name])), "python" if name == "code" else "text")
        for name in long
    ]
    return folded("", f"the whole {' and '.join(long)}", blocks) if blocks else ""


def _cut(text: str) -> str:
    cut = len(text) - MAX_DETAIL_CHARACTERS
    if cut > 0:
        return f"{text[:MAX_DETAIL_CHARACTERS]}… ({cut:,} characters more)"
    return text.strip("\n")


def mark_of(ended: ToolEnded, *, is_exact: bool) -> str:
    """Say how a call ended, and why where it failed.

    Its time only where outputs needn't be the same in every run, and where it ran.
    """
    output = ended.output
    has_run = bool(ended.duration_ms) or not output.is_error
    time_ms = f" {ended.duration_ms} ms" if is_exact and has_run else ""
    if not output.is_error:
        return f"✓{time_ms}"
    reason = output.metadata.get("reason") or output.content
    line = next(iter(str(reason).strip().splitlines()), "").strip("[] ")
    if len(line) > MAX_REASON_CHARACTERS:
        line = f"{line[:MAX_REASON_CHARACTERS]}…"
    return f"✗{time_ms} {without_controls(line)}".rstrip()
