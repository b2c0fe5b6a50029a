"""Lines no wider than the terminal that they are written to; broken between words, none is cut."""

from __future__ import annotations

import shutil
import sys
from textwrap import wrap

INDENT = 2  # of what goes on on the next line, behind the line's own
LEAST_COLUMNS = 20


def columns() -> int | None:
    """Return the width of the terminal; None where what is printed goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(text: str, width: int | None) -> str:
    """Break the lines of a text that are wider than `width`; None breaks none."""
    if width is None or width < LEAST_COLUMNS:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip()) + INDENT
    return wrap(
        line,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
