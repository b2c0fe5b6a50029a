"""The live views of a notebook's session: made when they are first shown, then kept.

One model of the tabs a session, of the budget a slot, of a comparison a set of slots and what
`--prompt` named, shown as often as asked, so that an old cell stays live and costs nothing. This
module imports anywidget: it is itself imported when the first view is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.notebook.views.comparison.compare_view import CompareView
from agent_magics.notebook.views.comparison.comparison import uids_of
from agent_magics.notebook.views.ledger.ledger_view import LedgerWidget
from agent_magics.notebook.views.shown_session import (
    ShownSession,
)
from agent_magics.notebook.views.slots.slot_tabs import SlotTabs
from agent_magics.notebook.views.token_budget import TokenBudget


class Views:
    """The live views of one session; made on the main thread, they end with it."""

    def __init__(self, session: ShownSession) -> None:
        self.session = session
        self._tabs: SlotTabs | None = None
        self._budgets: dict[str, TokenBudget] = {}
        # One view for the same question: a cell that runs again would leave a widget behind each
        # time.
        self._comparisons: dict[tuple[tuple[str, ...], str | None], CompareView] = {}
        self._ledger: LedgerWidget | None = None

    def tabs(self) -> SlotTabs:
        """Return the slot tabs, up to date."""
        if self._tabs is None:
            self._tabs = SlotTabs(self.session)
        self._tabs.renew()
        return self._tabs

    def budget(self, slot_id: str) -> TokenBudget:
        """Return the token budget of a slot, up to date; it stays that slot's wherever one goes."""
        (uid,) = (slot.uid for slot in self.session.list_slots() if slot.slot_id == slot_id)
        if uid not in self._budgets:
            self._budgets[uid] = TokenBudget(self.session, slot_id)
        self._budgets[uid].renew()
        return self._budgets[uid]

    def comparison(self, slots: Sequence[str], prompt: str | None = None) -> CompareView:
        """Return the comparison of slots, up to date and as it was asked for.

        What a page chose in it is forgotten. `prompt` is the id of the one it shows; None: always
        the newest.

        Raises as `CompareView`.
        """
        uids = uids_of(self.session, slots)
        view = self._comparisons.get((uids, prompt))
        if view is None:
            view = CompareView(self.session, *slots)
            self._comparisons[uids, prompt] = view
        view.reset(prompt=prompt)
        return view

    def ledger(self) -> LedgerWidget:
        """Return the ledger explorers."""
        if self._ledger is None:
            self._ledger = LedgerWidget(self.session)
        return self._ledger
