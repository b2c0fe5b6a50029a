"""Approval by the buttons of a turn's view, and the views themselves, made when they are needed.

Exactly one channel asks: the buttons, where a page answered from that turn's cell that it shows
them; else the other approver. A page that is closed while it asks leaves the interrupt, and asks
again when it is opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from IPython import get_ipython

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.core.ports import Approver, OnMain
from agent_magics.notebook.kernel.host import in_kernel, may_draw, somebody_there
from agent_magics.notebook.views.reloading import NewPages

if TYPE_CHECKING:
    from agent_magics.notebook.views.turn.turn_view import DrawnTurn, TurnViews


_DRAWS = "agent_magics.notebook.views.turn.turn_view"


class LiveTurns:
    """Implements `core.ports.Approver`, by the views of one kernel's turns."""

    def __init__(self, otherwise: Approver, on_main: OnMain) -> None:
        self._otherwise = otherwise
        self._on_main = on_main
        self._views: TurnViews | None = None
        self._new_pages: NewPages | None = None

    def prepare(self) -> None:
        """Import what draws, where it will be asked for: that takes a moment; from any thread."""
        if in_kernel() and somebody_there():
            import_module(_DRAWS)

    def views(self) -> TurnViews | None:
        """Return what draws turns; None where nobody could see it. Call it on the main thread."""
        if not (in_kernel() and somebody_there()):
            return None
        if self._views is None:
            # anywidget is heavy, and terminals never need it.
            from agent_magics.notebook.views.turn.turn_view import TurnViews  # noqa: PLC0415

            self._new_pages = NewPages(getattr(get_ipython(), "kernel", None))
            self._views = TurnViews(
                on_answered=self._new_pages.stay_busy, are_absent=not may_draw()
            )
        return self._views

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask by button where the turn's view is seen, else by the other way."""
        view = self._find(request.turn_id)
        if view is None:  # whoever shows the turn does that before it waits on the main thread
            await self._on_main.call(lambda: None)
            view = self._find(request.turn_id)
        # One channel at a time: a pending `input()` can't be withdrawn, so it comes only where no
        # button is seen.
        answer = await view.ask(request) if view else None
        return answer or await self._otherwise.ask(request)

    def _find(self, turn_id: str) -> DrawnTurn | None:
        return self._views.find(turn_id) if self._views else None

    def close(self) -> None:
        """Draw no more."""
        if self._new_pages:
            self._new_pages.close()
        if self._views:
            self._views.close()
        self._views = self._new_pages = None
