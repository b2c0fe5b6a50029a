"""Where a kernel finds its session, and what the store tells of it before anything is opened."""

from __future__ import annotations

from pathlib import PurePath

from agent_magics.core.catalog import SessionOverview
from agent_magics.core.values import Value
from agent_magics.core.wording import quoted
from agent_magics.ledger.backends import open_catalog
from agent_magics.notebook.kernel.bridge import kernel_id, notebook_path, somebody_there
from agent_magics.notebook.text.shapes import counted
from agent_magics.settings import Settings


class NotebookKeys(Value):
    """Where this kernel may find its session: the name it was given, else what it is bound to."""

    named: str | None
    keys: tuple[str, ...]
    title: str | None

    @classmethod
    def here(cls, named: str | None) -> NotebookKeys:
        """Read the place from the kernel and its server."""
        path = notebook_path()
        title = PurePath(path).stem if path else None
        if named:
            return cls(named=named, keys=(f"session:{named}",), title=named)
        # A run by machine must give the same each time, so it begins with nothing.
        if not somebody_there():
            return cls(named=None, keys=(), title=title)
        kernel = kernel_id()
        keys = [f"kernel:{kernel}"] if kernel else []
        # After the kernel's id, which is surer: a renamed notebook keeps its kernel, and the server
        # tells it the old path.
        keys += [f"notebook:{path}"] if path else []
        return cls(named=None, keys=tuple(keys), title=title)


def glance(settings: Settings) -> SessionOverview | None:
    """Look at the session that is found here; None where it will be a new one. Opens nothing."""
    place = NotebookKeys.here(settings.session)
    return open_catalog(settings.store).overview(place.keys, session_id=place.named)


def session_line(settings: Settings, found: SessionOverview | None) -> str:
    """Say which session this notebook has, as a glance found it."""
    if found is None:
        name = NotebookKeys.here(settings.session).title
        return f'session "{name}" new' if name else "new session"
    name = found.title or found.session_id
    if found.is_held:
        return f'session "{name}" open in another kernel: %sessions take {quoted(found.name)}'
    counts = f"{counted(found.slots, 'slot')}, {counted(found.turns, 'turn')}"
    return f'session "{name}" resumed: {counts}, in {found.current_slot}'
