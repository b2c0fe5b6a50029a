"""A running turn in a cell: shown while it runs, and its end turned into the cell's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from agent_magics.core.turns import Cancelled, Completed, Failed, Panicked, Reply, TurnOutcome
from agent_magics.notebook.bridge import FailedCell, StoppedCell
from agent_magics.notebook.display import AnswerDisplay
from agent_magics.notebook.remedies import sentence_of
from agent_magics.notebook.seat import Seat
from agent_magics.notebook.showing import complain

if TYPE_CHECKING:
    from agent_magics.session.running import RunningTurn


def show_turn(seat: Seat, turn: RunningTurn, *, keeps_going: bool = False) -> Reply:
    """Show a turn until it ends, and give its reply.

    A stopped turn raises `StoppedCell`, a failed one `FailedCell`; what they say stands where the
    footer would. `keeps_going`: a failed turn's sentence is printed and its reply given. A fault
    inside us is raised as it is.
    """
    answer = AnswerDisplay()

    async def watch() -> TurnOutcome:
        with answer:
            async for event in turn:
                answer.feed(event)
            outcome = await turn.join()
            answer.finish(outcome)
        return outcome

    try:
        outcome = seat.bridge.run(watch, on_interrupt=turn.cancel)
    except StoppedCell:
        if not turn.is_done:  # the second interrupt: running tools aren't waited for
            turn.abandon()
        raise StoppedCell(answer.stopped) from None
    match outcome:
        case Completed(reply=reply):
            return reply
        case Cancelled():
            raise StoppedCell(answer.stopped)
        case Failed(error=error, reply=reply):
            if keeps_going:
                complain(sentence_of(error))
                return reply
            raise FailedCell(sentence_of(error))
        case Panicked(error=error):
            raise error
        case _:
            assert_never(outcome)
