"""Several answers in one cell, side by side where there is room (B5).

In a notebook they are one Markdown output: boxes that stand next to each other where styles are
kept (JupyterLab, nbconvert), one above the other where they aren't (GitHub) or the cell is narrow.
A terminal shows each answer when it is whole.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import StringIO
from typing import Any

from agent_magics.notebook.host import in_kernel, somebody_there
from agent_magics.notebook.lines import columns
from agent_magics.notebook.markdown import escape_markdown
from agent_magics.notebook.page import Page, Terminal

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

    def put(self, metadata: dict[str, Any]) -> None:
        """Show what the columns have by now; with nobody there, once all of them are whole."""
        facts = metadata.get("agent_magics")
        if facts:
            self._facts[facts["slot"]] = facts
        if self.is_live or all(column.is_whole for column in self.pages.values()):
            about = {"agent_magics": {"slots": self._facts}} if self._facts else {}
            self._show(self._joined(), about)

    def _joined(self) -> dict[str, str]:
        boxes = [
            f"{_BOX}\n\n**{escape_markdown(slot)}**\n\n{column.data['text/markdown']}\n\n</div>"
            for slot, column in self.pages.items()
        ]
        plain = [f"{slot}\n{column.data['text/plain']}" for slot, column in self.pages.items()]
        return {
            "text/markdown": "\n".join([_ROW, *boxes, "</div>"]),
            "text/plain": "\n\n".join(plain),
        }


class _Column(Page):
    """One of them; it gives what it would show to the whole."""

    def __init__(self, whole: Columns, *, is_live: bool, anchor: str) -> None:
        super().__init__(is_live=is_live, anchor=anchor)
        self.data = {"text/markdown": "", "text/plain": ""}
        self.is_whole = False
        self._whole = whole
        self._is_shown = False

    @property
    def is_in_the_way(self) -> bool:
        """Never: the columns are one output."""
        return False

    def end(self, line: str, facts: dict[str, Any]) -> None:
        self.is_whole = True
        super().end(line, facts)
        if not self._is_shown:  # it said nothing at all
            self._whole.put({})

    def _show(self, data: dict[str, str], metadata: dict[str, Any]) -> None:
        self.data = data
        self._is_shown = True
        self._whole.put(metadata)


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
