"""A ledger that is only read, for frames: nothing is created, migrated, locked or kept open.

Another kernel may be writing it; each reading sees one state throughout.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy
from sqlalchemy import select
from sqlalchemy.pool import StaticPool

from agent_magics.core.errors import StorageError
from agent_magics.core.memories import Memory
from agent_magics.core.ports import SessionState
from agent_magics.core.values import Value
from agent_magics.ledger.sqlite import errors, files, schema
from agent_magics.ledger.sqlite.memories import every_memory
from agent_magics.ledger.sqlite.reading import session_state

_WAIT_S = 5.0
_ORDER = (schema.sessions.c.created_at, schema.sessions.c.session_id)


class _Opened(Value):
    raw: sqlite3.Connection
    core: sqlalchemy.Connection


class Archive:
    """Everything in one SQLite ledger, for frames.

    `location` is a path or an `sqlite:///` URL. With `is_optional`, a file that isn't there is a
    store without sessions. Every reading may raise `StorageError`.
    """

    def __init__(self, location: Path | str, *, is_optional: bool = False) -> None:
        self.path = files.path_of(location)
        self._is_optional = is_optional

    def sessions(self) -> Iterator[SessionState]:
        """Read one session after the other, the oldest first."""
        if self._is_optional and not self.path.exists():
            return
        with self._open() as opened:
            names = opened.core.execute(select(schema.sessions.c.session_id).order_by(*_ORDER))
            for session_id in names.scalars().all():
                state = session_state(opened, session_id)
                assert state is not None  # one transaction sees one state
                yield state

    def memories(self) -> tuple[Memory, ...]:
        """Read what lasts across sessions, of all namespaces."""
        if self._is_optional and not self.path.exists():
            return ()
        with self._open() as opened:
            return every_memory(opened.core)

    @contextmanager
    def _open(self) -> Iterator[_Opened]:
        if not self.path.is_file():
            raise StorageError(f"There is no ledger at {self.path}; check the path.")
        try:
            with closing(self._connected()) as raw:
                engine = sqlalchemy.create_engine(
                    "sqlite://",
                    creator=lambda: raw,
                    poolclass=StaticPool,
                    isolation_level="AUTOCOMMIT",
                    pool_reset_on_return=None,
                )
                with engine.connect() as core:
                    yield _Opened(raw=raw, core=core)
                engine.dispose()
        except errors.FOREIGN as error:
            raise errors.storage_error(error, self.path) from error

    def _connected(self) -> sqlite3.Connection:
        """Connect and begin to read."""
        address = self.path.as_uri()
        try:
            return self._begun(f"{address}?mode=ro")
        except sqlite3.OperationalError:
            # Reading a WAL database makes two files beside it, which a read-only mount refuses.
            # `immutable` needs none, and promises that nobody writes: that is so only of a ledger
            # whose log is empty.
            wal = self.path.with_name(f"{self.path.name}-wal")
            if wal.exists() and wal.stat().st_size:
                raise
            return self._begun(f"{address}?immutable=1")

    def _begun(self, address: str) -> sqlite3.Connection:
        raw = sqlite3.connect(
            address, uri=True, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            raw.execute("BEGIN")
            self._check(raw)
        except BaseException:  # set right whatever ended it, and raised again
            raw.close()
            raise
        return raw

    def _check(self, raw: sqlite3.Connection) -> None:
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master")}
        if schema.VERSION_TABLE not in tables:
            raise errors.foreign_database(self.path)
        row = raw.execute(f"SELECT version_num FROM {schema.VERSION_TABLE}").fetchone()  # noqa: S608  our own name
        version = "" if row is None else str(row[0])
        if not version.isdecimal():
            raise errors.foreign_database(self.path)
        if int(version) > schema.SCHEMA_VERSION:
            raise errors.newer(self.path, version, schema.SCHEMA_VERSION)
        if int(version) < schema.FIRST_RELEASED:
            raise errors.unreleased(self.path, version)
