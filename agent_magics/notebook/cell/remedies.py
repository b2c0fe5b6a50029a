"""What to do here about a request that doesn't fit: an error's sentence, remedies behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from agent_magics.core.errors import (
    AgentError,
    FixedContextExceedsBudget,
    InternalPanic,
    NothingHelped,
)
from agent_magics.notebook.kernel.bridge import FailedCell, StoppedCell
from agent_magics.notebook.views.session_text import part_label

MAKE_ROOM = (
    "%compact summarises older turns, %agent undo takes the last one out of the view, and"
    " %slot new NAME begins without them."
)
OF_PARTS = {
    "system": "shorten the slot's system prompt",
    "tools": "delete functions that the agent doesn't need, or put _ before their names",
    "skills": "use fewer skills",
    "memories": "delete facts of session.memory",
    "dynamic": "let plugins and other sources add less (%context --full shows what they add)",
    "user_input": "send less of it, as the head of a frame",
    "media": "send fewer or smaller images",
}
LEAST_SHARE = 0.1  # of what can't shrink; less of it isn't worth a word


def sentence_of(error: AgentError) -> str:
    """Write what a cell that failed says, on one line."""
    match error:
        case FixedContextExceedsBudget(tokens=tokens):
            return " ".join([error.message, *_for_parts(tokens)])
        case NothingHelped():
            return f"{error.message} {MAKE_ROOM}"
        case _:
            return error.message


def _for_parts(tokens: Mapping[str, int]) -> list[str]:
    """Say for each large part what makes it smaller, the largest first."""
    least = sum(tokens.values()) * LEAST_SHARE
    large = sorted((part for part in tokens.items() if part[1] >= least), key=lambda part: -part[1])
    return [
        f"{part_label(name).capitalize()}: {OF_PARTS[name]}."
        for name, count in large
        if count and name in OF_PARTS
    ]


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the cell with the status error and an error of ours as its one sentence.

    So ends a cell that was interrupted where nothing waited: a value's repr may take its time.
    A fault inside us keeps its whole traceback.
    """
    try:
        yield
    except InternalPanic:
        raise
    except AgentError as error:
        raise FailedCell(sentence_of(error)) from None
    except KeyboardInterrupt:
        raise StoppedCell("stopped") from None
