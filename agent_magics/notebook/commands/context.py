"""`%compact` and `%context`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from agent_magics.core.errors import NothingToCompact
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.kernel.bridge import StoppedCell
from agent_magics.notebook.kernel.host import somebody_there
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line.arguments import ParsedLine
from agent_magics.notebook.views.session_state import budget_state
from agent_magics.notebook.views.session_text import budget_html, budget_text, request_text

if TYPE_CHECKING:
    from agent_magics.session.session import Session


def run_compact(
    notebook: NotebookSession, given: ParsedLine, *, instructions: str | None = None
) -> None:
    """Summarise older turns of a slot, show the plan (`--dry-run`), or go back (`--undo`).

    That there is nothing to do is an answer too.
    """
    session = notebook.session()
    slot = given.value("--slot") or session.current_slot
    chosen = [flag for flag in ("--dry-run", "--undo") if given.has(flag)]
    if len(chosen) > 1:
        raise UsageError("--dry-run and --undo can't both hold; keep one.")
    if chosen and instructions:
        raise UsageError(f"{chosen[0]} takes no body: write %compact {chosen[0]}.")
    try:
        if given.has("--undo"):
            _undo(notebook, session, slot)
        elif given.has("--dry-run"):
            _plan(notebook, session, slot)
        else:
            _compact(notebook, session, slot, instructions)
    except NothingToCompact as error:
        say(error.message)
    except StoppedCell:
        raise StoppedCell("stopped; nothing changed") from None


def _compact(
    notebook: NotebookSession, session: Session, slot: str, instructions: str | None
) -> None:
    done = notebook.bridge.run(lambda: session.compact(slot, instructions=instructions))
    say(
        f"{done.tokens_before:,} → {done.tokens_after:,} tokens,"
        f" kept {_turns(done.kept_turns)} from seq {done.first_retained_seq:,},"
        " raw history unchanged"
    )


def _plan(notebook: NotebookSession, session: Session, slot: str) -> None:
    plan = notebook.bridge.run(lambda: session.compact(slot, dry_run=True))
    say(
        f"plan for {slot}; no model was asked, nothing changed\n"
        f"  becomes a summary  {_turns(plan.summarised_turns)},"
        f" before seq {plan.first_retained_seq:,}\n"
        f"  stays as it is     {_turns(plan.kept_turns)},"
        f" from seq {plan.first_retained_seq:,} on\n"
        f"  next request       {plan.tokens_before:,} → about {plan.tokens_after:,} tokens"
    )


def _undo(notebook: NotebookSession, session: Session, slot: str) -> None:
    notebook.bridge.run(lambda: session.describe_model(slot))  # its window is asked for only once
    before = session.context_info(slot)
    if before.checkpoint_id is None:
        say(f"no compaction of {slot} is active that could be undone")
        return
    active = notebook.bridge.run(lambda: session.undo_compaction(slot))
    after = session.context_info(slot)
    where = "the raw history" if active is None else "the compaction before"
    say(
        f"back to {where}: {before.used:,} → {after.used:,} tokens; nothing is deleted,"
        " and nothing is compacted by itself until a turn fits"
    )


def _turns(count: int) -> str:
    return f"{count:,} turn{'' if count == 1 else 's'}"


def run_context(notebook: NotebookSession, given: ParsedLine) -> None:
    """Show what a slot's next request weighs, or (`--full`) the request itself."""
    session = notebook.session()
    slot = given.value("--slot")
    notebook.bridge.run(lambda: session.describe_model(slot))  # its window is asked for only once
    if given.has("--full"):
        say(request_text(session.next_request(slot).request), as_it_is=True)
        return
    info, spent = session.context_info(slot), session.spent(slot)
    budget = budget_state(info, spent, is_exact=somebody_there())
    text, html = budget_text(budget), budget_html(budget)
    show(text=text, html=html, widget=lambda: notebook.views().budget(budget.slot))
