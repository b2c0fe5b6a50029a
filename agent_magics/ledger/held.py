"""Whether somebody holds a lock, looked at without the lock's library: it is slow to import.

The locks are those of `lease`: whoever looks passes the store's door as everybody does, so that
looking never makes an owner seem to be there to somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_magics.ledger.place import door_of, lease_of

try:
    import fcntl
except ImportError:  # Windows
    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True


def is_held(store: Path, session_id: str, epoch: int) -> bool:
    """Tell whether a living process, this one too, holds a session.

    False where that can't be told now.
    """
    lease = lease_of(store, session_id, epoch)
    if not lease.exists():
        return False
    try:
        with _locked(door_of(store)):
            return is_locked(lease)
    except OSError:
        return False


def is_locked(path: Path) -> bool:
    """Tell whether somebody holds a lock; for those who have passed the door."""
    try:
        with _locked(path):
            return False
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that is there; `BlockingIOError` where somebody else does."""
    if not _HAS_FLOCK:
        with _locked_by_library(path):
            yield
        return
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextmanager
def _locked_by_library(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout  # noqa: PLC0415 - slow, and only where there is no flock

    if not path.exists():
        raise FileNotFoundError(path)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise BlockingIOError from error
    try:
        yield
    finally:
        lock.release()
