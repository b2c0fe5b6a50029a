"""Which backend keeps the store at a location: the one place that maps a URL's scheme to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from agent_magics.core.catalog import SessionCatalog, Stores
from agent_magics.core.memories import Memory
from agent_magics.core.ports import SessionState
from agent_magics.ledger.locations import scheme_of, unsupported
from agent_magics.ledger.sqlite.backend import SqliteBackend


class StoredData(Protocol):
    """Everything in a store, read and never written; reading may raise `StorageError`."""

    def sessions(self) -> Iterator[SessionState]:
        """Read one session after the other, the oldest first."""
        ...

    def memories(self) -> tuple[Memory, ...]:
        """Read what lasts across sessions, of all namespaces."""
        ...


class Backend(Protocol):
    """What keeps stores of one scheme. Each method raises `InputValidation` on a bad location.

    Making one is cheap: nothing is opened, and what is slow to import comes with the first use.
    """

    def check(self, location: Path | str) -> None:
        """Raise `InputValidation` where this can be no store."""
        ...

    def catalog(self, location: Path | str) -> SessionCatalog: ...

    def stores(self, location: Path | str) -> Stores: ...

    def archive(self, location: Path | str, *, is_optional: bool) -> StoredData: ...


_BACKENDS: dict[str, Backend] = {
    "sqlite": SqliteBackend(),
}


def backend_of(location: Path | str) -> Backend:
    """Return the backend that a path or URL names; raise `InputValidation` where there is none."""
    backend = _BACKENDS.get(scheme_of(location))
    if backend is None:
        raise unsupported(location)
    return backend


def check_location(location: Path | str) -> None:
    """Raise `InputValidation` where a path or URL can be no store."""
    backend_of(location).check(location)


def open_catalog(location: Path | str) -> SessionCatalog:
    """Return the catalog of the store at a path or URL; raise `InputValidation` on a bad one."""
    return backend_of(location).catalog(location)


def open_stores(location: Path | str) -> Stores:
    """Return the storages at a path or URL, not yet open; raise `InputValidation` on a bad one."""
    return backend_of(location).stores(location)


def open_archive(location: Path | str, *, is_optional: bool = False) -> StoredData:
    """Return a reader of everything in a store, for frames.

    With `is_optional`, a store that isn't there has no sessions; else reading it raises
    `StorageError`. Raises `InputValidation` on a bad location.
    """
    return backend_of(location).archive(location, is_optional=is_optional)
