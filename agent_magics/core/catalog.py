"""What a notebook asks of a store beside the sessions that it has open, as protocols.

Two of them, since they cost differently: a catalog is read while the extension loads and on every
completion, so it opens nothing and imports no engine; the session index belongs to an open store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent_magics.core.ports import MemoryStorage, SessionStorage
from agent_magics.core.values import Value

NEWEST_NAMED = 100  # sessions whose names a catalog lists
NOTEBOOK_KEY = "notebook:"  # before a path, in a binding


class SessionOverview(Value):
    """What the load line says of a session; `turns` counts every turn ever begun in it.

    `model`: the one that was chosen for the session. `name`: how it would be typed, the id where
    others have its title. `is_held`: another process has it open.
    """

    session_id: str
    title: str | None
    slots: int
    turns: int
    current_slot: str
    model: str | None = None
    name: str = ""
    is_held: bool = False


class SessionCatalog(Protocol):
    """What can be read of a store before anything is opened.

    Every method is synchronous, takes milliseconds, writes nothing and raises nothing: a store
    that isn't there, is locked or can't be read has no sessions.
    """

    def overview(
        self, keys: Sequence[str], *, session_id: str | None = None
    ) -> SessionOverview | None:
        """Find the session of this id, else the one that the first of `keys` is bound to."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return the names of the 100 newest sessions: titles, ids where a title isn't alone."""
        ...

    def notebooks(self) -> dict[str, str]:
        """Return the path of the notebook that used each session last, by session id."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the size of each session's events in bytes, by session id."""
        ...


class NotebookStorage(SessionStorage, Protocol):
    """A session storage that also knows which notebook uses which session."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of this store, each one sentence; known once it is open."""
        ...

    async def bind(self, key: str, session_id: str) -> None:
        """Record the session that a kernel (`kernel:<id>`) or notebook (`notebook:<path>`) uses."""
        ...

    async def bound(self, key: str) -> str | None:
        """Return the session last bound to `key`; None where none is, or it was deleted."""
        ...

    async def held_sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that a living process, this one too, has open."""
        ...


class Stores(Value):
    """The two storages of one location; closing `sessions` closes both."""

    sessions: NotebookStorage
    memories: MemoryStorage


def name_of(session_id: str, title: str | None, *, same_title: int) -> str:
    """Return how a session would be typed: its title, unless other sessions have it too."""
    return title if title and same_title == 1 else session_id
