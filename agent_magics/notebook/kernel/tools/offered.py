"""The kernel's tools together, and what is new in it, offered as the settings say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.kernel.changes import KernelChanges
from agent_magics.notebook.kernel.sharing import ShareLevel, scrubbed
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.kernel.tools.cells import cell_tools
from agent_magics.notebook.kernel.tools.names import ShellNames
from agent_magics.notebook.kernel.tools.run_python import run_python_tool
from agent_magics.notebook.kernel.tools.variables import variable_tools
from agent_magics.tools.files import FileRules, file_tools
from agent_magics.tools.folder import Folder
from agent_magics.tools.schema import FunctionTool

if TYPE_CHECKING:
    from agent_magics.session.builder import AgentBuilder

Tools = tuple[FunctionTool[..., Any], ...]


def offer_kernel(
    builder: AgentBuilder,
    shell: InteractiveShell,
    kernel_access: Callable[[], KernelAccess],
    root: Path,
) -> None:
    """Let an agent see a kernel: its tools, and what is new in it with each turn.

    `kernel_access` is asked anew at each call, from any thread. `root`: the notebook's folder.
    """
    builder.register_tool_source(kernel_tools(shell, kernel_access, root))
    builder.register_reference_source(KernelChanges(names_of(shell), kernel_access))


def names_of(shell: InteractiveShell) -> ShellNames:
    """Return the person's names in a shell."""
    return ShellNames(shell.user_ns, getattr(shell, "user_ns_hidden", {}))


def kernel_tools(
    shell: InteractiveShell, kernel_access: Callable[[], KernelAccess], root: Path
) -> Callable[[], Tools]:
    """Return a source of tools: all of them, or none where they are turned off."""
    names = names_of(shell)

    def share() -> ShareLevel:
        return kernel_access().share

    rules = FileRules(
        folder=lambda: Folder(root, kernel_access().folders),
        may_read=lambda: share() == "sample",
        shown=lambda text: scrubbed(text, names.namespace),
    )
    made: Tools = (
        run_python_tool(shell, share),
        *variable_tools(names, share),
        *cell_tools(shell, share),
        *file_tools(rules),
    )
    return lambda: made if kernel_access().has_tools else ()
