"""A turn that was started from Python, shown in the cell that displays it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython import get_ipython

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.cell.turns import show_apart
from agent_magics.notebook.extension import notebook_session_of
from agent_magics.notebook.kernel.bridge import FailedDisplay
from agent_magics.notebook.kernel.host import leave_display_hook

if TYPE_CHECKING:
    from agent_magics.session.state.running_turn import RunningTurn


class TurnView:
    """Show a turn from its beginning on: as it streams, and as it ended.

    `turn` is what `Session.send_message` gives. At the end of a cell, or by IPython's `display`,
    it looks as a turn of `%agent` does, its stop button included, and the cell doesn't wait for
    it. With nobody there (nbclient) it does, and fails where the turn doesn't complete. Questions
    stand there too in a turn of the notebook's own session; another session asks its own approver.
    Each display is one more view, which ends with the turn; this object is no widget. Raises
    `AgentError` where `%load_ext agent_magics` has not been run.
    """

    def __init__(self, turn: RunningTurn) -> None:
        self._notebook = notebook_session_of(get_ipython())
        if not callable(getattr(turn, "events", None)):
            raise InputValidation(
                f"{turn!r:.60} is no turn; await session.send_message(...) gives one."
            )
        self._turn = turn

    def __repr__(self) -> str:
        state = "ended" if self._turn.is_done else "running"
        return f"<turn in {self._turn.slot_id}, {state}>"

    def _ipython_display_(self) -> None:
        try:
            show_apart(self._notebook, self._turn)
        except Exception as error:
            leave_display_hook()
            raise FailedDisplay(error) from error
