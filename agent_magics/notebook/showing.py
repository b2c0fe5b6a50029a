"""How a command's result is shown: a widget where one can be drawn, else static HTML and text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from IPython import display as shown

from agent_magics.notebook.host import in_kernel, somebody_there

# IPython's display has no types; strict mypy wants them of every call.
_display: Any = shown.display


def display(what: object, **options: Any) -> Any:
    """Display an object, or (`raw=True`) a bundle of data by MIME type."""
    return _display(what, **options)


def show(*, text: str, html: str, widget: Callable[[], object] | None = None) -> None:
    """Show one view.

    `widget` is asked only where somebody may see it; with nobody there (nbclient) the saved output
    is static, in a terminal it is plain text.
    """
    if not in_kernel():
        print(text)  # noqa: T201 - a terminal shows views as text
    elif widget is not None and somebody_there():
        display(widget())
    else:
        display({"text/plain": text, "text/html": html}, raw=True)


def complain(sentence: str) -> None:
    """Print the sentence of an error, where errors go."""
    print(sentence, file=sys.stderr)  # noqa: T201 - the sentence is all that is shown of it


def say(line: str) -> None:
    """Print a line about what was done."""
    print(line)  # noqa: T201 - what a magic says is its output
