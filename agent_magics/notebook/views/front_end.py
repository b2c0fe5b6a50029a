"""The way of live views to a page: their modules, and hearing their clicks while a cell runs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from importlib import resources
from typing import Any

_HEARD = ("custom", "request_state")


def view_module(name: str) -> str:
    """Read a view's ES module: one text that imports nothing, for pages load it as a blob.

    It is bundled from `widgets/src` by `make views`.
    """
    modules = resources.files("agent_magics") / "static"
    return (modules / f"{name}.js").read_text(encoding="utf-8")


def new_anchor() -> str:
    """Make the class of the elements that a model's view is drawn in."""
    # Random: outputs of two sessions, or of a copied notebook, stand in one page and must not draw
    # into one another.
    return f"agent-magics-{secrets.token_hex(8)}"


def fill_its_place(widget: Any) -> None:
    """Let a view be as wide as a layout of ipywidgets has room for, and share a row evenly.

    By itself it would be as narrow as its text can be broken: next to nothing.
    """
    widget.layout.width, widget.layout.min_width = "100%", "0"


def close_whole(widget: Any, close: Callable[[], None]) -> None:
    """Close a widget by its own `close`, and the model of its layout, which that leaves behind.

    ipywidgets lets a closed widget be shown as nothing; ours still have their static HTML.
    """
    if widget.comm is None:
        return
    layout = widget.layout
    close()
    layout.close()
    vars(widget).pop("_repr_mimebundle_", None)


def answer_while_busy(widget: Any) -> None:
    """Let clicks be heard on the subshell that they came on, while a cell runs.

    ipykernel 7.4 would send them to the shell that last sent on the comm, which is busy; older
    ones have no such choice. Private, so looked for and covered by a test.
    """
    comm = widget.comm
    comm.on_msg(lambda message: _hear(widget, message))
    end_no_cell(comm)
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, default: default  # noqa: SLF001 - see above


def _hear(widget: Any, message: dict[str, Any]) -> None:
    """Pass on what pages say to us; none of them sets a trait, an anchor or a module of ours."""
    data = message.get("content", {}).get("data")
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return  # it couldn't be answered
    # A saved page may be anybody's. ipywidgets would let it set any trait, the module that is run
    # among them.
    if isinstance(data, dict) and data.get("method") in _HEARD:
        widget._handle_msg(message)  # noqa: SLF001 - ipywidgets' own way in


def end_no_cell(comm: Any) -> None:
    """Let messages be heard without the hooks that IPython runs around a cell.

    `comm` runs them for each message, on the thread that it came on: matplotlib's would show and
    close the figures that a cell is drawing on another one. Private, so looked for and covered by
    a test.
    """
    hear = getattr(comm, "_msg_callback", None)
    if hear is not None:
        comm.handle_msg = hear
