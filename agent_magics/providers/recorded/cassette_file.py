"""The file of a cassette: JSON Lines, written so that no reader sees half of a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.text import clean_value
from agent_magics.providers.recorded.recorded_answer import RecordedAnswer, RecordedModel

Line: TypeAlias = RecordedAnswer | RecordedModel


class CassetteFile:
    """One recording file; `skipped` lines of it could not be read.

    Raises `InputValidation` where it can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0
        self._stamp: tuple[int, int, int] | None = None

    def has_changed(self) -> bool:
        """Whether somebody else has written or deleted it since it was read or written here."""
        return _stamp(self.path) != self._stamp

    def read(self) -> list[Line]:
        """Read all lines; none where there is no file."""
        self._stamp = _stamp(self.path)
        self.skipped = 0
        try:
            raw = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputValidation(
                f'The recording "{self.path.name}" can\'t be read: {error.strerror or error}.'
            ) from error
        lines: list[Line] = []
        for line in filter(None, (line.strip() for line in raw)):
            try:
                lines.append(msgspec.json.decode(line, type=RecordedAnswer | RecordedModel))
            except msgspec.MsgspecError:
                # A merge conflict or a torn line costs its own answer, not the whole recording.
                self.skipped += 1
        return lines

    def append(self, line: Line) -> None:
        """Add a line at the end."""
        self._write(lambda: self._add(_encoded(line)))

    def replace(self, lines: Iterable[Line]) -> None:
        """Write the file anew; whoever reads meanwhile sees the old or the new one."""
        content = b"".join(map(_encoded, lines))
        self._write(lambda: self._swap(content))

    def _add(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(line)

    def _swap(self, content: bytes) -> None:
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_bytes(content)
        beside.replace(self.path)

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            raise InputValidation(
                f'The recording "{self.path.name}" can\'t be written: {error.strerror or error}.'
            ) from error
        self._stamp = _stamp(self.path)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Identify the state of a file; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _encoded(line: Line) -> bytes:
    return msgspec.json.encode(clean_value(line)) + b"\n"
