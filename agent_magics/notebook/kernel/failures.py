"""The cell that failed last, for `%agent fix`: its source and traceback, nothing else.

Why: docs/decisions.md#54.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import ExecutionResult

from agent_magics.core.values import Value
from agent_magics.notebook.kernel.bridge import FailedCell, StoppedCell
from agent_magics.notebook.kernel.sharing import scrubbed
from agent_magics.notebook.kernel.tracebacks import traceback_text
from agent_magics.notebook.text.markdown import fenced

MAX_SOURCE_CHARACTERS = 20_000
MAX_TRACEBACK_CHARACTERS = 8_000
CUT = "\n[…]\n"
ASK = "This cell failed. Say in a sentence or two why, then give the whole corrected cell."


class FailedRun(Value):
    """A failed cell; both texts are cut where they are very long."""

    source: str
    traceback: str

    @property
    def prompt(self) -> str:
        """What is asked about it."""
        return "\n\n".join([ASK, fenced(self.source, "python"), fenced(self.traceback, "")])


class Failures:
    """Remembers the last cell of a shell that failed by itself; a stop or an error of ours isn't.

    `note` is a callback for IPython's `post_run_cell`.
    """

    def __init__(self) -> None:
        self.last: FailedRun | None = None

    def note(self, result: ExecutionResult) -> None:
        """Take a look at a cell that has ended."""
        error = result.error_before_exec or result.error_in_exec
        source = getattr(result.info, "raw_cell", None)
        if not isinstance(source, str) or not getattr(result.info, "store_history", False):
            return
        source = source.rstrip("\n")
        if not isinstance(error, BaseException):
            if self.last is not None and self.last.source == source:  # it runs by now
                self.last = None
            return
        # Nothing in the person's code to mend.
        if isinstance(error, FailedCell | StoppedCell | UsageError | KeyboardInterrupt):
            return
        self.last = FailedRun(
            source=_cut(source, MAX_SOURCE_CHARACTERS),
            traceback=_cut(_traceback_of(error), MAX_TRACEBACK_CHARACTERS),
        )

    def prompt(self, namespace: Mapping[str, object]) -> str | None:
        """Return what is asked about the last failure, without secrets; None if there is none."""
        # Scrubbed when it is sent, by the variables that there are then.
        return scrubbed(self.last.prompt, namespace) if self.last else None


def _traceback_of(error: BaseException) -> str:
    """Write the traceback from the cell on; frames of IPython and of libraries say nothing."""
    try:
        return traceback_text(error, _from_cell(error.__traceback__))
    except Exception:  # noqa: BLE001 - a foreign exception's own code writes its text
        return type(error).__name__


def _from_cell(frames: TracebackType | None) -> TracebackType | None:
    frame = frames
    while frame is not None:
        names: dict[str, Any] = frame.tb_frame.f_globals
        if names.get("__name__") == "__main__":
            return frame
        frame = frame.tb_next
    return frames


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]}{CUT}{text[-half:]}"
