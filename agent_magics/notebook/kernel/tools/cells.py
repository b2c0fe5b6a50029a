"""`recent_cells` and `add_cell_below`: what ran in this kernel, and what may run next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.notebook.kernel.host import execution_token, somebody_there
from agent_magics.notebook.kernel.sharing import ShareLevel, is_secret_source, scrubbed
from agent_magics.notebook.kernel.tools.clip import clipped
from agent_magics.notebook.kernel.values import value_text
from agent_magics.tools.schema import FunctionTool, tool

MAX_CELLS = 50
MAX_ALL_CHARACTERS = 12_000
MAX_SOURCE_CHARACTERS = 2_000
MAX_VALUE_TOKENS = 300
MAX_ADDED_CHARACTERS = 20_000


def cell_tools(
    shell: InteractiveShell, share: Callable[[], ShareLevel]
) -> tuple[FunctionTool[..., Any], ...]:
    """Make the two tools; neither runs anything, so neither asks. They run on the main thread."""
    added: list[str] = []

    @tool
    def recent_cells(count: int = 5) -> ToolOutput:
        """Give the source and the value of the cells that ran last in this kernel, oldest first."""
        if share() == "names":
            return _error("What cells hold isn't shared here (AgentMagics.share).")
        told = _cells(shell, min(max(count, 1), MAX_CELLS), share())
        return ToolOutput(content=scrubbed(told, shell.user_ns))

    @tool
    def add_cell_below(code: str) -> ToolOutput:
        """Put code into a new cell below this one, for the user to read and run; it isn't run.

        One cell a question: put everything into it.
        """
        try:
            return ToolOutput(content=_add(shell, code, added))
        except InputValidation as error:
            return _error(error.message)

    return recent_cells, add_cell_below


def _cells(shell: Any, count: int, share: ShareLevel) -> str:
    sources: list[str] = list(shell.history_manager.input_hist_raw)
    values: dict[int, object] = dict(shell.user_ns.get("Out", {}))
    numbers = [n for n in range(1, len(sources)) if sources[n].strip()]
    if shell.displayhook.exec_result is not None:  # a cell runs: the one that asks
        numbers = [n for n in numbers if n != shell.displayhook.prompt_count]
    told: list[str] = []
    room = MAX_ALL_CHARACTERS
    # From the newest, so that the older ones are left out where there is no room.
    for number in reversed(numbers[-count:]):
        told.append(_cell(number, sources[number], values, share))
        room -= len(told[-1])
        if room < 0:
            told[-1] = "[older cells are left out: too long]"
            break
    return "\n\n".join(reversed(told)) or "No cell has run before this one."


def _cell(number: int, source: str, values: dict[int, object], share: ShareLevel) -> str:
    source = source.rstrip("\n")
    told = f"In [{number}]:\n{clipped(source, MAX_SOURCE_CHARACTERS)}"
    if number not in values:
        return told
    last = source.splitlines()[-1]
    value = values[number]
    shown = (
        "[called like a secret]"
        if is_secret_source(last, value)
        else value_text(value, share=share, max_tokens=MAX_VALUE_TOKENS)
    )
    return f"{told}\nOut[{number}]:\n{shown}"


def _add(shell: Any, code: str, added: list[str]) -> str:
    if not code.strip() or len(code) > MAX_ADDED_CHARACTERS:
        raise InputValidation(f"Give code of up to {MAX_ADDED_CHARACTERS:,} characters.")
    if not somebody_there():
        raise InputValidation("Nobody is here to see a new cell; give the code in your answer.")
    here = execution_token()
    if here in added:
        raise InputValidation(
            "There is a new cell already, and front ends take one a question; give the rest in"
            " your answer."
        )
    added[:] = [here]
    shell.set_next_input(code)
    return (
        "The front end was asked to put it into a new cell below, once you have answered. Some"
        " front ends don't; say in your answer what the cell is for."
    )


def _error(sentence: str) -> ToolOutput:
    return ToolOutput(content=sentence, is_error=True)
