"""How a command's result is shown: a widget where one can be drawn, else static HTML and text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from IPython import display as shown

from agent_magics.notebook.kernel.host import in_kernel, somebody_there
from agent_magics.notebook.text.html_table import still
from agent_magics.notebook.text.lines import columns, fitted

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
        say(text)
    elif widget is not None and somebody_there():
        display(widget())
    else:
        display({"text/plain": text, "text/html": still(html)}, raw=True)


def complain(sentence: str) -> None:
    """Print the sentence of an error, where errors go."""
    print(fitted(sentence, columns()), file=sys.stderr)  # noqa: T201 - it is all that is shown


def say(text: str, *, as_it_is: bool = False) -> None:
    """Print what was done; in a terminal its lines are broken, unless they are `as_it_is`."""
    print(text if as_it_is else fitted(text, columns()))  # noqa: T201 - it is a magic's output
