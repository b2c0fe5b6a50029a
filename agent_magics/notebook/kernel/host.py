"""Facts about where we run: which kernel, which notebook, which cell, and whether anybody is there.

Everything here reads private or semi-private state of IPython and ipykernel; each reading has a
capability test, and each answers None where the state isn't there.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import sys
from pathlib import Path, PurePath
from typing import Any, Protocol, cast

from IPython import get_ipython

from agent_magics.core.events import Origin

DIGEST_CHARACTERS = 16


class _ParentMessage(Protocol):
    def get_parent(self) -> dict[str, Any]: ...


def in_kernel() -> bool:
    """Return whether a Jupyter kernel runs us, in contrast to a terminal."""
    return hasattr(_shell(), "kernel")


def somebody_there() -> bool:
    """Return whether the running request may be answered by a person.

    In a kernel the request says so (`allow_stdin`, false in nbclient); in a terminal, whether
    stdin is one.
    """
    if in_kernel():
        # nbclient, papermill and nbval say no; front ends with a person say yes.
        return bool(_parent().get("content", {}).get("allow_stdin", False))
    return sys.stdin is not None and sys.stdin.isatty()


def input_is_ours() -> bool:
    """Return whether `input()` asks the person: in a kernel only while a cell runs."""
    kernel = getattr(_shell(), "kernel", None)
    return kernel is None or getattr(builtins.input, "__self__", None) is kernel


def request_id() -> str:
    """Name the request that is answered, as the context has it; the same for all in a terminal."""
    return str(_parent().get("header", {}).get("msg_id", "")) if in_kernel() else ""


def cell_origin() -> Origin | None:
    """Name the cell that runs, by its id (where the front end sends one) and its source.

    None in a terminal, where no cell can be run again.
    """
    if not in_kernel():
        return None
    parent = _parent()
    source = parent.get("content", {}).get("code")
    if not isinstance(source, str):
        return None
    # JupyterLab and Notebook 7 send it; nbclient and consoles don't.
    cell_id = (parent.get("metadata") or {}).get("cellId")
    return Origin(
        cell_id=cell_id if isinstance(cell_id, str) else None,
        cell_digest=hashlib.sha256(source.encode(errors="replace")).hexdigest()[:DIGEST_CHARACTERS],
    )


def may_draw() -> bool:
    """Return whether the front end of the cell that runs may draw live views in its outputs.

    JupyterLab and Notebook 7 tell the cell's id, consoles don't; VS Code and Colab, which are known
    by what they leave in the kernel, keep outputs where our scripts can't reach them.
    """
    origin = cell_origin()
    names = getattr(_shell(), "user_ns", {})
    is_foreign = "__vsc_ipynb_file__" in names or "google.colab" in sys.modules
    return origin is not None and origin.cell_id is not None and not is_foreign


def leave_display_hook() -> None:
    """End what IPython's display hook began, where an error is about to leave it.

    ipykernel 7.4 would take later errors for the hook's, and cells that await for failed ones.
    """
    hook = getattr(_shell(), "displayhook", None)
    if getattr(hook, "msg", None) is not None:  # ipykernel's, while the hook runs
        cast("Any", hook).finish_displayhook()


def execution_token() -> str:
    """Name the execution that runs: the same within it, another in the next."""
    return f"{request_id()}:{getattr(_shell(), 'execution_count', 0)}"


def kernel_id() -> str | None:
    """Return the Jupyter kernel's id, which a restart keeps (docs/decisions.md#46).

    It is in the connection file's name.
    """
    if not in_kernel():
        return None
    from ipykernel.connect import get_connection_file  # noqa: PLC0415 - kernels only

    try:
        stem = PurePath(get_connection_file()).stem
    except RuntimeError:  # a kernel without an application, as in tests of others
        return None
    return stem.removeprefix("kernel-") or None


def notebook_path() -> str | None:
    """Return the notebook's path where the server or VS Code tells it; only `.ipynb` is one."""
    shell = _shell()
    told = (
        getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__"),
        os.environ.get("JPY_SESSION_NAME"),
    )
    for path in told:
        if isinstance(path, str) and path.endswith(".ipynb"):
            return path
    return None


def notebook_folder() -> Path:
    """Return the folder that the notebook is in, where it is known, else where Python is now."""
    told = notebook_path()
    folder = Path(told).parent if told else Path()
    return folder if folder.is_absolute() and folder.is_dir() else Path.cwd()


def _shell() -> object | None:
    return cast("object | None", get_ipython())


def _parent() -> dict[str, Any]:
    """Read the message that this execution answers; empty where there is none."""
    shell = _shell()
    if not hasattr(shell, "get_parent"):
        return {}
    return cast("_ParentMessage", shell).get_parent() or {}
