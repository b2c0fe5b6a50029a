"""The dashboard: slot tabs, token budget, ledger and comparison of one session, together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from agent_magics.notebook.views.comparison.compare_view import CompareView
from agent_magics.notebook.views.front_end import close_whole
from agent_magics.notebook.views.ledger.ledger_view import LedgerExplorer
from agent_magics.notebook.views.shown_session import (
    ShownSession,
)
from agent_magics.notebook.views.slots.slot_tabs import SlotTabs
from agent_magics.notebook.views.token_budget import TokenBudget
from agent_magics.notebook.views.view import Output

_ROW = "display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: flex-start"
_HALF = "flex: 1 1 22em; min-width: 0"
_OWN_KEYS = 'data-lm-suppress-shortcuts="true"'  # stripped where a notebook isn't trusted
_FOLDS = ("Ledger", "Compare")


class Dashboard(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Show a session whole: its slots beside the current one's budget, its ledger, a comparison.

    At the end of a cell it is drawn in the output, which reads without a kernel too; inside a
    layout of ipywidgets it is a box of widgets: `tabs`, `budget`, `ledger` and `comparison`, each
    of which may be placed alone as well. `session` is an open session, `agent_magics.current()` in
    a notebook. `close()` ends all four, and so does closing the session.
    """

    grows = False
    _views: tuple[Output, ...] = ()
    _leave: Callable[[], None] | None = None

    def __init__(self, session: ShownSession) -> None:
        self.tabs = SlotTabs(session)
        self.budget = TokenBudget(session)
        self.comparison = CompareView(session)
        self.ledger = LedgerExplorer(session)
        self._views = (self.tabs, self.budget, self.ledger, self.comparison)
        if self.tabs.has_ended:  # of a closed session: there are no models to place
            super().__init__([])
            return
        for half in (self.tabs, self.budget):
            half.layout.flex, half.layout.width = "1 1 22em", "auto"
        row = ipywidgets.HBox([self.tabs, self.budget])
        row.layout.flex_flow, row.layout.grid_gap = "row wrap", "8px 24px"
        folds = ipywidgets.Accordion([self.ledger, self.comparison], selected_index=0)
        folds.titles = _FOLDS
        super().__init__([row, folds])
        self._leave = session.follow(self)

    def refresh(self) -> None:
        """Do nothing: its views follow the session themselves."""

    def end(self) -> None:
        """Hear that the session is closed."""
        self.close()

    def close(self) -> None:
        """Follow the session no longer, and leave every page to the static HTML."""
        if self._leave is None:
            return
        self._leave()
        for view in (self.tabs, self.budget, self.comparison, self.ledger):
            view.close()
        for box in self.children:
            close_whole(box, box.close)
        close_whole(self, super().close)

    def __repr__(self) -> str:
        for view in self._views:
            view.renew()
        return self._text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what stands in the file: the views beside and below one another, drawn live there.

        A box as a widget would be lost when the notebook is opened again (`view.py`).
        """
        for view in self._views:
            view.renew()
        halves = "".join(
            f'<div style="{_HALF}">{view.output_html()}</div>' for view in (self.tabs, self.budget)
        )
        folded = zip(_FOLDS, (self.ledger, self.comparison), strict=True)
        folds = "".join(
            _fold(title, view.output_html(), is_open=view is self.ledger) for title, view in folded
        )
        html = f'<div class="am-dashboard"><div style="{_ROW}">{halves}</div>{folds}</div>'
        return {"text/plain": self._text(), "text/html": html}, {}

    def _text(self) -> str:
        return "\n\n".join(view.output_text() for view in self._views)


def _fold(title: str, html: str, *, is_open: bool) -> str:
    """Make a fold; JupyterLab must not take its keys for its own: x would cut the cell."""
    state = " open" if is_open else ""
    summary = f"<summary {_OWN_KEYS}>{title}</summary>"
    return f"<details{state}>{summary}{html}</details>"
