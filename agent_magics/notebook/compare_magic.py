"""`%slot compare`: what several slots answered to the same prompt, side by side."""

from __future__ import annotations

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.arguments import Given
from agent_magics.notebook.comparison_text import comparison_html, comparison_text
from agent_magics.notebook.seat import Seat
from agent_magics.notebook.shapes import counted
from agent_magics.notebook.showing import show
from agent_magics.notebook.views.comparison import (
    Answers,
    ComparisonState,
    comparison_of,
    uids_of,
)


def compare_slots(seat: Seat, given: Given) -> None:
    """Show the answers to the newest prompt that the slots share, or to an earlier one."""
    session, slots = seat.session(), given.words
    answers = Answers(session, uids_of(session, slots)).read()
    state = comparison_of(answers, is_named=bool(slots))
    chosen = _chosen(state, given.number("--prompt"))
    if chosen is not None:
        state = comparison_of(answers, chosen=chosen, is_named=bool(slots))
    show(
        text=comparison_text(state),
        html=comparison_html(state),
        widget=lambda: seat.views().comparison(slots, chosen),
    )


def _chosen(state: ComparisonState, number: int | None) -> str | None:
    """Give the id of the prompt with a number, 1 being the newest; None: none was named."""
    if number is None or not state.prompts:
        return None
    if number > len(state.prompts):
        shared = len(state.prompts)
        told = counted(shared, "prompt")
        raise InputValidation(f"These slots share {told}; there is no number {number}.")
    return state.prompts[number - 1].id
