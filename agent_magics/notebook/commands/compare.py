"""`%slot compare`: what several slots answered to the same prompt, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.printing import show
from agent_magics.notebook.line.arguments import ParsedLine
from agent_magics.notebook.text.shapes import counted
from agent_magics.notebook.views.comparison.comparison import (
    NEWEST_TURNS,
    ComparedSlots,
    PromptState,
    comparison_of,
    prompts_of,
    uids_of,
)
from agent_magics.notebook.views.comparison.text import comparison_html, comparison_text


def compare_slots(notebook: NotebookSession, given: ParsedLine) -> None:
    """Show the answers to the newest prompt that the slots share, or to an earlier one."""
    session, slots = notebook.session(), given.words
    read = ComparedSlots(session, uids_of(session, slots))
    answers = read.read()
    chosen = _chosen(prompts_of(answers), given.number("--prompt"), is_cut=read.is_cut)
    state = comparison_of(answers, chosen=chosen, is_named=bool(slots), is_cut=read.is_cut)
    show(
        text=comparison_text(state, by_magic=True),
        html=comparison_html(state, by_magic=True),
        widget=lambda: notebook.views().comparison(slots, chosen),
    )


def _chosen(prompts: Sequence[PromptState], number: int | None, *, is_cut: bool) -> str | None:
    """Return the id of the prompt with a number, 1 being the newest; None: none was named."""
    if number is None or not prompts:
        return None
    if number > len(prompts):
        told = counted(len(prompts), "prompt")
        where = f" in their newest {NEWEST_TURNS} turns" if is_cut else ""
        raise InputValidation(f"These slots share {told}{where}; there is no number {number}.")
    return prompts[number - 1].id
