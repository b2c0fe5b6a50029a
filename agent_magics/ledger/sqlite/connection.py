"""The one connection to a ledger: how it is configured, and how transactions begin and end.

Used on the database's own thread only. The driver is in autocommit mode and every transaction is
begun and ended here by name, so that SQLAlchemy and raw statements share it.
"""

from __future__ import annotations

import ctypes
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import sqlalchemy
from sqlalchemy.pool import StaticPool

from agent_magics.ledger.sqlite import errors, files

T = TypeVar("T")

# SQLite's own wait is short and ours is long: SQLite polls at fixed steps, in which one of several
# writers may never get its turn.
_DRIVER_WAIT_S = 0.05
_LONGEST_PAUSE_S = 0.02
_MAX_IDLE_WAL_BYTES = 16 * 1024 * 1024


class LedgerConnection:
    """An open ledger: `core` for SQLAlchemy Core, `raw` for the statements that must be fast."""

    def __init__(self, path: Path, *, busy_timeout_s: float, network: str | None) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._is_wal = network is None
        self._identity = files.prepare(path)
        self.raw = sqlite3.connect(
            path, timeout=_DRIVER_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._configure()
        except BaseException:  # set right whatever ended it, and raised again
            self.raw.close()
            raise
        engine = sqlalchemy.create_engine(
            "sqlite://",
            creator=lambda: self.raw,
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
        )
        self.core = engine.connect()

    def _configure(self) -> None:
        # With a write-ahead log readers (frames, another notebook's catalog) and the writer don't
        # wait for each other. On a network file system it can't work, see `files.NETWORK_TYPES`.
        mode = "wal" if self._is_wal else "delete"
        (now,) = self._patiently(lambda: self.raw.execute("PRAGMA journal_mode").fetchone())
        if now != mode:
            self._patiently(lambda: self.raw.execute(f"PRAGMA journal_mode={mode}").fetchone())
        # FULL waits for the disk at every commit. WAL's default, NORMAL, may lose the last commits
        # in a power cut, and an answer that was paid for is not to be lost (docs/decisions.md#62).
        self.raw.execute("PRAGMA synchronous=FULL")
        # The log is never shortened by itself: one huge turn would keep its size on disk for good.
        self.raw.execute(f"PRAGMA journal_size_limit={_MAX_IDLE_WAL_BYTES}")

    @contextmanager
    def write(self, *, lost: str = errors.NOTHING_RECORDED) -> Iterator[None]:
        """Open a transaction that may write; commit it, or roll it back after any exception.

        Raises `StorageError`, whose sentence says what is `lost`.
        """
        # IMMEDIATE takes the write lock now. A plain BEGIN would take it at the first write, after
        # reads whose state another process may have changed, and that can only fail.
        yield from self._transaction("BEGIN IMMEDIATE", lost)

    @contextmanager
    def read(self) -> Iterator[None]:
        """Open a transaction that sees one state of the store throughout."""
        yield from self._transaction("BEGIN", errors.NOTHING_RECORDED)

    @contextmanager
    def unsynced(self) -> Iterator[None]:
        """Commit without waiting for the disk, for drafts.

        In WAL mode that risks the last commits in a power cut, never the file; a kill loses
        nothing. With a rollback journal it would risk the file, so there it changes nothing.
        """
        if not self._is_wal:
            yield
            return
        self.raw.execute("PRAGMA synchronous=NORMAL")
        try:
            yield
        finally:
            self.raw.execute("PRAGMA synchronous=FULL")

    def close(self) -> None:
        """Close for good."""
        self.core.close()
        self.core.engine.dispose()
        self.raw.close()

    def abandon(self) -> None:
        """Never close: in a forked child, closing would touch the parent's locks and journal."""
        # One reference too many keeps Python from finalizing the connection at exit.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.raw))

    def _transaction(self, begin: str, lost: str) -> Iterator[None]:
        # SQLite goes on writing into a file that was deleted or replaced, and all of it is lost.
        if files.identity_of(self._path) != self._identity:
            raise errors.gone(self._path)
        try:
            self._patiently(lambda: self.raw.execute(begin))
            try:
                yield
                self._patiently(lambda: self.raw.execute("COMMIT"))
            except BaseException:  # set right whatever ended it, and raised again
                with suppress(sqlite3.Error):
                    if self.raw.in_transaction:
                        self.raw.execute("ROLLBACK")
                raise
        except errors.FOREIGN as error:
            raise errors.storage_error(error, self._path, lost=lost) from error

    def _patiently(self, act: Callable[[], T]) -> T:
        """Try again while another process writes, at uneven intervals so that nobody starves."""
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if not errors.is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(random.uniform(0.001, _LONGEST_PAUSE_S))  # noqa: S311  jitter, no secret
