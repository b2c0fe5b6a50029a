"""Several answers in one cell, side by side where there is room.

In a notebook they are one Markdown output: boxes that stand next to each other where styles are
kept (JupyterLab, nbconvert), one above the other where they aren't (GitHub) or the cell is narrow.
A terminal shows each answer when it is whole.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from io import StringIO
from typing import Any

from agent_magics.notebook.kernel.host import in_kernel, somebody_there
from agent_magics.notebook.text.lines import columns
from agent_magics.notebook.text.markdown import escape_markdown
from agent_magics.notebook.text.page import KEPT_INTERVAL_S, Page, Terminal, interval_s

_ROW = '<div style="display: flex; flex-wrap: wrap; gap: 1em">'
_BOX = '<div style="flex: 1 1 20em; min-width: 0">'


class Columns(Page):
    """One output made of several pages. `pages` are where the answers go, by slot; `anchor` is
    the class by which live views find them.
    """

    def __init__(self, slots: Sequence[str], *, is_live: bool, anchor: str = "") -> None:
        super().__init__(is_live=is_live)
        self.pages = {slot: _Column(self, is_live=is_live, anchor=anchor) for slot in slots}
        self._facts: dict[str, Any] = {}

    def begin(self) -> None:
        """Show all columns, though nothing may stand in them yet."""
        if not self._outputs[-1].is_shown:
            self._update()

    def show_soon(self) -> None:
        """Show what changed in a column: as often as a page can render all of them, seldom where
        views draw all that still grow.
        """
        growing = [column for column in self.pages.values() if not column.is_whole]
        is_watched = all(column.is_watched for column in growing)
        size = sum(column.size for column in self.pages.values())
        self._show_soon(KEPT_INTERVAL_S if is_watched else interval_s(size))

    def put(self, facts: dict[str, Any]) -> None:
        """Show a column that is whole; with nobody there, once all of them are."""
        if facts:
            self._facts[facts["slot"]] = facts
        if self.is_live or all(column.is_whole for column in self.pages.values()):
            self._update()

    def _update(self) -> None:
        self._forget_timer()
        about = {"agent_magics": {"slots": self._facts}} if self._facts else {}
        self._show(self._joined(), about)
        self._shown_at = time.monotonic()

    def _joined(self) -> dict[str, str]:
        shown = {slot: column.shown() for slot, column in self.pages.items()}
        boxes = [
            f"{_BOX}\n\n**{escape_markdown(slot)}**\n\n{data['text/markdown']}\n\n</div>"
            for slot, data in shown.items()
        ]
        plain = [f"{slot}\n{data['text/plain']}" for slot, data in shown.items()]
        return {
            "text/markdown": "\n".join([_ROW, *boxes, "</div>"]),
            "text/plain": "\n\n".join(plain),
        }


class _Column(Page):
    """One of them; the whole shows it."""

    def __init__(self, whole: Columns, *, is_live: bool, anchor: str) -> None:
        super().__init__(is_live=is_live, anchor=anchor)
        self._whole = whole
        self._ended: dict[str, str] | None = None

    @property
    def is_whole(self) -> bool:
        return self._ended is not None

    @property
    def size(self) -> int:
        return self._size

    @property
    def is_in_the_way(self) -> bool:
        """Never: the columns are one output."""
        return False

    def shown(self) -> dict[str, str]:
        """Return the MIME types as they are by now."""
        return self._ended or self._bundle(self._outputs[-1], self._hint)

    def begin(self) -> None:
        if self.anchor and not self._is_over:
            self._whole.begin()

    def end(self, line: str, facts: dict[str, Any]) -> None:
        self._is_over = True
        self._ended = self._bundle(self._outputs[-1], line)
        self._whole.put(facts)

    def _show_soon(self, _each_s: float) -> None:
        self._whole.show_soon()


class _Whole(Terminal):
    """A terminal's answer, written when it is complete: two at once would be torn."""

    def __init__(self, slot: str) -> None:
        self._written = StringIO()
        super().__init__(self._written, width=columns())
        self._slot = slot

    def end(self, line: str, facts: dict[str, Any]) -> None:
        super().end(line, facts)
        terminal = Terminal(sys.stdout)
        terminal.add_text(f"── {self._slot} ──\n{self._written.getvalue()}\n")


def columns_for(slots: Sequence[str], *, anchor: str = "") -> dict[str, Page | Terminal]:
    """Make a place for the answer of each slot; `anchor`: of the views that draw them live."""
    if in_kernel():
        return dict(Columns(slots, is_live=somebody_there(), anchor=anchor).pages)
    return {slot: _Whole(slot) for slot in slots}
