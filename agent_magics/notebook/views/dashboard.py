"""The dashboard: slot tabs, token budget, ledger and comparison of one session, together (W5)."""

from __future__ import annotations

from typing import Any, Protocol

import ipywidgets

from agent_magics.notebook.views.compare_view import CompareView
from agent_magics.notebook.views.compare_view import Session as Comparable
from agent_magics.notebook.views.follower import Follower
from agent_magics.notebook.views.ledger_view import LedgerExplorer
from agent_magics.notebook.views.ledger_view import Session as LedgerSource
from agent_magics.notebook.views.slot_tabs import Session as TabsSource
from agent_magics.notebook.views.slot_tabs import SlotTabs
from agent_magics.notebook.views.token_budget import Session as BudgetSource
from agent_magics.notebook.views.token_budget import TokenBudget
from agent_magics.notebook.views.view import View

_ROW = "display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: flex-start"
_HALF = "flex: 1 1 22em; min-width: 0"


class Session(TabsSource, BudgetSource, Comparable, LedgerSource, Protocol):
    """What the dashboard needs of a session."""


class Dashboard(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Show a session whole: its slots beside the current one's budget, its ledger, a comparison.

    At the end of a cell it is drawn in the output, which reads without a kernel too; inside a
    layout of ipywidgets it is a box of widgets: `tabs`, `budget`, `ledger` and `comparison`, each
    of which may be placed alone as well. `session` is an open session, `agent_magics.current()` in
    a notebook. `close()` ends all four.
    """

    _views: tuple[View | LedgerExplorer, ...] = ()

    def __init__(self, session: Session, **layout: Any) -> None:
        follower = Follower(session)
        self.tabs = SlotTabs(session, follower=follower)
        self.budget = TokenBudget(session, follower=follower)
        self.comparison = CompareView(session, follower=follower)
        self.ledger = LedgerExplorer(session, follower=follower)
        self._views = (self.tabs, self.budget, self.ledger, self.comparison)
        for half in (self.tabs, self.budget):
            half.layout.flex, half.layout.width = "1 1 22em", "auto"
        row = ipywidgets.HBox([self.tabs, self.budget])
        row.layout.flex_flow, row.layout.grid_gap = "row wrap", "8px 24px"
        folds = ipywidgets.Accordion([self.ledger, self.comparison], selected_index=0)
        folds.titles = tuple(_FOLDS)
        super().__init__([row, folds], **layout)

    def close(self) -> None:
        """Follow the session no longer and leave every page."""
        for view in self._views:
            view.close()
        super().close()

    def __repr__(self) -> str:
        return "\n\n".join(repr(view) for view in self._views)

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what stands in the file: the views beside and below one another, drawn live there.

        A box as a widget would be lost when the notebook is opened again (`view.py`).
        """
        halves = "".join(
            f'<div style="{_HALF}">{view.output_html()}</div>' for view in (self.tabs, self.budget)
        )
        folds = _fold("Ledger", self.ledger.output_html(), is_open=True)
        folds += _fold("Compare", self.comparison.output_html(), is_open=False)
        html = f'<div class="am-dashboard"><div style="{_ROW}">{halves}</div>{folds}</div>'
        return {"text/plain": repr(self), "text/html": html}, {}


_FOLDS = ("Ledger", "Compare")


def _fold(title: str, html: str, *, is_open: bool) -> str:
    state = " open" if is_open else ""
    return f"<details{state}><summary>{title}</summary>{html}</details>"
