"""Asks the person in the cell that waits whether a tool may run, by stdin.

In JupyterLab that is a box of one line, in a terminal the terminal; so every answer, a change to
code of many lines too, is given line by line.
"""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import msgspec
from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.core.ports import OnMain
from agent_magics.core.slots import DEFAULT_SLOT
from agent_magics.notebook.kernel.host import input_is_ours, request_id, somebody_there

MAX_SHOWN_LINES = 60
CHOICES = "[y]es  [n]o  [e]dit  [a]lways here"
_SHOW = "  [s]how all"
_WANTS = {
    "run_python": ("to run in your kernel", "run it?", "code"),
    "write_file": ("to write a file", "write it?", "content"),
}
_EDIT = "line to change, +3 to add below line 3, -3 to drop it, empty when done: "
_CELL: ContextVar[str] = ContextVar("cell", default="")  # that a turn was begun in
Read = Callable[[str], str]
WriteText = Callable[[str], None]


class StdinApprover:
    """Implements `core.ports.Approver`: asks in the cell whose turn it is, while that cell runs.

    `cell_begins` and `cell_ends` are callbacks for IPython's `pre_run_cell` and `post_run_cell`: a
    question of a turn whose cell has ended would reach nobody.
    """

    def __init__(self, shell: InteractiveShell, on_main: OnMain) -> None:
        self._on_main = on_main
        self._shell = shell
        self._input, self._stdout = builtins.input, sys.stdout
        self._announce: Callable[[], None] = lambda: None
        # We may have been loaded by a cell that asks next.
        is_in_cell = cast("Any", shell).displayhook.exec_result is not None
        self._running: str | None = None
        if is_in_cell:
            self._note_cell()

    def cell_begins(self, info: Any) -> None:
        """Note the cell that runs; a tool's code is none."""
        if getattr(info, "store_history", False):
            self._note_cell()

    def cell_ends(self, result: Any) -> None:
        """Note that it has ended."""
        if getattr(result.info, "store_history", False):
            self._running = None

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask on the main thread; None where nobody can answer there. An interrupt raises."""
        return await self._on_main.call(lambda: self._ask_here(request))

    def _ask_here(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        # A question in a cell that has ended would wait for an answer that no front end can send.
        is_here = self._is_cells_own() and somebody_there() and input_is_ours()
        return Question(request).answer(self._read, self._write) if is_here else None

    def _note_cell(self) -> None:
        self._running = request_id()
        _CELL.set(self._running)

    def _is_cells_own(self) -> bool:
        """Return whether the turn that asks was begun by the cell that runs.

        ipykernel 7 tells each context its own request; older ones tell all of them the last.
        """
        return self._running == request_id() and _CELL.get() in {"", self._running}

    def _read(self, prompt: str) -> str:
        kernel = self._kernel
        # Not `input`: code that ran may have replaced it, and would then answer in the person's
        # place.
        return str(kernel.raw_input(prompt)) if kernel is not None else self._input(prompt)

    @contextmanager
    def announcing(self, announce: Callable[[], None]) -> Iterator[None]:
        """Call `announce` before a question is written, for the time of a turn."""
        before, self._announce = self._announce, announce
        try:
            yield
        finally:
            self._announce = before

    def _write(self, text: str) -> None:
        """Write to the cell itself: what ran may have put something of its own behind `print`."""
        self._announce()
        kernel = self._kernel
        if kernel is None or hasattr(self._stdout, "pub_thread"):  # a terminal's, or the kernel's
            self._stdout.write(f"{text}\n")
            self._stdout.flush()
        else:  # it was redirected when we were loaded
            said = {"name": "stdout", "text": f"{text}\n"}
            kernel.send_response(kernel.iopub_socket, "stream", said)

    @property
    def _kernel(self) -> Any:
        kernel = getattr(self._shell, "kernel", None)
        return kernel if hasattr(kernel, "send_response") else None


class Question:
    """One question and what may be answered; an edit is shown and asked about again."""

    def __init__(self, request: ApprovalRequest) -> None:
        self._name = request.tool_name
        self._arguments = request.arguments
        self._edited: dict[str, Any] | None = None
        wants, self._ask, self._text = _WANTS.get(
            request.tool_name, (f"to call {request.tool_name}", "run it?", "")
        )
        where = "" if request.slot_id == DEFAULT_SLOT else f" in {request.slot_id}"
        self.head = visible(f"The agent{where} wants {wants}:")
        self.preview = request.preview
        self._lines = request.preview.splitlines()

    @property
    def does(self) -> str:
        """Name what a yes does, as a button does."""
        return self._ask.rstrip("?").capitalize()

    @property
    def editable(self) -> str | None:
        """Return the text that may be edited; None where something in it can't be seen."""
        name = self._text_argument(self._arguments)
        text = self._arguments[name] if name else _as_json(self._arguments, indent=2)
        # What can't be seen can't be edited with open eyes: a box would show it as nothing, or
        # turned around.
        return text if visible(text) == text else None

    def edited(self, text: str) -> dict[str, Any] | None:
        """Return the arguments that an edited text means; None where they are as they were.

        Raises `msgspec.DecodeError` or `UnicodeEncodeError` where it should be JSON and isn't.
        """
        name = self._text_argument(self._arguments)
        changed = {**self._arguments, name: text} if name else _from_json(text)
        return None if changed == self._arguments else changed

    def answer(self, read: Read, write: WriteText) -> ApprovalAnswer:
        """Ask until there is an answer. The end of the input is a no."""
        try:
            return self._answered(read, write)
        # Nobody at the terminal is nobody who agreed.
        except EOFError:
            return ApprovalAnswer(word="no")

    def _answered(self, read: Read, write: WriteText) -> ApprovalAnswer:
        is_cut = self._show(write, is_whole=False)
        while True:
            said = read(f"{self._ask}  {CHOICES}{_SHOW if is_cut else ''}  ").strip()
            word, _, rest = said.partition(" ")
            match word.lower().rstrip(",.:;"):
                case "y" | "yes":
                    if self._edited is None:
                        return ApprovalAnswer(word="yes")
                    return ApprovalAnswer(word="edited", arguments=self._edited)
                case "a" | "always":
                    return ApprovalAnswer(word="always", arguments=self._edited)
                case "n" | "no":
                    return ApprovalAnswer(word="no", reason=rest.strip())
                case "e" | "edit":
                    self._edit(read, write)
                    is_cut = self._show(write, is_whole=False)
                case "s" | "show" if is_cut:
                    is_cut = self._show(write, is_whole=True)
                case _:
                    write(f'"{said}" is no answer: y, n (and why), e or a.')

    def _show(self, write: WriteText, *, is_whole: bool) -> bool:
        """Write what will run, indented; tell whether some of it was left out."""
        lines, count = self._lines, len(self._lines)
        is_cut = count > MAX_SHOWN_LINES and not is_whole
        if is_cut:
            half = MAX_SHOWN_LINES // 2
            lines = [*lines[:half], f"… {count - 2 * half:,} lines …", *lines[-half:]]
        write("\n".join([self.head, *(f"    {line}" for line in lines)]))
        return is_cut

    def _edit(self, read: Read, write: WriteText) -> None:
        arguments = dict(self._edited or self._arguments)
        name = self._text_argument(arguments)
        if name is None:
            changed = _edited_json(arguments, read, write)
        else:
            changed = {**arguments, name: edited_text(arguments[name], read, write)}
        self._edited = None if changed == self._arguments else changed
        self._lines = visible(self._told(changed, name)).splitlines()

    def _text_argument(self, arguments: dict[str, Any]) -> str | None:
        """Name the argument that is edited as text; None: all of them, as JSON."""
        if isinstance(arguments.get(self._text), str):
            return self._text
        (name, value), *others = list(arguments.items()) or [("", None)]
        return name if isinstance(value, str) and not others else None

    def _told(self, arguments: dict[str, Any], name: str | None) -> str:
        others = [f"{key}={_as_json(value)}" for key, value in arguments.items() if key != name]
        return "\n".join([*others, *([arguments[name]] if name else [])])


def edited_text(text: str, read: Read, write: WriteText) -> str:
    """Let a person change a text line by line; a text of one line is written anew."""
    lines = text.splitlines()
    if len(lines) <= 1:
        return read("instead (empty: as it was): ") or text
    while True:
        write("\n".join(f"{number:>4}  {visible(line)}" for number, line in enumerate(lines, 1)))
        said = read(_EDIT).strip()
        if not said:
            return "\n".join(lines) + ("\n" if text.endswith("\n") else "")
        at = said.lstrip("+-")
        first = 0 if said.startswith("+") else 1
        if not at.isdecimal() or not first <= int(at) <= len(lines):
            write(f'"{said}" is no line: they are 1 to {len(lines)}.')
        elif said.startswith("-"):
            del lines[int(at) - 1]
        elif said.startswith("+"):
            lines.insert(int(at), read("new line: "))
        else:
            lines[int(at) - 1] = read(f"line {at}: ")


def _edited_json(arguments: dict[str, Any], read: Read, write: WriteText) -> dict[str, Any]:
    write(visible(_as_json(arguments)))
    while True:
        said = read("arguments as JSON (empty: as they were): ").strip()
        if not said:
            return arguments
        try:
            return _from_json(said)
        except (msgspec.DecodeError, UnicodeEncodeError):
            write("That is no JSON object.")


def _as_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _from_json(text: str) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])


def visible(text: str) -> str:
    """Write characters that nobody sees, or that reorder what is seen, by their codes."""
    # The engine's own rule; the engine loads with the first question to a model.
    from agent_magics.session.turn.tool_approval import visible as seen  # noqa: PLC0415

    return seen(text)
