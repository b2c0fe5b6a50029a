"""The kernel's tools together, made once for a shell and offered as its settings say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.kernel_tools.cells import cell_tools
from agent_magics.notebook.kernel_tools.names import Names
from agent_magics.notebook.kernel_tools.reach import Reach
from agent_magics.notebook.kernel_tools.run_python import run_python_tool
from agent_magics.notebook.kernel_tools.variables import variable_tools
from agent_magics.notebook.sharing import Share, scrubbed
from agent_magics.tools.files import FileRules, file_tools
from agent_magics.tools.folder import Folder
from agent_magics.tools.schema import FunctionTool

Tools = tuple[FunctionTool[..., Any], ...]


def kernel_tools(
    shell: InteractiveShell, reach: Callable[[], Reach], root: Path
) -> Callable[[], Tools]:
    """Give a source of tools: all of them, or none where they are turned off.

    `reach` is asked anew at each call, from any thread. `root`: the notebook's folder.
    """
    namespace: dict[str, Any] = shell.user_ns
    names = Names(namespace, getattr(shell, "user_ns_hidden", {}))

    def share() -> Share:
        return reach().share

    rules = FileRules(
        folder=lambda: Folder(root, reach().folders),
        may_read=lambda: share() == "sample",
        shown=lambda text: scrubbed(text, namespace),
    )
    made: Tools = (
        run_python_tool(shell, share),
        *variable_tools(names, share),
        *cell_tools(shell, share),
        *file_tools(rules),
    )
    return lambda: made if reach().has_tools else ()
