"""Bundles as files: the name tells the format, and only what is a file is read."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.ports import SessionState
from agent_magics.dataframes.bundles import MAX_BYTES, read_lines, refused, write_lines
from agent_magics.dataframes.parquet import read_parquet, write_parquet
from agent_magics.dataframes.saving import save

LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)


def check_name(path: Path) -> Path:
    """Return a bundle's path; raise `InputValidation` where its name tells no format."""
    if path.suffix.lower() not in (*LINES, *PARQUET):
        raise InputValidation(
            f"{path} tells no format: let the name end in {LINES[0]}, or {PARQUET[0]}."
        )
    return path


def export_state(state: SessionState, path: Path, *, overwrites: bool) -> None:
    """Write a session to a file, whole or not at all.

    Raises `InputValidation` (the name, or a file that is there), `StorageError`.
    """
    write = write_parquet if check_name(path).suffix.lower() in PARQUET else write_lines
    save(str(path), lambda file: write(state, file), overwrites=overwrites)


def import_state(path: Path) -> SessionState:
    """Read a session from a file; raises `InputValidation` with what is wrong with it."""
    read = read_parquet if check_name(path).suffix.lower() in PARQUET else read_lines
    path = path.expanduser()
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
            raise refused(str(path), "it is no file")
        if status.st_size > MAX_BYTES:
            raise refused(str(path), f"it has over {MAX_BYTES // 10**9} GB")
        with path.open("rb") as file:
            return read(file, str(path))
    except OSError as error:
        raise refused(str(path), error.strerror or str(error)) from error


def renamed(state: SessionState, session_id: str) -> SessionState:
    """Return a session under another id; everything in it stays."""
    row = msgspec.structs.replace(state.row, session_id=session_id)
    return msgspec.structs.replace(state, row=row)
