"""Files that an export writes: never over another one without a word, never half."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from agent_magics.core.errors import InputValidation, StorageError

WriteBytes = Callable[[BinaryIO], object]


def save(name: str, write: WriteBytes, *, overwrites: bool) -> Path:
    """Write a file whole, or not at all; give its path. Only its owner can read it.

    Raises `InputValidation` where there is a file of that name already and `overwrites` doesn't
    hold, or where the name can't be one; `StorageError` where writing fails.
    """
    path = _path(name)
    if path.is_dir():
        raise InputValidation(f"{name} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise InputValidation(f"There is no folder {path.parent} to write {path.name} into.")
    if path.exists() and not overwrites:
        raise _taken(name)
    try:
        # Written beside and renamed: a full disk or a crash leaves the old file, or none, and never
        # half of one.
        with _beside(path) as (file, temporary):
            write(file)
            file.close()
            if overwrites:
                temporary.replace(path)
            else:
                _claim(temporary, path, name)
    except OSError as error:
        raise StorageError(
            f"{name} can't be written: {error.strerror or error}. Nothing was changed."
        ) from error
    return path


def _path(name: str) -> Path:
    if not name.strip() or "\0" in name:
        raise InputValidation(f"{name!r} names no file.")
    return Path(name).expanduser()


def _taken(name: str) -> InputValidation:
    return InputValidation(
        f"There is a file {name} already; --force (in Python overwrites=True) writes over it."
    )


@contextmanager
def _beside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a file in the same folder; it is gone afterwards, unless it was renamed."""
    # In the same folder, as a rename between file systems is a copy, which can fail half-way.
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, Path(name)
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _claim(temporary: Path, path: Path, name: str) -> None:
    """Rename where nothing stands, also where somebody put a file meanwhile."""
    try:
        # A rename would replace what somebody put there since we looked; a link fails.
        os.link(temporary, path)
    except FileExistsError as error:
        raise _taken(name) from error
    except OSError:  # a file system without links
        if path.exists():
            raise _taken(name) from None
        temporary.replace(path)
