"""A file as text: how it is encoded, which of its lines, and what of it was left out."""

from __future__ import annotations

import codecs
import io
import json
import mimetypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

from agent_magics.core.values import Value

MAX_READ_CHARACTERS = 16_000
MAX_LINE_CHARACTERS = 2_000
MAX_SCANNED_CHARACTERS = 50_000_000
MAX_NOTEBOOK_BYTES = 20_000_000
NOTEBOOK = ".ipynb"
_SNIFFED_BYTES = 65_536
_FALLBACK = "latin-1"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    *((bom, "utf-32") for bom in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((bom, "utf-16") for bom in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)


class Window(Value):
    """Some lines of a text. `total` None: the text goes on past what was looked at.

    `next_line`: where to go on, if the lines asked for were too many.
    """

    lines: tuple[str, ...]
    total: int | None
    next_line: int | None


def told_file(stream: BinaryIO, name: str, first: int, last: int | None) -> str:
    """Return lines `first` to `last` (from 1, both ends) of a file, under a line that says which.

    A binary file is described by type and size, a notebook told by its cells' sources.
    """
    size = os.fstat(stream.fileno()).st_size
    encoding = encoding_of(stream)
    if encoding is None:
        media_type = mimetypes.guess_type(name)[0] or "unknown type"
        return f"{name} is binary ({media_type}, {size:,} bytes); it was not read."
    notes = ["read as latin-1: it is no UTF-8"] if encoding == _FALLBACK else []
    with decoded(stream, encoding) as text:
        if name.casefold().endswith(NOTEBOOK) and size <= MAX_NOTEBOOK_BYTES:
            cells = _cells(text.read())
            if cells is not None:
                notes.append("a notebook, its outputs left out")
                return _told(window(io.StringIO(cells), first, last), name, first, size, notes)
            text.seek(0)
        return _told(window(text, first, last), name, first, size, notes)


@contextmanager
def decoded(stream: BinaryIO, encoding: str) -> Iterator[TextIO]:
    """Read a binary stream as text for a while; the stream stays its owner's to close."""
    text = io.TextIOWrapper(stream, encoding=encoding, errors="replace")
    try:
        yield text
    finally:
        text.detach()


def window(text: TextIO, first: int, last: int | None) -> Window:
    """Read lines of a text within the limits, and count the others."""
    kept: list[str] = []
    room = MAX_READ_CHARACTERS
    next_line: int | None = None
    number = 0
    for number, line in enumerate(_lines(text), start=1):
        if number < first or (last is not None and number > last) or next_line:
            continue
        room -= len(line) + 1
        if room < 0 and kept:
            next_line = number
        else:
            kept.append(line)
    is_whole = text.read(1) == ""
    return Window(lines=tuple(kept), total=number if is_whole else None, next_line=next_line)


def encoding_of(stream: BinaryIO) -> str | None:
    """Guess the encoding of a file by its beginning; None where it is binary."""
    begin = stream.read(_SNIFFED_BYTES)
    stream.seek(0)
    for bom, encoding in _BOMS:
        if begin.startswith(bom):
            return encoding
    if b"\0" in begin:
        return None
    try:
        is_all = len(begin) < _SNIFFED_BYTES
        codecs.getincrementaldecoder("utf-8")().decode(begin, final=is_all)
    except UnicodeDecodeError:
        return _FALLBACK
    return "utf-8"


def _lines(text: TextIO) -> Iterator[str]:
    """Yield the lines of a text, each cut, until the text goes past what is looked at."""
    left = MAX_SCANNED_CHARACTERS
    while left > 0:
        line = last = text.readline(MAX_LINE_CHARACTERS + 1)
        length = len(line)
        while last and not last.endswith("\n") and length < left:
            last = text.readline(_SNIFFED_BYTES)
            length += len(last)
        if not line:
            return
        left -= length
        more = length - last.endswith("\n") - MAX_LINE_CHARACTERS
        shown = line.removesuffix("\n")[:MAX_LINE_CHARACTERS]
        yield f"{shown}… [{more:,} more characters]" if more > 0 else shown


def _told(seen: Window, name: str, first: int, size: int, notes: list[str]) -> str:
    total = f"more than {first + len(seen.lines):,}" if seen.total is None else f"{seen.total:,}"
    if seen.total == 0:
        return f"{name} is empty."
    if not seen.lines:
        return f"{name} has {total} lines; there is no line {first:,}."
    last = first + len(seen.lines) - 1
    if seen.next_line:
        notes.append(f"cut: go on with first_line={seen.next_line}")
    head = ", ".join([f"{name}, lines {first:,}-{last:,} of {total}, {size:,} bytes", *notes])
    return "\n".join([f"[{head}]", *seen.lines])


def _cells(source: str) -> str | None:
    """Write a notebook's cells as a script; None where it is no notebook."""
    try:
        cells: Any = json.loads(source)["cells"]
        return "\n".join(
            f"# %% [{cell['cell_type']}] {number}\n{''.join(cell['source'])}\n"
            for number, cell in enumerate(cells, start=1)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
