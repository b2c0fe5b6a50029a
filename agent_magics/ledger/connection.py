"""The one connection a store holds: how it is opened, and how a transaction begins and ends.

Used on the store's own thread only. The driver connection is in autocommit mode and every
transaction is begun and ended here by name, so SQLAlchemy and raw statements share it.
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

from agent_magics.core.errors import StorageError
from agent_magics.ledger import faults, place, schema
from agent_magics.ledger.lease import Locks

T = TypeVar("T")

_DRIVER_WAIT_S = 0.05  # SQLite's own wait, before ours
_LONGEST_PAUSE_S = 0.02
_KEPT_WAL_BYTES = 16 * 1024 * 1024


class HeldConnection:
    """An open ledger: `core` for SQLAlchemy Core, `raw` for the statements that must be fast."""

    def __init__(self, path: Path, *, busy_timeout_s: float, network: str | None) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._is_wal = network is None
        self._identity = place.prepare(path)
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
        mode = "wal" if self._is_wal else "delete"
        (now,) = self._patiently(lambda: self.raw.execute("PRAGMA journal_mode").fetchone())
        if now != mode:
            self._patiently(lambda: self.raw.execute(f"PRAGMA journal_mode={mode}").fetchone())
        self.raw.execute("PRAGMA synchronous=FULL")
        self.raw.execute(f"PRAGMA journal_size_limit={_KEPT_WAL_BYTES}")

    @contextmanager
    def write(self, *, lost: str = faults.NOTHING_RECORDED) -> Iterator[None]:
        """Do all of it or nothing, with the right to write from the start.

        Raises `StorageError` with `lost` in its sentence; after any exception nothing changed.
        """
        yield from self._transaction("BEGIN IMMEDIATE", lost)

    @contextmanager
    def read(self) -> Iterator[None]:
        """See one state of the store throughout."""
        yield from self._transaction("BEGIN", faults.NOTHING_RECORDED)

    @contextmanager
    def unsynced(self) -> Iterator[None]:
        """Commit without waiting for the disk (drafts, D 62).

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
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.raw))

    def _transaction(self, begin: str, lost: str) -> Iterator[None]:
        if place.identity_of(self._path) != self._identity:
            raise faults.gone(self._path)
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
        except faults.FOREIGN as error:
            raise faults.storage_error(error, self._path, lost=lost) from error

    def _patiently(self, act: Callable[[], T]) -> T:
        """Try again while another process writes, at uneven intervals so that nobody starves."""
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if not faults.is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(random.uniform(0.001, _LONGEST_PAUSE_S))  # noqa: S311  jitter, no secret


def open_ledger(
    path: Path, locks: Locks, *, busy_timeout_s: float, network: str | None
) -> HeldConnection:
    """Open a ledger; make it, or bring it to our schema, under the store's lock (D 64).

    Raises `StorageError` on what is no ledger, a newer one, or a place that can't be used.
    """
    try:
        held = HeldConnection(path, busy_timeout_s=busy_timeout_s, network=network)
        try:
            if _version(held) != str(schema.SCHEMA_VERSION):
                with locks.door():
                    _bring_up(held, path)
        except BaseException:  # set right whatever ended it, and raised again
            held.close()
            raise
    except faults.FOREIGN as error:
        raise faults.storage_error(error, path) from error
    return held


def _version(held: HeldConnection) -> str | None:
    """Read the schema's version; None where the file has none."""
    names = {name for (name,) in held.raw.execute("SELECT name FROM sqlite_master")}
    if schema.VERSION_TABLE not in names:
        return None if not names else ""
    row = held.raw.execute(f"SELECT version_num FROM {schema.VERSION_TABLE}").fetchone()  # noqa: S608  our own name
    return "" if row is None else str(row[0])


def _bring_up(held: HeldConnection, path: Path) -> None:
    """Make or migrate the tables; whoever waited at the door finds it done."""
    with held.write():
        version = _version(held)
        if version == str(schema.SCHEMA_VERSION):
            return
        if version is None:
            _create(held)
        else:
            _migrate(held, path, version)


def _create(held: HeldConnection) -> None:
    schema.metadata.create_all(held.core)
    held.core.execute(schema.schema_version.insert(), {"version_num": str(schema.SCHEMA_VERSION)})


def _migrate(held: HeldConnection, path: Path, version: str) -> None:
    if not version.isdecimal():
        raise faults.foreign_database(path)
    if int(version) > schema.SCHEMA_VERSION:
        raise faults.newer(path, version, schema.SCHEMA_VERSION)
    # Alembic is slow to import and needed once in a schema's life.
    from agent_magics.ledger.migrations.upgrade import upgrade  # noqa: PLC0415

    try:
        upgrade(held.core)
    except faults.FOREIGN:
        raise
    except Exception as error:
        # Alembic has errors of its own for each kind of trouble; the file is as it was.
        raise StorageError(
            f"The ledger at {path} could not be brought from schema {version} to"
            f" {schema.SCHEMA_VERSION}: {error}. It is unchanged; please report this."
        ) from error
