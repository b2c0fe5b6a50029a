"""`%agent` and `%%agent`: ask, and the one-liners around asking."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.error import UsageError

from agent_magics.core.errors import InputValidation, SlotReadonly
from agent_magics.core.events import Origin
from agent_magics.core.messages import Text, UserInput
from agent_magics.core.slots import Readonly
from agent_magics.core.turns import Reply
from agent_magics.notebook.binding.notebook_model import check_model, whole_model
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.binding.rerun import last_prompt, redo_last, rewind_cell, undo_last
from agent_magics.notebook.cell.answer import Answer, Answers
from agent_magics.notebook.cell.turns import show_behind, show_turn, show_turns
from agent_magics.notebook.commands.models import choose_model, in_use, list_models, pull_model
from agent_magics.notebook.kernel.attach import attachments, image_of
from agent_magics.notebook.kernel.bridge import cell_origin, somebody_there
from agent_magics.notebook.kernel.fill import Filled, fill
from agent_magics.notebook.kernel.host import execution_token, in_kernel
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.line import catalogue
from agent_magics.notebook.line.arguments import HELP, ParsedLine, first_word, parse
from agent_magics.notebook.line.near_miss import command_of, near_miss
from agent_magics.session.session import stop, stop_all
from agent_magics.settings import PROVIDER_IDS

if TYPE_CHECKING:
    from agent_magics.session.state.running_turn import RunningTurn

LAST = "agent_last"
A = TypeVar("A", Answer, Answers)


def run_agent(
    notebook: NotebookSession, line: str, names: dict[str, Any]
) -> Answer | Answers | None:
    """Do what a `%agent` line says: a one-liner where it is exactly one, else it is a prompt.

    `names` are what a prompt's `{{expr}}` may use. Raises `UsageError` where a short line is
    nearly a one-liner (`near_miss`).
    """
    command = _one_liner(line)
    if command is not None:
        return command(notebook)
    missed = near_miss(line)
    if missed is not None:
        raise UsageError(missed)
    given = parse(catalogue.ASK, line)
    if given.wants_help:
        say(catalogue.magic("agent").help)
        return None
    if not given.text and not given.options:
        say(f"in use: {in_use(notebook)} · write what to ask behind %agent or below %%agent")
        return None
    return _ask(notebook, given, given.text, names)


def run_agent_cell(
    notebook: NotebookSession, line: str, body: str, names: dict[str, Any]
) -> Answer | Answers | None:
    """Ask what a `%%agent` cell says; without a body, what stands on its header line."""
    if not body.strip():
        return run_agent(notebook, line, names)
    given = parse(catalogue.ASK, line)
    if given.wants_help:
        say(catalogue.magic("agent").help)
        return None
    prompt = body.removesuffix("\n")  # IPython ends every cell with one
    return _ask(notebook, given, f"{given.text}\n{prompt}" if given.text else prompt, names)


def _ask(
    notebook: NotebookSession, given: ParsedLine, text: str, names: dict[str, Any]
) -> Answer | Answers | None:
    share = notebook.settings.kernel_access().share
    filled = Filled(text=text)
    if not given.has("--raw"):
        filled = fill(text, names, share=share, image_of=partial(image_of, notebook.shell))
    out = _variable(given.value("--out"))
    # Everything that may fail (values, files, models) comes before the turn begins, so a mistake
    # costs no request and leaves no trace.
    along = attachments(notebook.shell, given.values("--attach"), names, share=share)
    prompt = UserInput.of([Text(text=filled.text), *filled.images, *along])
    slots = _listed(given)
    if slots:
        return ask_many(
            notebook,
            prompt,
            slots,
            warning=filled.warning,
            keeps_going=given.has("--keep-going"),
            out=out,
        )
    return ask(
        notebook,
        prompt,
        warning=filled.warning,
        slot=given.value("--slot"),
        model=given.value("--model"),
        keeps_going=given.has("--keep-going"),
        goes_behind=given.has("--background"),
        out=out,
    )


def ask(
    notebook: NotebookSession,
    prompt: UserInput,
    *,
    warning: str | None = None,
    slot: str | None = None,
    model: str | None = None,
    keeps_going: bool = False,
    goes_behind: bool = False,
    out: str | None = None,
) -> Answer | None:
    """Ask in a slot and show the turn; everything is checked before anything changes.

    `warning` is said above the answer. The answer is kept in `out` and `agent_last`. With
    `goes_behind` it comes later, while other cells run, and None is given; with nobody there to
    run them it is waited for all the same.
    """
    turn = _begun(notebook, prompt, slot, model)
    if warning:
        say(warning)
    if goes_behind and somebody_there():
        made_in = execution_token()

        def keep(reply: Reply) -> None:
            _keep(notebook, Answer(reply, made_in), out)

        show_behind(notebook, turn, then=keep)
        return None
    return _keep(notebook, Answer(show_turn(notebook, turn, keeps_going=keeps_going)), out)


def _begun(
    notebook: NotebookSession, prompt: UserInput, slot: str | None, model: str | None
) -> RunningTurn:
    """Check what a turn needs, go back to before the cell's last one, and begin it."""
    session = notebook.session()
    if isinstance(session.slot_config(slot).mode, Readonly):
        raise SlotReadonly(slot or session.current_slot)
    if model is not None:
        model = whole_model(notebook, model)
    check_model(notebook, slot, model)
    session = notebook.session()  # a model that is found again is another session's default
    origin = cell_origin()
    if origin is not None and notebook.cells.rerun_guard.may_go_back():
        _go_back(notebook, slot)
    return notebook.bridge.run(
        lambda: session.send_message(prompt, slot=slot, model=model, origin=origin), undo=stop
    )


def ask_many(
    notebook: NotebookSession,
    prompt: UserInput,
    slots: Sequence[str],
    *,
    warning: str | None = None,
    keeps_going: bool = False,
    out: str | None = None,
) -> Answers:
    """Ask the same in several slots at once and show the answers side by side.

    They are kept in `out` and `agent_last`; where a slot fails or is stopped, those that are whole.
    """
    for slot in slots:
        if isinstance(notebook.session().slot_config(slot).mode, Readonly):
            raise SlotReadonly(slot)
        check_model(notebook, slot)
    session, origin = notebook.session(), cell_origin()
    if origin is not None and notebook.cells.rerun_guard.may_go_back():
        for slot in slots:
            _rewind(notebook, slot, origin)
    turns = notebook.bridge.run(
        lambda: session.send_to(prompt, slots, origin=origin), undo=stop_all
    )
    if warning:
        say(warning)

    def keep(replies: Mapping[str, Reply]) -> Answers:
        answers = Answers({slot: Answer(replies[slot]) for slot in turns if slot in replies})
        return _keep(notebook, answers, out) if answers else answers

    return keep(show_turns(notebook, turns, keep=keep, keeps_going=keeps_going))


def _keep(notebook: NotebookSession, answer: A, out: str | None) -> A:
    for name in (LAST, out):
        if name:
            notebook.shell.user_ns[name] = answer
    return answer


def _go_back(notebook: NotebookSession, slot: str | None) -> None:
    """Put the cell's new turn where its earlier one was."""
    session, origin = notebook.session(), cell_origin()
    assert origin is not None
    # In a resumed notebook the current slot is where the last kernel stopped; each cell goes where
    # it was asked, until somebody chooses.
    if slot is None and not notebook.has_switched:
        found = session.slot_of_cell(origin)
        if found is not None and found != session.current_slot:
            notebook.go_back_to(found)
            say(f"back in {found}, where this cell was asked before")
    _rewind(notebook, slot or session.current_slot, origin)


def _rewind(notebook: NotebookSession, slot: str, origin: Origin) -> None:
    session = notebook.session()
    line = notebook.bridge.run(lambda: rewind_cell(session, slot, origin))
    if line:
        say(line)


def _listed(given: ParsedLine) -> tuple[str, ...]:
    """Read `--slots A,B`; what can't go with it is a `UsageError`."""
    listed = given.value("--slots")
    if listed is None:
        return ()
    for flag in ("--slot", "--model", "--background"):
        if given.has(flag):
            raise UsageError(f"--slots and {flag} can't go together; leave one out.")
    slots = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not slots:
        raise UsageError("--slots names no slot; write --slots A,B.")
    return slots


def _retry(notebook: NotebookSession) -> Answer | None:
    check_model(notebook)
    session = notebook.session()
    slot = session.current_slot
    # The recorded prompt: its values aren't read again, or it would be another question.
    prompt = last_prompt(session.history(slot))
    spans = session.turns(slot)
    to_seq = spans[-2].last_seq if len(spans) > 1 else 0
    notebook.bridge.run(lambda: session.rewind(slot, to_seq=to_seq))
    # This cell's turn is the retried one: it was rewound just now.
    notebook.cells.rerun_guard.may_go_back()
    return ask(notebook, UserInput(content=prompt.content), slot=slot)


def _fix(notebook: NotebookSession) -> Answer | None:
    prompt = notebook.cells.failures.prompt(notebook.shell.user_ns)
    if prompt is None:
        raise InputValidation(
            "No cell has failed here since the extension was loaded; run the one to mend first."
        )
    check_model(notebook)
    say(f"sent:\n\n{prompt}\n", as_it_is=True)
    answer = ask(notebook, UserInput.of(prompt))
    # Convenience only: many front ends ignore it, and `answer.code` has it anyway.
    if answer is not None and answer.code and in_kernel():
        notebook.shell.set_next_input(answer.code[0])
    return answer


def _undo(notebook: NotebookSession) -> None:
    session = notebook.session()
    say(notebook.bridge.run(lambda: undo_last(session)))


def _redo(notebook: NotebookSession) -> None:
    session = notebook.session()

    async def redo() -> str:
        return await redo_last(session, await notebook.stored_state())

    say(notebook.bridge.run(redo))


def _stop(notebook: NotebookSession) -> None:
    session = notebook.opened
    running = session.running() if session else {}
    for turn in running.values():
        turn.cancel()
    say(f"stopping {', '.join(sorted(running))}" if running else "nothing is running")


_ONE_LINERS: dict[str, Callable[[NotebookSession], Answer | None]] = {
    "fix": _fix,
    "retry": _retry,
    "undo": _undo,
    "redo": _redo,
    "stop": _stop,
    "model": list_models,
    "model pull": pull_model,
}


def _one_liner(line: str) -> Callable[[NotebookSession], Answer | None] | None:
    """Find the one-liner that a line is; words around it make it a prompt."""
    # Exactly these words: "undo the last change" is a prompt.
    words = " ".join(line.split())
    found = _ONE_LINERS.get(words)
    if found is not None:
        return found
    before, _, last = words.rpartition(" ")
    command = command_of(before if last in HELP else words.rstrip("?"))
    if command is not None:
        return lambda _: say(catalogue.magic("agent").help_of(command))
    first, rest = first_word(line)
    if first == "model" and _is_spec(rest):
        return lambda notebook: choose_model(notebook, rest.strip().strip("\"'"))
    return None


def _is_spec(rest: str) -> bool:
    """Return whether a text is a model: one word, with a colon or a provider's bare name."""
    word = rest.strip()
    return bool(word) and len(word.split()) == 1 and (":" in word or word in PROVIDER_IDS)


def _variable(name: str | None) -> str | None:
    if name is not None and keyword.iskeyword(name):
        raise UsageError(
            f"--out {name!r} is no name for a variable: it is a keyword of Python; take another."
        )
    if name is not None and not name.isidentifier():
        raise UsageError(f"--out {name!r} is no name for a variable; write letters and digits.")
    return name
