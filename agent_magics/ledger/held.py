"""Whether somebody holds a session, looked at without the lock's library: it is slow to import.

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
except ImportError:  # Windows: what a look can't tell is told at the first use
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True


def is_held(store: Path, session_id: str, epoch: int) -> bool:
    """Tell whether a living process holds a session; False where that can't be told now."""
    lease = lease_of(store, session_id, epoch)
    if not _HAS_LOCKS or not lease.exists():
        return False
    try:
        with _locked(door_of(store)):
            return _is_locked(lease)
    except OSError:
        return False


def _is_locked(path: Path) -> bool:
    try:
        with _locked(path):
            return False
    except BlockingIOError:
        return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that is there; `BlockingIOError` where somebody else does."""
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
