"""The SQLite backend: what `ledger.backends` asks for; SQLAlchemy is imported at first use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_magics.core.catalog import Stores
from agent_magics.ledger.sqlite.catalog import SqliteCatalog
from agent_magics.ledger.sqlite.files import path_of

if TYPE_CHECKING:  # it imports SQLAlchemy
    from agent_magics.ledger.sqlite.archive import Archive


class SqliteBackend:
    """Ledgers in SQLite files; a location is a path or an `sqlite:///` URL."""

    def check(self, location: Path | str) -> None:
        """Raise `InputValidation` where the location names no file."""
        path_of(location)

    def catalog(self, location: Path | str) -> SqliteCatalog:
        """Return what can be read of a file before it is opened."""
        return SqliteCatalog(path_of(location))

    def stores(self, location: Path | str) -> Stores:
        """Return both storages, on one connection; the file is opened at first use."""
        # They import SQLAlchemy, which is slow.
        from agent_magics.ledger.sqlite.memories import SqlMemoryStore  # noqa: PLC0415
        from agent_magics.ledger.sqlite.store import SqlStore  # noqa: PLC0415

        sessions = SqlStore(location)
        return Stores(sessions=sessions, memories=SqlMemoryStore(sessions))

    def archive(self, location: Path | str, *, is_optional: bool) -> Archive:
        """Return a reader that makes, migrates and locks nothing."""
        # It imports SQLAlchemy, which is slow.
        from agent_magics.ledger.sqlite.archive import Archive  # noqa: PLC0415

        return Archive(location, is_optional=is_optional)
