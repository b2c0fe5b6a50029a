"""`%compact`, `%context` and `%sessions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_magics.core.errors import SessionNotFound
from agent_magics.core.ports import SessionSummary
from agent_magics.notebook import catalogue
from agent_magics.notebook.arguments import Given
from agent_magics.notebook.bridge import StoppedCell
from agent_magics.notebook.seat import Seat
from agent_magics.notebook.showing import say, show
from agent_magics.notebook.state import budget_state
from agent_magics.notebook.text import budget_html, budget_text, request_text

if TYPE_CHECKING:
    from agent_magics.session.session import Session


def run_compact(seat: Seat, given: Given, *, instructions: str | None = None) -> None:
    """Summarise older turns of a slot, or (`--dry-run`) show the plan."""
    session = seat.session()
    slot = given.value("--slot")
    is_plan = given.has("--dry-run")
    try:
        done = seat.bridge.run(
            lambda: session.compact(slot, instructions=instructions, dry_run=is_plan)
        )
    except StoppedCell:
        raise StoppedCell("stopped; nothing changed") from None
    turns = f"{done.summarised_turns:,} older turn{'' if done.summarised_turns == 1 else 's'}"
    if is_plan:
        say(
            f"{turns} would become a summary, {done.kept_turns:,} would stay as they are:"
            f" {done.tokens_before:,} → about {done.tokens_after:,} tokens"
        )
        return
    verb = "is now a summary" if done.summarised_turns == 1 else "are now a summary"
    say(
        f"{turns} {verb}: {done.tokens_before:,} → {done.tokens_after:,} tokens;"
        " the log keeps them all"
    )


def run_context(seat: Seat, given: Given) -> None:
    """Show what a slot's next request weighs, or (`--full`) the request itself."""
    session = seat.session()
    slot = given.value("--slot")
    seat.bridge.run(lambda: session.describe_model(slot))  # its window is asked for only once
    if given.has("--full"):
        say(request_text(session.next_request(slot).request))
        return
    budget = budget_state(session.context_info(slot))
    text, html = budget_text(budget), budget_html(budget)
    if budget.slot == session.current_slot:
        show(text=text, html=html, widget=lambda: seat.views().budget())
    else:
        say(text)


def run_sessions(seat: Seat, given: Given) -> None:
    """List the sessions, use another one, or take one over."""
    if given.command in (catalogue.SESSIONS_OPEN, catalogue.SESSIONS_TAKE):
        _move(seat, given)
    else:
        _list_sessions(seat)


def _list_sessions(seat: Seat) -> None:
    page = seat.bridge.run(lambda: _pages(seat))
    here = seat.opened.session_id if seat.opened else ""
    for found in page:
        mark = " *" if found[0] == here else ""
        say(f"  {found[0]}{mark}  {found[1]}")
    if not page:
        say("There is no session yet.")


async def _pages(seat: Seat) -> list[tuple[str, str]]:
    agent = await seat.agent()
    page = await agent.list_sessions()
    return [(each.session_id, _facts(each)) for each in page.sessions]


def _facts(found: SessionSummary) -> str:
    when = f"{found.updated_at:%Y-%m-%d %H:%M} UTC"
    return f"{found.title or ''} · {found.message_count:,} messages · {when}"


def _move(seat: Seat, given: Given) -> None:
    session = seat.bridge.run(
        lambda: _moved(
            seat,
            given.words[0],
            take=given.command is catalogue.SESSIONS_TAKE,
            readonly=given.has("--readonly"),
        )
    )
    how = "read-only" if session.is_readonly else "open here"
    say(f'session "{session.title or session.session_id}" is {how}, in {session.current_slot}')


async def _moved(seat: Seat, name: str, *, take: bool, readonly: bool) -> Session:
    agent = await seat.agent()
    found = await agent.find_sessions(name)
    ids = [each.session_id for each in found if name in (each.session_id, each.title)]
    if not ids:
        raise SessionNotFound(name, [each.title or each.session_id for each in found])
    return await seat.move(ids[0], take=take, readonly=readonly)
