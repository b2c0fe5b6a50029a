"""Writes the table of docs/settings.md: `python -m scripts.settings_page`."""

from __future__ import annotations

import re
from pathlib import Path

from agent_magics.settings import SETTINGS, Setting

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
_TABLE = re.compile(r"^\| name \| type .*?\n\n", re.MULTILINE | re.DOTALL)
_HEAD = "| name | type | default | environment | what it does |\n|---|---|---|---|---|\n"
_KINDS = {
    "text": "text",
    "number": "number",
    "switch": "yes or no",
    "texts": "list of texts",
    "mapping": "dict",
}


def settings_table() -> str:
    """Return the table as Markdown, a line a setting."""
    return _HEAD + "".join(f"| {' | '.join(_cells(row))} |\n" for row in SETTINGS)


def _cells(row: Setting) -> tuple[str, ...]:
    variable = f"`{row.variable}`" if row.variable else ""
    default = [] if row.kind == "texts" else row.default
    return f"`{row.name}`", _kind(row), f"`{_typed(default)}`", variable, row.page


def _kind(row: Setting) -> str:
    if row.words:
        *first, last = [f"`{_typed(each)}`" for each in row.words]
        words = f"{', '.join(first)} or {last}"
        return f"{words}, or a dict of them by tool" if row.kind == "policies" else words
    kind = _KINDS[row.kind]
    if not row.may_be_none:
        return kind
    return f"{kind}, or None" if " or " in kind else f"{kind} or None"


def _typed(value: object) -> str:
    """Write a value as it is typed in Python, a text in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: f"{settings_table()}\n", page, count=1), "utf-8")
