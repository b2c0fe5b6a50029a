"""A ledger's file as it is used: opened at first use, on one thread, closed once.

What runs here is synchronous and runs on the thread of `Worker`, so no event loop waits for a
disk and one connection is never used by two.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from agent_magics.core.errors import StorageError
from agent_magics.ledger.sqlite import errors, files
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.locks import LeaseLocks
from agent_magics.ledger.sqlite.opening import open_ledger
from agent_magics.ledger.sqlite.worker import Worker

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0


class Database:
    """The file at `location`, a path or an `sqlite:///` URL; may be used from any event loop.

    `busy_timeout_s`: how long another program's lock is waited for.
    """

    def __init__(self, location: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = files.path_of(location)
        self.locks = LeaseLocks(self.path, timeout_s=busy_timeout_s)
        self.warnings: tuple[str, ...] = ()
        self._busy_timeout_s = busy_timeout_s
        self._worker = Worker("agent-magics-ledger")
        self._connection: LedgerConnection | None = None
        self._is_closed = False
        self._pid = os.getpid()
        _watch_forks(self)

    async def run(self, work: Callable[[], T], *, undo: Callable[[T], object] | None = None) -> T:
        """Run `work` on the database's thread; `undo` gets its result if we are cancelled.

        Raises `StorageError` in a forked process and once the database is closed.
        """
        if os.getpid() != self._pid:
            raise StorageError(
                f"The ledger can't be used in a forked process; use the session in the process"
                f" that opened it (pid {self._pid})."
            )
        if self._is_closed:
            raise self._closed()
        return await self._worker.run(work, undo=undo)

    async def on_connection(self, work: Callable[[LedgerConnection], T]) -> T:
        """Run `work` with the connection, on the database's thread."""
        return await self.run(lambda: work(self.connection()))

    async def aclose(self, *, first: Callable[[], None] | None = None) -> None:
        """Run `first` and close the file; a second time does nothing."""
        if self._is_closed or os.getpid() != self._pid:
            return
        with suppress(RuntimeError):  # another task closed it meanwhile
            await self._worker.run(lambda: self._close(first))
        self._worker.stop()

    def connection(self) -> LedgerConnection:
        """Return the connection, opened at first use; on the database's thread only."""
        if self._is_closed:
            raise self._closed()
        if self._connection is None:
            network = files.network_type_of(self.path)
            if network is not None:
                self._check_network(network)
            self._connection = open_ledger(
                self.path, self.locks, busy_timeout_s=self._busy_timeout_s, network=network
            )
        return self._connection

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the store's lock; raise `StorageError` where somebody keeps it too long."""
        try:
            with self.locks.exclusive():
                yield
        except errors.FOREIGN as error:
            raise errors.storage_error(error, self.path) from error

    def _check_network(self, network: str) -> None:
        """Refuse a network file system whose locks don't hold; else warn of it."""
        with self.exclusive():
            is_trusted = self.locks.are_trusted()
        if not is_trusted:
            raise StorageError(
                f"The ledger at {self.path} is on a network file system ({network}) whose locks"
                " don't work between processes. Choose a local place with AgentMagics.store."
            )
        warning = (
            f"The ledger at {self.path} is on a network file system ({network}): writing is"
            " slower there, and a local place (AgentMagics.store) is safer."
        )
        self.warnings = (warning,)

    def _closed(self) -> StorageError:
        return StorageError(f"The ledger at {self.path} is closed here; open it again.")

    def _close(self, first: Callable[[], None] | None) -> None:
        if first is not None:
            first()
        self._is_closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.abandon()


def _watch_forks(database: Database) -> None:
    """Keep a forked child from ever closing what it inherited."""
    if not hasattr(os, "register_at_fork"):
        return
    # Callbacks can't be taken back: a strong reference would keep every database for good.
    kept = weakref.ref(database)

    def in_child() -> None:
        inherited = kept()
        if inherited is not None:
            inherited._abandon()  # noqa: SLF001  the other half of this class

    os.register_at_fork(after_in_child=in_child)
