"""Errors of SQLite, SQLAlchemy, file locks and the system, translated to one `StorageError`."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import filelock
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_magics.core.errors import StorageError

FOREIGN = (sqlite3.Error, SQLAlchemyError, OSError, filelock.Timeout)

NOTHING_RECORDED = "Nothing was recorded"
ANSWER_NOT_RECORDED = "The answer above was shown but not recorded"

_PRIMARY = 0xFF  # SQLite's extended codes keep the primary one in the low byte
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_READONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_FAILED = "The ledger at {path} failed: {error}. {lost}."
_UNUSABLE = {
    sqlite3.SQLITE_CANTOPEN: (
        "The ledger at {path} can't be opened. Check that its folder exists and is writable, or"
        " choose another place with AgentMagics.store."
    ),
    sqlite3.SQLITE_NOTADB: (
        "{path} is not a ledger (not an SQLite database). Move it away, or choose another place"
        " with AgentMagics.store."
    ),
    sqlite3.SQLITE_CORRUPT: (
        "The ledger at {path} is damaged ({error}). {lost}: restore the file from a copy, or move"
        " it away and start a new one."
    ),
}
_READONLY_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)


def storage_error(
    error: BaseException, path: Path, *, lost: str = NOTHING_RECORDED
) -> StorageError:
    """Return the error that says what went wrong at `path` and what to do.

    `lost` is the sentence on what isn't in the ledger now.
    """
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    if isinstance(error, filelock.Timeout):
        return _locked(path)
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, path, lost)
    if isinstance(error, OSError):
        return _of_system(error, path, lost)
    return StorageError(f"The ledger at {path} failed: {error}. {lost}.")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether waiting may help."""
    return _code_of(error) in _BUSY


def gone(path: Path) -> StorageError:
    """Return the error for a file that was deleted or replaced under an open store."""
    return StorageError(
        f"The ledger at {path} was deleted or replaced while it was open here. Nothing more can be"
        " recorded in it: put the file back and restart the kernel, or restart for a new ledger."
    )


def newer(path: Path, version: str, ours: int) -> StorageError:
    """Return the error for a file that a later agent-magics made."""
    return StorageError(
        f"The ledger at {path} was made by a newer agent-magics (schema {version}, this one knows"
        f" {ours}). Upgrade agent-magics, or choose another place with AgentMagics.store."
    )


def foreign_database(path: Path) -> StorageError:
    """Return the error for a database that is not ours."""
    return StorageError(
        f"{path} is a database of another program. Choose another place with AgentMagics.store."
    )


def unreleased(path: Path, version: str) -> StorageError:
    """Return the error for a file of a schema that no release ever had."""
    return StorageError(
        f"The ledger at {path} is of an older agent-magics (schema {version}, before the first"
        " release), which can't be read any more. Move it away, or choose another place with"
        " AgentMagics.store."
    )


def _code_of(error: sqlite3.Error) -> int:
    # Missing where the driver itself complains.
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & _PRIMARY


def _of_sqlite(error: sqlite3.Error, path: Path, lost: str) -> StorageError:
    code = _code_of(error)
    if code in _BUSY:
        return _locked(path)
    if code == sqlite3.SQLITE_FULL:
        return _full(path, lost)
    if code in _READONLY:
        return _readonly(path, lost)
    return StorageError(_UNUSABLE.get(code, _FAILED).format(path=path, error=error, lost=lost))


def _of_system(error: OSError, path: Path, lost: str) -> StorageError:
    if error.errno in _FULL_ERRNOS:
        return _full(path, lost)
    if error.errno in _READONLY_ERRNOS:
        return _readonly(path, lost)
    return StorageError(f"The ledger at {path} failed: {error.strerror or error}. {lost}.")


def _locked(path: Path) -> StorageError:
    return StorageError(
        f"The ledger at {path} is locked by another program. {NOTHING_RECORDED}: close what has it"
        " open (a database viewer, a backup) and try again."
    )


def _full(path: Path, lost: str) -> StorageError:
    return StorageError(
        f"The ledger at {path} can't be written (disk full). {lost}:"
        " free space and run the cell again."
    )


def _readonly(path: Path, lost: str) -> StorageError:
    return StorageError(
        f"The ledger at {path} can't be written (the file or its folder is read-only). {lost}:"
        " make it writable, or choose another place with AgentMagics.store."
    )
