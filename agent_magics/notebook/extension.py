"""The extension in a shell: loaded, found, taken out again."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.errors import AgentError
from agent_magics.notebook.binding.notebook_session import NotebookSession
from agent_magics.notebook.cell.remedies import one_sentence
from agent_magics.notebook.kernel.printing import say
from agent_magics.notebook.magics import AgentMagics


def load(shell: InteractiveShell) -> None:
    """Load the extension into a shell and greet; nothing happens where it is loaded already."""
    if loaded(shell) is not None:
        return
    magics = AgentMagics(shell)
    magics.attach()
    with one_sentence():
        say(magics.notebook.greeting())


def unload(shell: InteractiveShell) -> None:
    """Take the extension out of a shell; nothing happens where it isn't loaded."""
    magics = loaded(shell)
    if magics is not None:
        magics.detach()


def loaded(shell: InteractiveShell | None) -> AgentMagics | None:
    """Find the loaded magics of a shell."""
    manager = getattr(shell, "magics_manager", None)
    found = None if manager is None else manager.registry.get(AgentMagics.__name__)
    return found if isinstance(found, AgentMagics) else None


def notebook_session_of(shell: InteractiveShell | None) -> NotebookSession:
    """Return what a shell's loaded magics use; raise `AgentError` where they aren't loaded."""
    magics = loaded(shell)
    if magics is None:
        raise AgentError("No notebook session here: run %load_ext agent_magics first.")
    return magics.notebook
