"""The lock files of a store: where they are, and whether somebody holds one.

Looked at without `filelock`, which is slow to import. Looking means trying to lock, so whoever
looks takes the store's lock first, as everybody does (`locks`): else the look itself would be
taken for an owner by somebody else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True


_NAME_LENGTH = 20  # hexadecimal digits: enough that no two sessions of a store meet


def store_lock_of(store: Path) -> Path:
    """Return the lock that everybody takes who opens or closes a session of a store."""
    return store.with_name(store.name + ".locks") / "store.lock"


def lease_lock_of(store: Path, session_id: str, epoch: int) -> Path:
    """Return the lock that the owner of a session at an epoch holds."""
    # A session's id may be any text, also one that no file system takes as a name.
    name = hashlib.sha256(session_id.encode()).hexdigest()[:_NAME_LENGTH]
    return store_lock_of(store).with_name(f"{name}.{epoch}.lock")


def is_held(store: Path, session_id: str, epoch: int) -> bool:
    """Return whether a living process, this one too, holds a session.

    False where the store's lock is taken just now: nobody waits for a look.
    """
    lease = lease_lock_of(store, session_id, epoch)
    if not lease.exists():
        return False
    try:
        with _locked(store_lock_of(store)):
            return is_locked(lease)
    except OSError:
        return False


def is_locked(path: Path) -> bool:
    """Return whether somebody holds a lock; for those who hold the store's lock."""
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
    # The same flock that `filelock` takes: the kernel drops it when its owner dies.
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
