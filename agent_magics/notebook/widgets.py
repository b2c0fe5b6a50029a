"""Widgets of a session: slot tabs and token budget, drawn from the session state.

One model of each view a session, shown as often as asked, so that an old cell stays live and costs
nothing. Where no widget can be drawn, the same output holds static HTML and plain text. This module
imports anywidget: it is itself imported when the first view is shown.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import anywidget
import msgspec
import traitlets

from agent_magics.core.errors import AgentError
from agent_magics.notebook.state import Session as StateSource
from agent_magics.notebook.state import SessionState, session_state
from agent_magics.notebook.text import budget_html, budget_text, slots_html, slots_text
from agent_magics.session.loop import background_loop

PUSH_INTERVAL_S = 0.2
SHARE_OF_LOOP = 20
CLICK_PATIENCE_S = 1.0
_PACKAGE = Path(__file__).resolve().parent.parent


class Session(StateSource, Protocol):
    """What the views need of a session: its state, its news, and switching."""

    async def switch_slot(self, slot_id: str) -> None: ...
    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]: ...


def view_source(name: str) -> Path:
    """Find a view's ES module: in the package, or (editable installs) in the tree beside it."""
    packaged = _PACKAGE / "static" / name
    return packaged if packaged.is_file() else _PACKAGE.parent / "widgets" / "src" / name


class _View(anywidget.AnyWidget):
    """A view of the session state; `notice` is a sentence about the last thing that failed."""

    state = traitlets.Dict().tag(sync=True)
    notice = traitlets.Unicode("").tag(sync=True)

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__(state=state)
        _answer_while_busy(self)

    @property
    def session_state(self) -> SessionState:
        return msgspec.convert(self.state, SessionState)

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        still = {"text/plain": self.as_text(), "text/html": self.as_html()}
        return {**data, **still}, metadata

    def as_text(self) -> str:
        """Give the view as plain text."""
        raise NotImplementedError

    def as_html(self) -> str:
        """Give the view as static HTML."""
        raise NotImplementedError


class SlotTabs(_View):
    """The slots as tabs; a click on one goes there."""

    _esm = view_source("slot_tabs.js")

    def as_text(self) -> str:
        return slots_text(self.session_state.slots)

    def as_html(self) -> str:
        return slots_html(self.session_state.slots)


class TokenBudget(_View):
    """What fills the current slot's context."""

    _esm = view_source("token_budget.js")

    def as_text(self) -> str:
        budget = self.session_state.budget
        return budget_text(budget) if budget else ""

    def as_html(self) -> str:
        budget = self.session_state.budget
        return budget_html(budget) if budget else ""


class Views:
    """The live views of one session; made on the main thread, `close()` ends them.

    `on_switch` is told of every slot that a click went to. Traits are set on the session's thread:
    the kernel's own may be busy with a cell, and its sockets are fed by a thread of their own.
    """

    def __init__(self, session: Session, *, on_switch: Callable[[str], None]) -> None:
        self._session = session
        self._on_switch = on_switch
        self._is_stale = False
        self._pushing: asyncio.Task[None] | None = None
        self._tabs: SlotTabs | None = None
        self._budget: TokenBudget | None = None
        self._unsubscribe = session.subscribe(self._changed)

    def tabs(self) -> SlotTabs:
        """Give the slot tabs, up to date."""
        state = session_state(self._session)
        if self._tabs is None:
            self._tabs = SlotTabs(state)
            self._tabs.on_msg(lambda _view, message, _buffers: self._heard(message))
        self._tabs.state = state
        return self._tabs

    def budget(self) -> TokenBudget:
        """Give the token budget, up to date."""
        state = session_state(self._session)
        if self._budget is None:
            self._budget = TokenBudget(state)
        self._budget.state = state
        return self._budget

    def close(self) -> None:
        """Stop following the session; what is drawn stays as it is."""
        self._unsubscribe()

    @property
    def _made(self) -> list[_View]:
        return [view for view in (self._tabs, self._budget) if view is not None]

    def _heard(self, message: object) -> None:
        """Take a click; may run on any thread, and what is printed here is lost.

        It waits a moment for the deed, so that a cell that is run next finds it done.
        """
        match message:
            case {"kind": "switch", "slot": str(slot)}:
                done = threading.Event()
                background_loop().post(self._switch(slot)).add_done_callback(done.set)
                done.wait(CLICK_PATIENCE_S)
            case _:
                pass

    async def _switch(self, slot: str) -> None:
        try:
            await self._session.switch_slot(slot)
        except AgentError as error:
            self._set_notice(error.message)
        else:
            self._on_switch(slot)
            self._set_notice("")

    def _set_notice(self, notice: str) -> None:
        for view in self._made:
            view.notice = notice

    def _changed(self) -> None:
        """Hear of news, on the session's loop; one task pushes them, not too often."""
        self._is_stale = True
        if self._made and (self._pushing is None or self._pushing.done()):
            self._pushing = asyncio.get_running_loop().create_task(self._push())

    async def _push(self) -> None:
        loop = asyncio.get_running_loop()
        while self._is_stale:
            self._is_stale = False
            began = loop.time()
            state = session_state(self._session)
            took_s = loop.time() - began

            for view in self._made:
                view.state = state
            await asyncio.sleep(max(PUSH_INTERVAL_S, took_s * SHARE_OF_LOOP))


def _answer_while_busy(view: _View) -> None:
    """Let clicks be heard on the subshell that they came on, while a cell runs.

    ipykernel 7.4 would send them to the shell that last sent on the comm, which is busy; older
    ones have no such choice. Private, so looked for and covered by a test.
    """
    comm = view.comm
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, default: default  # noqa: SLF001 - see above
