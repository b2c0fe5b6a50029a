"""Widgets of a session: slot tabs and token budgets, drawn from the session state.

One model of the tabs a session and of the budget a slot, shown as often as asked, so that an old
cell stays live and costs nothing. This module imports anywidget: it is itself imported when the
first view is shown.

An output holds static HTML and plain text, never the widget MIME type. JupyterLab prefers that
type to all others, keeps it in the file, and then says "model not found" in the place of our HTML
in every notebook that is opened again; widget state in the notebook's metadata would help, but only
the front end can put it there, and by default it doesn't. So the file holds what reads well
everywhere, and `live.js` draws the live view into that same output while the kernel answers. Front
ends that show HTML out of its reach (VS Code's shadow roots, Colab's frames) keep the static view.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Protocol

import anywidget
import msgspec
import traitlets

from agent_magics.notebook.text import budget_html, budget_text, slots_html, slots_text
from agent_magics.notebook.views.delta import state_delta
from agent_magics.notebook.views.front_end import answer_while_busy, module_of, new_anchor
from agent_magics.notebook.views.ledger_view import LedgerViews
from agent_magics.notebook.views.ledger_view import Session as LedgerSource
from agent_magics.notebook.views.slot_actions import Action, Switch, act, read_action
from agent_magics.notebook.views.slot_actions import Session as Actor
from agent_magics.notebook.views.state import (
    BudgetState,
    SessionState,
    SlotState,
    budget_now,
    session_state,
)
from agent_magics.notebook.views.state import Session as StateSource
from agent_magics.session.compacting import CompactionOutcome
from agent_magics.session.loop import background_loop

PUSH_INTERVAL_S = 0.2
SHARE_OF_LOOP = 20
CLICK_PATIENCE_S = 1.0


class Session(StateSource, LedgerSource, Actor, Protocol):
    """What the views need of a session: its state, its news, its ledger, and changing slots."""

    def foreseen_compaction(self, slot: str | None = None) -> CompactionOutcome | None: ...
    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]: ...


class _View(anywidget.AnyWidget):
    """A view of the session; `notice` is what came of the last thing that was done in it.

    `anchor` is the class of the elements that the live view is drawn in. A page gets `state` whole
    with the model, and then numbered deltas by messages; where it missed one it asks ("whole").
    """

    notice = traitlets.Dict().tag(sync=True)
    anchor = traitlets.Unicode().tag(sync=True)

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._number = 0
        self._telling = threading.Lock()
        super().__init__(anchor=new_anchor())
        answer_while_busy(self)
        self.on_msg(lambda _view, message, _buffers: self._hear(message))

    @property
    def state(self) -> dict[str, Any]:
        """What the view draws, as JSON values."""
        return self._state

    def tell(self, state: dict[str, Any]) -> None:
        """Bring the view up to date; pages are sent what changed. From any thread."""
        with self._telling:
            delta = state_delta(self._state, state)
            if delta:
                self._state = state
                self._number += 1
                self.send({"kind": "delta", "number": self._number, "delta": delta})

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as ipywidgets has it
        """Give the traits, and where all are asked for the state along with them."""
        made: dict[str, Any] = super().get_state(key, drop_defaults)
        return made if key is not None else {**made, "state": self._state, "number": self._number}

    def _hear(self, message: object) -> None:
        match message:
            case {"kind": "whole", "number": int(number)} if number != self._number:
                with self._telling:
                    self.send_state()
            case _:
                pass

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        html = f'<div class="{self.anchor}"><div>{self.as_html()}</div></div>'
        return {"text/plain": self.as_text(), "text/html": html}, {}

    def as_text(self) -> str:
        """Give the view as plain text."""
        raise NotImplementedError

    def as_html(self) -> str:
        """Give the view as static HTML."""
        raise NotImplementedError


class SlotTabs(_View):
    """The slots as a tree, and what can be done to each. `state` is the session state."""

    _esm = module_of("slot_tabs.js", "live.js", default="live(slotTabs)")

    def as_text(self) -> str:
        return slots_text(self._slots)

    def as_html(self) -> str:
        return slots_html(self._slots)

    @property
    def _slots(self) -> tuple[SlotState, ...]:
        return msgspec.convert(self.state, SessionState).slots


class TokenBudget(_View):
    """What fills one slot's context, for as long as that slot lives. `state` holds its budget."""

    _esm = module_of("token_budget.js", "live.js", default="live(tokenBudget)")

    def as_text(self) -> str:
        return budget_text(self._budget)

    def as_html(self) -> str:
        return budget_html(self._budget)

    @property
    def _budget(self) -> BudgetState:
        return msgspec.convert(self.state["budget"], BudgetState)


class Views:
    """The live views of one session; made on the main thread, `close()` ends them.

    `on_switch` is told of every slot that a click went to. Traits are set on the session's thread:
    the kernel's own may be busy with a cell, and its sockets are fed by a thread of their own.
    """

    def __init__(self, session: Session, *, on_switch: Callable[[str], None]) -> None:
        self._session = session
        self._on_switch = on_switch
        self._is_stale = False
        self._said = 0
        self._pushing: asyncio.Task[None] | None = None
        self._tabs: SlotTabs | None = None
        self._budgets: dict[str, TokenBudget] = {}
        self._foreseen: dict[str, tuple[int, int | None]] = {}
        self._ledger: LedgerViews | None = None
        self._unsubscribe = session.subscribe(self._changed)

    def tabs(self) -> SlotTabs:
        """Give the slot tabs, up to date."""
        state = session_state(self._session)
        if self._tabs is None:
            self._tabs = SlotTabs(state)
            self._tabs.on_msg(lambda _view, message, _buffers: self._heard(message))
        self._tabs.tell(state)
        return self._tabs

    def budget(self, slot_id: str) -> TokenBudget:
        """Give the token budget of a slot, up to date; it stays that slot's wherever one goes."""
        (uid,) = (slot.uid for slot in self._session.list_slots() if slot.slot_id == slot_id)
        state = self._budget_of(slot_id, uid)
        if uid not in self._budgets:
            self._budgets[uid] = TokenBudget(state)
        self._budgets[uid].tell(state)
        return self._budgets[uid]

    def ledger(self) -> LedgerViews:
        """Give the ledger explorers."""
        if self._ledger is None:
            self._ledger = LedgerViews(self._session)
        return self._ledger

    def close(self) -> None:
        """Stop following the session; what is drawn stays as it is."""
        self._unsubscribe()

    @property
    def _made(self) -> list[_View]:
        return [*([self._tabs] if self._tabs else []), *self._budgets.values()]

    def _budget_of(self, slot_id: str, uid: str) -> dict[str, Any]:
        budget = budget_now(self._session, slot_id)
        if slot_id not in self._session.running():  # planning takes time that a stream needs
            budget = msgspec.structs.replace(budget, frees=self._frees(slot_id, uid, budget.used))
        return {"budget": msgspec.to_builtins(budget)}

    def _frees(self, slot_id: str, uid: str, used: int) -> int | None:
        """Tell what a compaction would free; thought about again only where the context changed."""
        known = self._foreseen.get(uid)
        if known is None or known[0] != used:
            plan = self._session.foreseen_compaction(slot_id)
            frees = None if plan is None else max(0, plan.tokens_before - plan.tokens_after)
            known = self._foreseen[uid] = (used, frees or None)
        return known[1]

    def _heard(self, message: object) -> None:
        """Take a click; may run on any thread, and what is printed here is lost.

        It waits a moment for the deed, so that a cell that is run next finds it done.
        """
        action = read_action(message)
        if action is not None:
            done = threading.Event()
            background_loop().post(self._act(action)).add_done_callback(done.set)
            done.wait(CLICK_PATIENCE_S)

    async def _act(self, action: Action) -> None:
        notice = await act(self._session, action)
        if isinstance(action, Switch) and not notice.is_refused:
            self._on_switch(action.slot)
        self._update()
        if self._tabs is not None:
            self._said += 1
            told = msgspec.structs.replace(notice, number=self._said)
            self._tabs.notice = msgspec.to_builtins(told)

    def _changed(self) -> None:
        """Hear of news, on the session's loop; one task pushes them, not too often."""
        self._is_stale = True
        if (self._made or self._ledger) and (self._pushing is None or self._pushing.done()):
            self._pushing = asyncio.get_running_loop().create_task(self._push())

    async def _push(self) -> None:
        loop = asyncio.get_running_loop()
        is_streaming = False
        while self._is_stale or is_streaming:
            self._is_stale = False
            is_streaming = bool(self._budgets and self._session.running())
            began = loop.time()
            self._update()
            took_s = loop.time() - began
            await asyncio.sleep(max(PUSH_INTERVAL_S, took_s * SHARE_OF_LOOP))

    def _update(self) -> None:
        """Draw every view anew; the budget of a slot that was deleted stays as it was."""
        if self._ledger is not None:
            self._ledger.update()
        if self._tabs is not None:
            self._tabs.tell(session_state(self._session))
        for slot in self._session.list_slots():
            if slot.uid in self._budgets:
                self._budgets[slot.uid].tell(self._budget_of(slot.slot_id, slot.uid))
