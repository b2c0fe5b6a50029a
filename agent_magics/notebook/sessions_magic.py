"""`%sessions`: the sessions in the store, and using another one here."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from agent_magics.core.errors import InputValidation, SessionNotFound
from agent_magics.core.ports import SessionSummary
from agent_magics.notebook import catalogue
from agent_magics.notebook.arguments import Given
from agent_magics.notebook.seat import Seat
from agent_magics.notebook.showing import say

if TYPE_CHECKING:
    from agent_magics.session.session import Session

UNTITLED = "(untitled)"
SHOWN_PARTS = 2  # of a notebook's path: outputs are saved and shared


def run_sessions(seat: Seat, given: Given) -> None:
    """List the sessions, use another one, or take one over."""
    if given.command in (catalogue.SESSIONS_OPEN, catalogue.SESSIONS_TAKE):
        _move(seat, given)
    else:
        _list_sessions(seat)


def _list_sessions(seat: Seat) -> None:
    found = seat.bridge.run(lambda: _listed(seat))
    here = seat.opened.session_id if seat.opened else ""
    notebooks = seat.notebooks()
    names = [_title(each) + (" *" if each.session_id == here else "") for each in found]
    width = max(map(len, names), default=0)
    for name, each in zip(names, found, strict=True):
        path = notebooks.get(each.session_id)
        where = f" · {'/'.join(PurePath(path).parts[-SHOWN_PARTS:])}" if path else ""
        say(f"  {name:<{width}}  {_facts(each)}{where}")
    if not found:
        say("There is no session yet.")


async def _listed(seat: Seat) -> tuple[SessionSummary, ...]:
    agent = await seat.agent()
    return (await agent.list_sessions()).sessions


def _title(found: SessionSummary) -> str:
    return found.title or UNTITLED


def _facts(found: SessionSummary) -> str:
    when = f"{found.updated_at:%Y-%m-%d %H:%M} UTC"
    messages = f"{found.message_count:,} message{'' if found.message_count == 1 else 's'}"
    return f"{found.session_id} · {messages} · {when}"


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
    seat.session()  # says what became of its model


async def _moved(seat: Seat, name: str, *, take: bool, readonly: bool) -> Session:
    agent = await seat.agent()
    found = await agent.find_sessions(name)
    ids = [each.session_id for each in found if each.session_id == name]
    ids = ids or [each.session_id for each in found if each.title == name]
    if not ids:
        raise SessionNotFound(name, [each.title or each.session_id for each in found])
    if len(ids) > 1:
        raise InputValidation(
            f'{len(ids)} sessions are called "{name}"; give an id: {", ".join(ids)}.'
        )
    return await seat.move(ids[0], name, take=take, readonly=readonly)
