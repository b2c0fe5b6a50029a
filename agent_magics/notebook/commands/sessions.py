"""`%sessions`: what is in the store: listed, found, used here, renamed, moved, deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from agent_magics.core.ports import SessionState
from agent_magics.dataframes.bundle_checks import has_rights
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.commands.sessions_found import Found, every_session, named, named_line
from agent_magics.notebook.commands.sessions_removed import delete, prune
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine

if TYPE_CHECKING:
    from agent_magics.session.session import Session

RunCommand = Callable[[NotebookSession, ParsedLine], None]
MAX_LISTED = 50


def run_sessions(notebook: NotebookSession, given: ParsedLine) -> None:
    """Do what a `%sessions` line says."""
    _COMMANDS[given.command.name](notebook, given)


def _list(notebook: NotebookSession, _given: ParsedLine) -> None:
    found = every_session(notebook)
    _say_all(found)
    if not found:
        say("There is no session yet.")


def _find(notebook: NotebookSession, given: ParsedLine) -> None:
    words = given.text.split()
    if not words:
        raise UsageError(f"%sessions find needs words: %{given.command.usage}")
    every = every_session(notebook)
    found = [each for each in every if each.has_all(words)]
    _say_all(found)
    if not found:
        count = f"{len(every):,} session{'' if len(every) == 1 else 's'}"
        say(f"None of {count} has {' '.join(words)!r} in its title, id or notebook.")


def _say_all(found: list[Found]) -> None:
    shown = found[:MAX_LISTED]
    names = [each.label for each in shown]
    width = max(map(len, names), default=0)
    for name, each in zip(names, shown, strict=True):
        say(f"  {name:<{width}}  {each.facts}")
    if len(found) > len(shown):
        say(f"  and {len(found) - len(shown):,} older ones: %sessions find WORDS")


def _open(notebook: NotebookSession, given: ParsedLine) -> None:
    _move(notebook, given, take=False)


def _take(notebook: NotebookSession, given: ParsedLine) -> None:
    _move(notebook, given, take=True)


def _move(notebook: NotebookSession, given: ParsedLine, *, take: bool) -> None:
    name, readonly = given.words[0], given.has("--readonly")
    found = named(notebook, name)

    async def moved() -> Session:
        return await notebook.move(found.session_id, name, take=take, readonly=readonly)

    session = notebook.bridge.run(moved)
    how = "read-only" if session.is_readonly else "open here"
    say(f'session "{session.title or session.session_id}" is {how}, in {session.current_slot}')
    notebook.session()  # says what became of its model


def _rename(notebook: NotebookSession, given: ParsedLine) -> None:
    old, new = given.words
    found = named(notebook, old)

    async def rename() -> None:
        await (await notebook.agent.get()).rename_session(found.session_id, new)

    notebook.bridge.run(rename)
    same = [each for each in every_session(notebook) if each.title == new.strip()]
    said = f'session "{found.name}" is now called "{new.strip()}"'
    say(f"{said}, as {len(same) - 1:,} other" if len(same) > 1 else said)


def _export(notebook: NotebookSession, given: ParsedLine) -> None:
    name, path = given.words
    found = named(notebook, name)

    async def export() -> SessionState:
        agent = await notebook.agent.get()
        overwrites = given.has("--force")
        return await agent.export_session(found.session_id, path, overwrites=overwrites)

    state = notebook.bridge.run(export)
    say(f'{path}: session "{found.name}", {_size(state)}')
    if state.unreadable:
        count = len(state.unreadable)
        say(f"{count:,} event{'' if count == 1 else 's'} can't be read and stayed behind")
    if has_rights(state):
        say("which tools may run without asking is not imported with it")


def _import(notebook: NotebookSession, given: ParsedLine) -> None:
    (path,) = given.words

    async def take_in() -> SessionState:
        return await (await notebook.agent.get()).import_session(path)

    state = notebook.bridge.run(take_in)
    say(f'session "{state.row.title or state.row.session_id}" is imported: {_size(state)}')
    (made,) = [e for e in every_session(notebook) if e.session_id == state.row.session_id]
    say(f"%sessions open {named_line(notebook, made)} uses it here")


def _size(state: SessionState) -> str:
    slots = sum(not slot.deleted for slot in state.slots)
    events = len(state.events)
    return (
        f"{slots:,} slot{'' if slots == 1 else 's'}, {events:,} event{'' if events == 1 else 's'}"
    )


_COMMANDS: dict[str, RunCommand] = {
    "sessions": _list,
    catalogue.SESSIONS_LIST.name: _list,
    catalogue.SESSIONS_FIND.name: _find,
    catalogue.SESSIONS_OPEN.name: _open,
    catalogue.SESSIONS_RESUME.name: _open,
    catalogue.SESSIONS_TAKE.name: _take,
    catalogue.SESSIONS_RENAME.name: _rename,
    catalogue.SESSIONS_EXPORT.name: _export,
    catalogue.SESSIONS_IMPORT.name: _import,
    catalogue.SESSIONS_DELETE.name: delete,
    catalogue.SESSIONS_PRUNE.name: prune,
}
