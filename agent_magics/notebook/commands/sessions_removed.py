"""`%sessions delete` and `prune`: said before, asked where somebody is there, never one in use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from IPython.core.error import UsageError

from agent_magics.core.errors import InputValidation, SessionLocked
from agent_magics.core.ports import SessionState
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.commands.sessions_found import Found, every_session, named, said_size
from agent_magics.notebook.kernel.host import input_is_ours, somebody_there
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.line.arguments import ParsedLine

_AGE = re.compile(r"(\d{1,6})\s*([dwy]?)")
_DAYS = {"": 1, "d": 1, "w": 7, "y": 365}
MAX_DAYS = 36_500


def delete(notebook: NotebookSession, given: ParsedLine) -> None:
    """Delete one session for good."""
    found = named(notebook, given.words[0])
    _check_unused(found)
    state = notebook.bridge.run(lambda: _stored(notebook, found))
    what = f"{_what(state)}, {said_size(found.size_bytes)}"
    say(f'session "{found.name}" ({found.session_id}): {what}')
    if _confirmed(given, "delete it for good?"):
        notebook.bridge.run(lambda: _gone(notebook, found))
        say(f'session "{found.name}" is deleted')


def prune(notebook: NotebookSession, given: ParsedLine) -> None:
    """Delete the sessions that nobody has used for a while."""
    age = _age(given)
    before = datetime.now(UTC) - age
    old = [each for each in every_session(notebook) if each.updated_at < before]
    going = [each for each in old if not each.is_here and not each.is_elsewhere]
    for each in old:
        say(f"  {each.label}  {each.facts}{'' if each in going else ' · stays: it is in use'}")
    if not going:
        say(f"No session is to go: none was left alone for {age.days:,} days.")
        return
    size = said_size(sum(each.size_bytes for each in going))
    counted = f"{len(going):,} session{'' if len(going) == 1 else 's'}"
    if given.has("--dry-run"):
        say(f"{counted}, {size}, would go; nothing was deleted")
    elif _confirmed(given, f"delete {counted}, {size}, for good?"):
        say(f"{_deleted(notebook, going)} of {counted} deleted")


def _check_unused(found: Found) -> None:
    if found.is_here:
        raise InputValidation(
            f'Session "{found.name}" is the one that this notebook uses; open another one first.'
        )
    if found.is_elsewhere:
        raise InputValidation(
            f'Session "{found.name}" is open in another kernel; close it there first.'
        )


async def _stored(notebook: NotebookSession, found: Found) -> SessionState:
    state = await (await notebook.agent.get()).storage.load(found.session_id)
    assert state is not None  # it was listed a moment ago
    return state


def _what(state: SessionState) -> str:
    turns = {event.turn_id for event in state.events if event.turn_id}
    slots = sum(not slot.deleted for slot in state.slots)
    return ", ".join(
        f"{count:,} {noun}{'' if count == 1 else 's'}"
        for count, noun in (
            (slots, "slot"),
            (len(turns), "turn"),
            (len(state.events), "event"),
        )
    )


def _confirmed(given: ParsedLine, question: str) -> bool:
    """Ask, unless `--yes` has answered; with nobody there that is an error."""
    if given.has("--yes"):
        return True
    # A notebook that runs by itself must not delete because nobody said no.
    if not somebody_there() or not input_is_ours():
        raise UsageError(f"Nothing was deleted: nobody is there to ask; --yes says {question}")
    try:
        answer = input(f"{question} [y]es  [n]o ")
    except EOFError:
        answer = ""
    is_yes = answer.strip().casefold() in {"y", "yes"}
    if not is_yes:
        say("nothing was deleted")
    return is_yes


async def _gone(notebook: NotebookSession, found: Found) -> None:
    await (await notebook.agent.get()).delete_session(found.session_id)


def _deleted(notebook: NotebookSession, going: Sequence[Found]) -> int:
    """Delete one after the other; one that somebody opened meanwhile stays."""
    count = 0
    for each in going:
        try:
            notebook.bridge.run(partial(_gone, notebook, each))
        except SessionLocked as error:
            say(f"  {each.label} stays: {error.message}")
        else:
            count += 1
    return count


def _age(given: ParsedLine) -> timedelta:
    named_age = given.value("--older")
    if named_age is None:
        raise UsageError("%sessions prune needs --older AGE, as in --older 90d.")
    found = _AGE.fullmatch(named_age.strip().lower())
    days = int(found[1]) * _DAYS[found[2]] if found else 0
    if not 0 < days <= MAX_DAYS:
        raise UsageError(f"--older is {named_age!r}; write days, weeks or years: 90d, 12w, 1y.")
    return timedelta(days=days)
