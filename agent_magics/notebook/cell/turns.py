"""A running turn in a cell: shown while it runs, and its end turned into the cell's end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, assert_never

from agent_magics.core.errors import InternalPanic, said_by
from agent_magics.core.turns import Cancelled, Completed, Failed, Panicked, Reply, TurnOutcome
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.cell.columns import columns_for
from agent_magics.notebook.cell.display import AnswerDisplay
from agent_magics.notebook.cell.outputs import making_way, named_by_slot
from agent_magics.notebook.cell.remedies import sentence_of
from agent_magics.notebook.kernel.bridge import FailedCell, StoppedCell
from agent_magics.notebook.kernel.host import somebody_there
from agent_magics.notebook.kernel.printing import complain
from agent_magics.notebook.text.page import Page
from agent_magics.notebook.views.turn.turn_state import ContextShare

if TYPE_CHECKING:
    from agent_magics.session.state.running_turn import RunningTurn


def show_turns(
    notebook: NotebookSession,
    turns: Mapping[str, RunningTurn],
    *,
    keep: Callable[[dict[str, Reply]], object],
    keeps_going: bool = False,
) -> dict[str, Reply]:
    """Show the turns of several slots side by side until all have ended; give their replies.

    One interrupt stops them all, the button of a column its own turn. Ends as `show_turn`; what
    failed is named with its slot. `keep` gets the replies that are whole, before anything is
    raised.
    """
    answers = _displays_of(notebook, turns)
    ended: dict[str, TurnOutcome] = {}

    async def watch(slot: str) -> None:
        ended[slot] = await _watched(answers[slot], turns[slot], tells=True)

    async def watch_all() -> None:
        await asyncio.gather(*map(watch, turns))

    def stop() -> None:
        for turn in turns.values():
            turn.cancel()

    try:
        with named_by_slot(notebook.shell, notebook.bridge.loop, partial(_begin, answers)):
            notebook.bridge.run(watch_all, on_interrupt=stop)
    except StoppedCell:
        for turn in turns.values():
            if not turn.is_done:
                turn.abandon()
        raise StoppedCell("stopped") from None
    finally:
        # What was answered is kept also where another slot failed or the person stopped: it is paid
        # for.
        keep({slot: end.reply for slot, end in ended.items() if isinstance(end, Completed)})
    _end_together(ended, answers, keeps_going=keeps_going)
    return {slot: ended[slot].reply for slot in turns}


def _begin(answers: Mapping[str, AnswerDisplay]) -> None:
    for answer in answers.values():
        if isinstance(answer.page, Page):
            answer.page.begin()


def _end_together(
    ended: Mapping[str, TurnOutcome],
    answers: Mapping[str, AnswerDisplay],
    *,
    keeps_going: bool,
) -> None:
    failed = []
    for slot, answer in answers.items():
        outcome = ended[slot]
        if isinstance(outcome, Panicked):
            raise outcome.error
        sentence = _trouble(outcome, answer)
        if sentence:
            failed.append(f"{slot}: {sentence}")
    if failed and not keeps_going:
        raise FailedCell("  ".join(failed))
    for line in failed:
        complain(line)


def show_behind(
    notebook: NotebookSession, turn: RunningTurn, *, then: Callable[[Reply], None]
) -> None:
    """Show a turn in this cell while others run; `then` gets the reply of one that completed."""
    answer = _display_of(notebook, turn, lambda: _stop(turn))

    async def watch() -> None:
        outcome = await _watched(answer, turn, tells=True)
        if isinstance(outcome, Completed):
            then(outcome.reply)

    notebook.bridge.loop.post_unwatched(watch(), doing=f"showing turn {turn.turn_id}")


def show_apart(notebook: NotebookSession, turn: RunningTurn) -> None:
    """Show a turn that somebody else waits for, from its beginning on, in the cell that runs.

    With nobody there the cell waits for its end, and ends as by `show_turn`: what comes after a
    cell would be lost.
    """
    if somebody_there():
        show_behind(notebook, turn, then=lambda _reply: None)
    else:
        show_turn(notebook, turn)


def _stop(turn: RunningTurn) -> None:
    """Stop one turn; the second time its running tools aren't waited for."""
    if turn.stop_wanted.is_set():
        turn.abandon()
    else:
        turn.cancel()


def _displays_of(
    notebook: NotebookSession, turns: Mapping[str, RunningTurn]
) -> dict[str, AnswerDisplay]:
    """Make a column for each turn; where a page may draw it live, its button stops that turn."""
    try:
        views = notebook.cells.live_turns.views()
        if views is None:
            return {slot: AnswerDisplay(page) for slot, page in columns_for(tuple(turns)).items()}
        made = {}
        for slot, page in columns_for(tuple(turns), anchor=views.anchor).items():
            assert isinstance(page, Page)
            turn = turns[slot]
            view = views.open(
                turn,
                page,
                stop=partial(_stop, turn),
                share=partial(_share, notebook, turn),
            )
            made[slot] = AnswerDisplay(page, view)
    except BaseException:  # interrupted: the turns run already
        for turn in turns.values():
            turn.cancel()
        raise
    return made


def _display_of(
    notebook: NotebookSession, turn: RunningTurn, stop: Callable[[], None]
) -> AnswerDisplay:
    """Make the display of a turn; where a page may draw it live, `stop` is what its button does."""
    try:
        views = notebook.cells.live_turns.views()
        if views is None:
            return AnswerDisplay()
        page = Page(is_live=True, anchor=views.anchor)
        view = views.open(turn, page, stop=stop, share=lambda: _share(notebook, turn))
        return AnswerDisplay(page, view)
    except BaseException:  # interrupted: the turn runs already
        turn.cancel()
        raise


def _share(notebook: NotebookSession, turn: RunningTurn) -> ContextShare | None:
    """Return how full the context of a turn's slot is; None where the session was left since."""
    session = notebook.opened
    # A turn behind may outlive its session's place in this notebook.
    if session is None or session.session_id != turn.session_id:
        return None
    info = session.context_info(turn.slot_id)
    return ContextShare(used=info.used, window=info.limits.window, threshold=info.limits.threshold)


def _trouble(outcome: TurnOutcome, answer: AnswerDisplay) -> str | None:
    """Say what kept a turn from completing; None where it did."""
    match outcome:
        case Completed():
            return None
        case Cancelled():
            return answer.stopped
        case Failed(error=error):
            return sentence_of(error)
        case Panicked(error=error):
            return InternalPanic(said_by(error)).message
        case _:
            assert_never(outcome)


async def _watched(answer: AnswerDisplay, turn: RunningTurn, *, tells: bool = False) -> TurnOutcome:
    """Show a turn until it ends; `tells`: also what kept it from completing, where it stands."""
    with answer:
        async for event in turn.events():
            answer.feed(event)
        # By its own way: the outcome is right even if an event was lost or shown wrongly.
        outcome = await turn.join()
        sentence = _trouble(outcome, answer) if tells else None
        if sentence:
            answer.note(sentence)
        answer.finish(outcome)
    return outcome


def show_turn(notebook: NotebookSession, turn: RunningTurn, *, keeps_going: bool = False) -> Reply:
    """Show a turn until it ends, and give its reply.

    A stopped turn raises `StoppedCell`, a failed one `FailedCell`; what they say stands where the
    footer would. `keeps_going`: a failed turn's sentence is printed and its reply given. A fault
    inside us is raised as it is.
    """
    answer = _display_of(notebook, turn, notebook.bridge.main.interrupt)

    try:
        with (
            making_way(notebook.shell, answer.page, notebook.bridge.loop) as announce,
            notebook.cells.approver.announcing(announce),
        ):
            outcome = notebook.bridge.run(lambda: _watched(answer, turn), on_interrupt=turn.cancel)
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
