"""`%slot`: list, make, derive, switch, delete, rename and set the mode of slots.

Why: docs/decisions.md#52.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from agent_magics.core.errors import InputValidation, SlotAlreadyExists
from agent_magics.core.slots import (
    DEFAULT_SLOT,
    DeriveStrategy,
    Focused,
    Full,
    Readonly,
    SlotConfig,
    SlotMeta,
    SlotMode,
    mode_label,
)
from agent_magics.core.wording import near
from agent_magics.notebook.binding.notebook_model import check_model, whole_model
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.commands.compare import compare_slots
from agent_magics.notebook.kernel.host import cell_origin
from agent_magics.notebook.kernel.printing import say, show
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import ParsedLine, first_word, is_number, unknown
from agent_magics.notebook.line.completion import MODES
from agent_magics.notebook.views.session_state import slot_states
from agent_magics.notebook.views.session_text import slots_html, slots_text

if TYPE_CHECKING:
    from agent_magics.session.session import Session

RunCommand = Callable[[NotebookSession, ParsedLine], None]


def run_slot(notebook: NotebookSession, given: ParsedLine) -> None:
    """Do what a `%slot` line says."""
    _COMMANDS[given.command.name](notebook, given)


def check_no_slot_name(notebook: NotebookSession, line: str) -> None:
    """Raise `UsageError` where a slot's name stands in the place of a command."""
    word, _ = first_word(line)
    if word in notebook.slot_names() and word not in catalogue.magic("slot").subcommands:
        raise UsageError(f"{word!r} is a slot, not a command. Did you mean %slot switch {word}?")


def new_slot(notebook: NotebookSession, given: ParsedLine, *, prompt: str | None = None) -> None:
    """Make an empty slot; `prompt` is its system prompt, the body of `%%slot new`."""
    session, name = notebook.session(), given.words[0]
    named = given.value("--model")
    model = None if named is None else whole_model(notebook, named)
    config = SlotConfig(mode=_mode_of(given), model=model, system_prompt=prompt)
    before = _found(session, name)
    if before is not None and given.has("--keep"):
        say(f"{name} is kept as it is")
    else:
        replace = before is not None and notebook.made_here(name)
        origin = cell_origin()
        notebook.bridge.run(
            lambda: session.create_slot(name, config, replace=replace, origin=origin)
        )
        _say_made(
            given, f"{name} {'starts again' if replace else 'is new'}, {mode_label(config.mode)}"
        )
    _maybe_switch(notebook, given, name)


def _derive(notebook: NotebookSession, given: ParsedLine) -> None:
    session, name = notebook.session(), given.words[0]
    before = _found(session, name)
    if before is not None and given.has("--keep"):
        say(f"{name} is kept as it is")
    else:
        replace = before is not None and notebook.made_here(name)
        parent = given.value("--from") or _parent(session, before if replace else None)
        strategy, mode = _strategy(given), _mode_of(given)
        at_seq = _end_of_turn(session, parent, given.number("--at"))
        origin = cell_origin()

        async def derive() -> None:
            await session.derive_slot(
                name, parent, strategy, at_seq=at_seq, replace=replace, origin=origin
            )
            if isinstance(mode, Readonly):
                await session.configure_slot(name, mode=mode)

        notebook.bridge.run(derive)
        made = _found(session, name)
        at = f" at turn {made.forked_at_turn}" if made and made.forked_at_turn else ""
        how = f"{'starts again' if replace else 'is new'}, {mode_label(mode)}"
        _say_made(given, f"{name} {how}, from {parent}{at}")
    _maybe_switch(notebook, given, name)


def _show(notebook: NotebookSession, _given: ParsedLine) -> None:
    slots = slot_states(notebook.session().list_slots())
    show(text=slots_text(slots), html=slots_html(slots), widget=lambda: notebook.views().tabs())


def _list(notebook: NotebookSession, _given: ParsedLine) -> None:
    say(slots_text(slot_states(notebook.session().list_slots())))


def _switch(notebook: NotebookSession, given: ParsedLine) -> None:
    _go(notebook, given.words[0])


def _delete(notebook: NotebookSession, given: ParsedLine) -> None:
    session, name = notebook.session(), given.words[0]
    notebook.bridge.run(lambda: session.delete_slot(name))
    say(
        f"{name} is deleted, its log is kept; now in {session.current_slot}"
        f" · %slot restore {name} brings it back"
    )


def _restore(notebook: NotebookSession, given: ParsedLine) -> None:
    session, name = notebook.session(), given.words[0]
    deleted = session.deleted_slots()
    if name not in deleted:
        if _found(session, name):
            raise SlotAlreadyExists(name)
        names = f" Deleted: {', '.join(deleted)}." if deleted else ""
        raise InputValidation(
            f'No deleted slot is called "{name}".{near(name, tuple(deleted))}{names}'
        )
    notebook.bridge.run(lambda: session.restore_slot(deleted[name]))
    say(f"{name} is back · %slot switch {name} goes there")


def _rename(notebook: NotebookSession, given: ParsedLine) -> None:
    session = notebook.session()
    old, new = given.words
    notebook.bridge.run(lambda: session.rename_slot(old, new))
    say(f"{old} is now called {new}")


def _mode(notebook: NotebookSession, given: ParsedLine) -> None:
    session = notebook.session()
    words = list(given.words)
    name = words.pop(0) if words[0] not in MODES else session.current_slot
    is_slot = _found(session, name) is not None
    # A mistyped mode reads as a slot's name; the sentence about slots would lead nowhere.
    if not (words and is_slot) and get_close_matches(name, MODES):
        raise unknown("There is no mode", name, MODES, "Modes")
    mode = _read_mode(words)
    notebook.bridge.run(lambda: session.configure_slot(name, mode=mode))
    say(f"{name} is {mode_label(mode)}")


def _bridge(notebook: NotebookSession, given: ParsedLine) -> None:
    session = notebook.session()
    source, target = given.words
    keys = _names(given.value("--keys"))
    with_summary = not given.has("--no-summary")
    if with_summary and session.turns(source) and session.newest_summary(source) is None:
        check_model(notebook, source)
        say(f"summarising {source} for the bridge…")
    made = notebook.bridge.run(
        lambda: session.bridge(source, target, keys=keys, include_summary=with_summary)
    )
    carried = [*(["a summary"] if made.has_summary else []), *made.keys]
    say(f"{target} has {', '.join(carried)} from {source}")
    if made.warning:
        say(made.warning)


def _names(listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def _go(notebook: NotebookSession, name: str) -> None:
    session = notebook.session()
    notebook.bridge.run(lambda: session.switch_slot(name))
    found = _found(session, name)
    turns = found.turns if found else 0
    say(f"now in {name} · {turns:,} turn{'' if turns == 1 else 's'}")


def _maybe_switch(notebook: NotebookSession, given: ParsedLine, name: str) -> None:
    if given.has("--switch"):
        _go(notebook, name)


def _say_made(given: ParsedLine, line: str) -> None:
    name = given.words[0]
    say(line if given.has("--switch") else f"{line} · %slot switch {name} goes there")


def _found(session: Session, name: str) -> SlotMeta | None:
    return next((slot for slot in session.list_slots() if slot.slot_id == name), None)


def _parent(session: Session, replaced: SlotMeta | None) -> str:
    """Name the parent of a new slot: the current one, unless it is the one being replaced."""
    current = session.current_slot
    if replaced is None or replaced.slot_id != current:
        return current
    # The one that is replaced is current, as the cell had switched there: derived from itself it
    # would be gone.
    parent = replaced.parent_id
    return parent if parent and _found(session, parent) else DEFAULT_SLOT


def _end_of_turn(session: Session, parent: str, turn: int | None) -> int | None:
    if turn is None:
        return None
    spans = session.turns(parent)
    for span in spans:
        if span.index == turn and span.is_finished:
            return span.last_seq
    indexes = [span.index for span in spans if span.is_finished]
    has = f"its turns are {indexes[0]} to {indexes[-1]}" if indexes else "it has none yet"
    raise InputValidation(f'Slot "{parent}" has no finished turn {turn}; {has}.')


def _mode_of(given: ParsedLine) -> SlotMode:
    count = given.number("--focused")
    if count is not None and given.has("--readonly"):
        raise UsageError("--focused and --readonly can't both hold; keep one.")
    if given.has("--readonly"):
        return Readonly()
    return Full() if count is None else Focused(recent_messages=count)


def _strategy(given: ParsedLine) -> DeriveStrategy:
    count = given.number("--focused")
    if count is None:
        return DeriveStrategy.full()
    return DeriveStrategy.focused(Focused(recent_messages=count))


def _read_mode(words: Sequence[str]) -> SlotMode:
    match words:
        case ["full"]:
            return Full()
        case ["readonly"]:
            return Readonly()
        case ["focused"]:
            return Focused()
        case ["focused", count] if is_number(count):
            return Focused(recent_messages=int(count))
        case ["focused", count]:
            raise UsageError(f"focused takes a number of messages above 0, not {count[:20]!r}.")
        case ["full" | "readonly" as mode, extra]:
            raise UsageError(f"{mode} takes nothing after it; leave {extra!r} out.")
        case [mode, *_]:
            raise unknown("There is no mode", mode, MODES, "Modes")
        case _:
            raise UsageError(f"%slot mode needs a mode: {', '.join(MODES)}.")


_COMMANDS: dict[str, RunCommand] = {
    catalogue.SLOT_SHOW.name: _show,
    catalogue.SLOT_LIST.name: _list,
    catalogue.SLOT_NEW.name: new_slot,
    catalogue.SLOT_DERIVE.name: _derive,
    catalogue.SLOT_SWITCH.name: _switch,
    catalogue.SLOT_DELETE.name: _delete,
    catalogue.SLOT_RESTORE.name: _restore,
    catalogue.SLOT_RENAME.name: _rename,
    catalogue.SLOT_MODE.name: _mode,
    catalogue.SLOT_BRIDGE.name: _bridge,
    catalogue.SLOT_COMPARE.name: compare_slots,
}
