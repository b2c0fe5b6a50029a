"""`%cost`: what a session has spent, by slot, model and purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_magics.core.money import Spent, percent
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line.arguments import ParsedLine
from agent_magics.notebook.text.html_table import html_table
from agent_magics.notebook.text.lines import columns
from agent_magics.settings import shown_model

if TYPE_CHECKING:
    import pandas as pd

    from agent_magics.session.state.spending import Spending

HEAD = ("slot", "model", "for", "requests", "input", "cached", "output", "cost")
_NUMBERS_FROM = HEAD.index("requests")
_FOR = HEAD.index("for")
_PURPOSES = {"turn": "turns", "memory": "memories"}

CostRow = tuple[str, ...]


def run_cost(notebook: NotebookSession, given: ParsedLine) -> pd.DataFrame | None:
    """Show what was spent; with `--df` give a frame, a row a request."""
    session = notebook.session()
    if given.has("--df"):
        return session.frames.usage()
    spending = session.spending()
    if not spending:
        say("This session has asked no model yet.")
        return None
    rows = cost_rows(spending)
    show(text=cost_text(rows, width=columns()), html=cost_html(rows))
    return None


def cost_rows(spending: Sequence[Spending]) -> list[CostRow]:
    """Write a row each, and their sum where there are several; cells as in `HEAD`.

    What they were for is only said where it isn't the same for all: turns.
    """
    is_mixed = any(each.purpose != "turn" for each in spending)
    rows = [
        (
            _slot(each),
            shown_model(each.model),
            _PURPOSES.get(each.purpose, each.purpose) if is_mixed else "",
            *_numbers(each.spent),
        )
        for each in spending
    ]
    if len(rows) > 1:
        whole = Spent()
        for each in spending:
            whole = whole.plus(each.spent)
        rows.append(("all", "", "", *_numbers(whole)))
    return rows


def cost_text(rows: Sequence[CostRow], *, width: int | None = None) -> str:
    """Show the rows under their heads, columns of numbers to the right.

    Where that is wider than `width`, columns in which nothing stands are left out.
    """
    table = [HEAD, *rows]
    text = _table(table, _said(rows))
    if width is None or len(text.partition("\n")[0]) <= width:
        return text
    return _table(table, [at for at in range(len(HEAD)) if any(row[at] for row in rows)])


def _said(rows: Sequence[CostRow]) -> list[int]:
    """Return the columns to show; "for" is left out where it says nothing."""
    return [at for at in range(len(HEAD)) if at != _FOR or any(row[at] for row in rows)]


def _table(table: Sequence[CostRow], kept: Sequence[int]) -> str:
    widths = [max(len(row[at]) for row in table) for at in kept]
    return "\n".join(
        "  ".join(
            f"{row[at]:>{width}}" if at >= _NUMBERS_FROM else f"{row[at]:<{width}}"
            for at, width in zip(kept, widths, strict=True)
        ).rstrip()
        for row in table
    )


def cost_html(rows: Sequence[CostRow]) -> str:
    """Make a table that needs no script and no style sheet."""
    kept = _said(rows)
    return html_table(
        [[row[at] for at in kept] for row in rows],
        head=[HEAD[at] for at in kept],
        numbers=range(kept.index(_NUMBERS_FROM), len(kept)),
    )


def _slot(each: Spending) -> str:
    if each.slot is None:
        return "(session)"
    return f"{each.slot} (deleted)" if each.is_deleted else each.slot


def _numbers(spent: Spent) -> CostRow:
    asked = [f"{spent.requests:,}"] if spent.requests else []
    replayed = [f"{spent.replayed:,} replayed"] if spent.replayed else []
    requests = " + ".join(asked + replayed)
    if spent.uncounted and spent.requests == spent.uncounted and not replayed:
        requests += " not counted"
    elif spent.uncounted:
        requests += f" ({spent.uncounted:,} not counted)"
    if spent.requests == spent.uncounted and not spent.tokens:
        unknown = "not known" if spent.requests else ""
        return (requests, unknown, "", unknown, unknown)
    return (
        requests,
        f"{spent.input_tokens:,}",
        percent(spent.cached_share) if spent.cached_tokens else "",
        f"{spent.output_tokens:,}",
        spent.price,
    )
