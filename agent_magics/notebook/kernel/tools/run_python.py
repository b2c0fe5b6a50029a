"""`run_python`: the model's code in the person's kernel, shown as theirs, told in bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.messages import ToolOutput
from agent_magics.notebook.kernel.run_code import CodeResult, DisplayedOutput, run_user_code
from agent_magics.notebook.kernel.sharing import ShareLevel, scrubbed
from agent_magics.notebook.kernel.tables import without_secrets
from agent_magics.notebook.kernel.tools.clip import clipped
from agent_magics.notebook.kernel.values import value_text
from agent_magics.notebook.text.shapes import counted
from agent_magics.tools.schema import FunctionTool, tool

MAX_PRINTED_CHARACTERS = 8_000
MAX_ERRORS_CHARACTERS = 2_000
MAX_VALUE_CHARACTERS = 4_000
MAX_TRACEBACK_CHARACTERS = 4_000
MAX_REASON_CHARACTERS = 200
MAX_DISPLAYS = 20
INTERRUPTED = "[Interrupted by the person while it ran]"
SILENT = "[It ran and gave nothing.]"
KEPT_HERE = "not shared here: AgentMagics.share"


def run_python_tool(
    shell: InteractiveShell, share: Callable[[], ShareLevel]
) -> FunctionTool[..., Any]:
    """Make the tool: mutating, on the main thread, as `run_user_code` runs code."""

    @tool(mutating=True, preview=lambda given: str(given.get("code", "")))
    def run_python(code: str) -> ToolOutput:
        """Run Python code in the notebook's kernel; it uses and changes the user's variables.

        The user sees its output and plots in the cell. You get what it printed, the value of its
        last expression and its error; not what child processes print.
        """
        return output_of(run_user_code(shell, code), share(), shell.user_ns)

    return run_python


def output_of(result: CodeResult, share: ShareLevel, namespace: dict[str, Any]) -> ToolOutput:
    """Tell the model what code did, as far as it is shared."""

    def shortened(text: str, limit: int) -> str:
        return clipped(scrubbed(text, namespace), limit)

    lines = _all(result, shortened) if share == "sample" else _outline(result, share)
    reason = shortened(_reason(result, share), MAX_REASON_CHARACTERS)
    return ToolOutput(
        content="\n".join(filter(None, lines)) or SILENT,
        is_error=result.error is not None,
        metadata={"reason": reason} if reason else {},
    )


def _all(result: CodeResult, shortened: Callable[[str, int], str]) -> Iterator[str]:
    if result.interrupted:
        yield INTERRUPTED
    yield shortened(result.stdout.rstrip("\n"), MAX_PRINTED_CHARACTERS)
    if result.stderr.strip():
        yield f"[stderr]\n{shortened(result.stderr.rstrip(), MAX_ERRORS_CHARACTERS)}"
    for shown in result.displays[:MAX_DISPLAYS]:
        yield shortened(_shown(shown), MAX_VALUE_CHARACTERS)
    if len(result.displays) > MAX_DISPLAYS:
        yield f"[{len(result.displays) - MAX_DISPLAYS:,} more displays in the cell]"
    yield _past_python(result)
    if not result.interrupted:
        yield shortened(result.traceback, MAX_TRACEBACK_CHARACTERS)


def _outline(result: CodeResult, share: ShareLevel) -> Iterator[str]:
    """Tell what can be told without a value: that it ran, how much it said, what was raised."""
    if result.interrupted:
        yield INTERRUPTED
    elif result.error is not None:
        yield f"It raised {result.error} (its text is {KEPT_HERE})."
    else:
        yield "It ran without an error."
    printed = len(result.stdout.splitlines()) + len(result.stderr.splitlines())
    if printed:
        yield f"[{counted(printed, 'line')} printed, {KEPT_HERE}]"
    for shown in result.displays[:MAX_DISPLAYS]:
        is_value = shown.value is not None
        yield value_text(shown.value, share=share) if is_value else _kinds(shown)


def _shown(shown: DisplayedOutput) -> str:
    plain = shown.data.get("text/plain")
    safe = without_secrets(shown.value)
    text = repr(safe) if safe is not shown.value else plain if isinstance(plain, str) else ""
    if any(kind.startswith("image/") for kind in shown.data) or not text:
        return f"{_kinds(shown)} {text}".rstrip()
    return text


def _kinds(shown: DisplayedOutput) -> str:
    kinds = [kind for kind in shown.data if kind != "text/plain"]
    return f"[shown in the cell: {', '.join(kinds) or 'text'}]"


def _past_python(result: CodeResult) -> str:
    if not result.past_python:
        return ""
    count = counted(result.past_python, "character")
    return f"[{count} more went to the cell past Python (a child process, say): not returned]"


def _reason(result: CodeResult, share: ShareLevel) -> str:
    """Say in a line why it failed, for the line of the call."""
    if result.error is None:
        return ""
    if result.interrupted:
        return "interrupted"
    lines = result.traceback.strip().splitlines()
    # The text of an error may hold a value: KeyError names the key.
    return lines[-1].strip() if lines and share == "sample" else result.error
