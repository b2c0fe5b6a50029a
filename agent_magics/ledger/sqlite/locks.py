"""One writer a session: file locks beside the store that die with their owner.

A session's owner at epoch N holds the lock file of epoch N, so the newest owner can always be told
from one that was overtaken: `take` goes on to epoch N + 1 and its file, whatever the old owner
still holds. Whoever opens, closes, takes or deletes a session, or makes or migrates the file,
holds the store's lock meanwhile. A heartbeat would do worse: one long call into C code starves its
thread, and the session would seem free (docs/decisions.md#44).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from agent_magics.core.ports import Lease
from agent_magics.ledger.sqlite.lock_files import is_locked, lease_lock_of, store_lock_of

_PRIVATE = 0o600
_SELF_TEST_S = 20.0
# Run by a second process: it must not get a lock that this one holds. Some network mounts grant
# every lock, or know only those of one process.
_PROBE = (
    "import sys, filelock\n"
    "try:\n filelock.FileLock(sys.argv[1]).acquire(blocking=False)\n"
    "except filelock.Timeout:\n sys.exit(3)\n"
)
_REFUSED = 3


class LeaseLocks:
    """The lock files of one store, in a folder named after it."""

    def __init__(self, store: Path, *, timeout_s: float) -> None:
        self._store = store
        self._folder = store_lock_of(store).parent
        self._timeout_s = timeout_s
        self._held: dict[str, tuple[int, FileLock]] = {}

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the store's lock: nobody else opens, takes or deletes meanwhile.

        Raises `filelock.Timeout` after `timeout_s`.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True, parents=True)
        lock = _lock(store_lock_of(self._store))
        lock.acquire(timeout=self._timeout_s, poll_interval=0.01)
        try:
            yield
        finally:
            lock.release()

    def is_held(self, lease: Lease) -> bool:
        """Return whether a living process, this one too, holds a lease."""
        return is_locked(self._path(lease))

    def lock(self, lease: Lease) -> FileLock:
        """Acquire the lock of a new lease, to be kept or undone."""
        lock = _lock(self._path(lease))
        lock.acquire(blocking=False)
        return lock

    def undo(self, lease: Lease, lock: FileLock) -> None:
        """Release the lock of a lease that is not kept."""
        self.forget(lease)
        lock.release()

    def keep(self, lease: Lease, lock: FileLock) -> None:
        """Hold a lease until it is dropped, in place of an older one of the session."""
        for older in self.leases:
            if older.session_id == lease.session_id:
                self.drop(older)
        self._held[lease.session_id] = (lease.epoch, lock)

    def holds(self, lease: Lease) -> bool:
        """Return whether this store holds that lease."""
        held = self._held.get(lease.session_id)
        return held is not None and held[0] == lease.epoch

    def drop(self, lease: Lease) -> None:
        """Release a lease, if this store holds it."""
        if self.holds(lease):
            self.undo(lease, self._held.pop(lease.session_id)[1])

    def forget(self, lease: Lease) -> None:
        """Remove the file of a lease that is over; nobody asks for it again."""
        with suppress(OSError):
            self._path(lease).unlink()

    @property
    def leases(self) -> tuple[Lease, ...]:
        """What this store holds."""
        held = self._held.items()
        return tuple(Lease(session_id=name, epoch=epoch) for name, (epoch, _) in held)

    def are_trusted(self) -> bool:
        """Lock here and in a second process; True where that one is refused."""
        lock = _lock(self._folder / "self-test.lock")
        with lock:
            probe = [sys.executable, "-c", _PROBE, str(self._folder / "self-test.lock")]
            done = subprocess.run(probe, timeout=_SELF_TEST_S, check=False, capture_output=True)  # noqa: S603  our own words
        return done.returncode == _REFUSED

    def _path(self, lease: Lease) -> Path:
        return lease_lock_of(self._store, lease.session_id, lease.epoch)


def _lock(path: Path) -> FileLock:
    # Not thread-local: what the worker took is let go wherever the store is closed.
    return FileLock(path, mode=_PRIVATE, thread_local=False)
