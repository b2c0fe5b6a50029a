"""The token budget: what fills a slot's next request, by part, and what compaction would free."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_magics.core.errors import SlotNotFound
from agent_magics.notebook.views.front_end import view_module
from agent_magics.notebook.views.session_state import BudgetState, budget_now
from agent_magics.notebook.views.session_text import budget_html, budget_text
from agent_magics.notebook.views.shown_session import (
    BudgetSession,
    checked,
)
from agent_magics.notebook.views.view import LiveView
from agent_magics.threads.loop import background_loop


class TokenBudget(LiveView):
    """Show what fills a slot's context, in tokens by part, live while a turn streams.

    `slot` names one slot, for as long as that slot lives, also under another name; None: whichever
    is current. Raises `SlotNotFound`. `session` as in `SlotTabs`.
    """

    _esm = view_module("token_budget")
    grows = True

    def __init__(self, session: BudgetSession, slot: str | None = None) -> None:
        self._session = checked(session)
        self._foreseen: dict[str, tuple[int, int | None]] = {}
        self._uid = None if slot is None else _uid_of(session, slot)
        state = background_loop().call(lambda: self._read(slot or session.current_slot))
        super().__init__(state, session)

    def refresh(self) -> None:
        """Weigh the context anew; the budget of a slot that was deleted stays as it was."""
        named = {slot.uid: slot.slot_id for slot in self._session.list_slots()}
        slot = self._session.current_slot if self._uid is None else named.get(self._uid)
        if slot is not None:
            self.tell(self._read(slot))

    def as_text(self) -> str:
        """List the parts, one a line, with their bars."""
        return budget_text(self._budget)

    def as_html(self) -> str:
        """Return the parts as a table."""
        return budget_html(self._budget)

    @property
    def _budget(self) -> BudgetState:
        return msgspec.convert(self.state["budget"], BudgetState)

    def _read(self, slot: str) -> dict[str, Any]:
        budget = budget_now(self._session, slot)
        if slot not in self._session.running():  # planning takes time that a stream needs
            frees = self._frees(slot, budget.used)
            budget = msgspec.structs.replace(budget, frees=frees)
        return {"budget": msgspec.to_builtins(budget)}

    def _frees(self, slot: str, used: int) -> int | None:
        """Return what a compaction would free; computed again only where the context changed."""
        known = self._foreseen.get(slot)
        # Planning builds a request; the same context would give the same plan.
        if known is None or known[0] != used:
            plan = self._session.foreseen_compaction(slot)
            frees = None if plan is None else max(0, plan.tokens_before - plan.tokens_after)
            known = self._foreseen[slot] = (used, frees or None)
        return known[1]


def _uid_of(session: BudgetSession, slot_id: str) -> str:
    uids = {slot.slot_id: slot.uid for slot in session.list_slots()}
    if slot_id not in uids:
        raise SlotNotFound(slot_id, tuple(uids))
    return uids[slot_id]
