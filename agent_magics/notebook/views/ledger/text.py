"""The ledger as lines of text and as a static table, where no explorer can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent_magics.core.values import Value
from agent_magics.notebook.text.page import without_controls
from agent_magics.notebook.views.ledger.rows import LedgerRow, LedgerRows, Query

LAST = 20
LINE_CHARACTERS = 110
LEAST_CHARACTERS = 20
SLOT_CHARACTERS = 18  # where lines are as wide as a terminal
Cells = tuple[str, str, str, str, str, str]
_HEADINGS = ("seq", "time (UTC)", "slot", "turn", "kind", "what")


class ShownLines(Value):
    """Some lines of the ledger. `total`: how many match; `of`: how many there are at all; `more`:
    how to see the others.

    Without `is_exact` no time is shown: saved outputs of a notebook that is run by itself stay the
    same.
    """

    rows: tuple[LedgerRow, ...]
    total: int
    of: int
    is_exact: bool = True
    more: str = ""

    @property
    def head(self) -> str:
        """Say how much is shown, and where the rest is."""
        if not self.of:
            return "Nothing is in the ledger yet."
        match = "matches" if self.total == 1 else "match"
        among = "" if self.total == self.of else f" that {match}, of {self.of:,}"
        if not self.total:
            return f"No event matches, of {self.of:,}."
        if len(self.rows) == self.total:
            return f"{_counted(self.total)}{among}"
        last = f"the last {len(self.rows):,} of {_counted(self.total)}{among}"
        return " · ".join(filter(None, [last, self.more]))


def shown_of(
    rows: LedgerRows, query: Query, *, last: int = LAST, is_exact: bool = True
) -> ShownLines:
    """Return the last of the events that match."""
    found = rows.matching(query)
    return ShownLines(
        rows=tuple(rows.rows(found[-last:], is_exact=is_exact)),
        total=len(found),
        of=len(rows),
        is_exact=is_exact,
    )


def ledger_text(shown: ShownLines, *, width: int | None = None) -> str:
    """List events, one a line, long ones cut; `width`: a terminal's columns, where it is one."""
    cells = [_cells(row, is_exact=shown.is_exact) for row in shown.rows]
    if width is not None:
        cells = _narrowed(cells)
    widths = [max(map(len, column), default=0) for column in zip(*cells, strict=True)]
    lines = [shown.head]
    for seq, at, slot, turn, kind, what in cells:
        start = f"  {seq:>{widths[0]}}  {at:<{widths[1]}}{'  ' if widths[1] else ''}"
        start += f"{slot:<{widths[2]}}  {turn:>{widths[3]}}{'  ' if widths[3] else ''}"
        start += f"{kind:<{widths[4]}}  "
        room = LINE_CHARACTERS if width is None else max(LEAST_CHARACTERS, width - len(start) - 1)
        lines.append(f"{start}{without_controls(_cut(what, room))}".rstrip())
    return "\n".join(lines)


def ledger_html(shown: ShownLines) -> str:
    """Make a table that needs no script and no style sheet; every value is escaped."""
    keeps = [at for at, name in enumerate(_HEADINGS) if shown.is_exact or at != 1]

    def row_of(cells: Sequence[str], tag: str) -> str:
        made = (f'<{tag} style="{_style(at)}">{escape(cells[at])}</{tag}>' for at in keeps)
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(row_of(_cells(row, is_exact=shown.is_exact), "td") for row in shown.rows)
    table = f"<table><thead>{row_of(_HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"
    return f"<p>{escape(shown.head)}</p>{table if body else ''}"


def _cells(row: LedgerRow, *, is_exact: bool) -> Cells:
    at = f"{row.at:%m-%d %H:%M:%S}" if is_exact else ""
    turn = "" if row.turn is None else str(row.turn)
    return str(row.seq), at, row.slot, turn, row.kind, row.line


def _narrowed(cells: list[Cells]) -> list[Cells]:
    """Leave out the day where all lines have the same, and cut long names of slots."""
    days = {at.partition(" ")[0] for _, at, *_ in cells}
    narrowed = []
    for seq, at, slot, turn, kind, what in cells:
        time = at.partition(" ")[2] if len(days) == 1 else at
        narrowed.append((seq, time, _cut(slot, SLOT_CHARACTERS), turn, kind, what))
    return narrowed


def _style(column: int) -> str:
    """Say how a column stands: JupyterLab aligns to the right; only what happened may wrap."""
    wraps = column == len(_HEADINGS) - 1
    return "text-align: left" if wraps else "text-align: left; white-space: nowrap"


def _cut(text: str, room: int) -> str:
    return f"{text[:room]}…" if len(text) > room else text


def _counted(count: int) -> str:
    return f"{count:,} event{'' if count == 1 else 's'}"
