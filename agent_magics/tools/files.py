"""Tools that list, read, search and write files under one folder, in text and in bounds.

Every answer says what was left out, and what can't be done is one sentence.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.core.text import clean_text
from agent_magics.tools.folder import Entry, Folder, FolderPath
from agent_magics.tools.reading import NOTEBOOK, decoded, encoding_of, told_file
from agent_magics.tools.schema import FunctionTool, tool

MAX_LISTED = 200
MAX_SEARCHED_FILES = 5_000
MAX_SEARCHED_BYTES = 2_000_000
MAX_SEARCHED_IN_ALL = 200_000_000
MAX_FOUND = 100
MAX_FOUND_CHARACTERS = 200
MAX_WRITTEN_CHARACTERS = 1_000_000
MAX_DIFFED_LINES = 2_000
CUT = "[cut: only the first {}]"


@dataclass(frozen=True, kw_only=True)
class FileRules:
    """What holds for the tools, asked anew at each call.

    `folder`: where they may look. `may_read` False: contents aren't shared, names are. `shown`
    takes out of a text what must not leave.
    """

    folder: Callable[[], Folder]
    may_read: Callable[[], bool] = lambda: True
    shown: Callable[[str], str] = str


def file_tools(rules: FileRules) -> tuple[FunctionTool[..., Any], ...]:
    """Make the four tools; only `write_file` is mutating. They run on threads of their own."""

    @tool(thread=True)
    def list_files(folder: str = ".", glob: str = "*") -> ToolOutput:
        """List files and folders by name and size. `glob` "**/*.csv" looks into all folders.

        Hidden files and files that hold keys are left out.
        """
        return _answered(lambda: _list(rules.folder(), folder, glob))

    @tool(thread=True)
    def read_file(path: str, first_line: int = 1, last_line: int | None = None) -> ToolOutput:
        """Read lines of a text file under the notebook's folder (from 1, both ends).

        Of a notebook the cells' sources are given.
        """
        return _answered(lambda: _read(rules, path, first_line, last_line))

    @tool(thread=True)
    def search_files(text: str, glob: str = "**/*", folder: str = ".") -> ToolOutput:
        """Find lines that hold a text (no regular expression; case is ignored) in files."""
        return _answered(lambda: _search(rules, text, glob, folder))

    writing = _Writing(rules.folder)

    @tool(mutating=True, thread=True, preview=writing.preview)
    def write_file(path: str, content: str) -> ToolOutput:
        """Write a whole text file (UTF-8) under the notebook's folder; notebooks can't be written.

        To add a cell to the notebook use add_cell_below.
        """
        return _answered(lambda: writing.write(path, content))

    return list_files, read_file, search_files, write_file


class _Writing:
    """Writes files, but not over what a person didn't see when it was asked."""

    def __init__(self, folder: Callable[[], Folder]) -> None:
        self._folder = folder
        self._seen: dict[str, str | None] = {}

    def preview(self, given: dict[str, Any]) -> str:
        """Say what a call will do: a diff where there is such a file, else the whole content."""
        path, content = str(given.get("path", "")), str(given.get("content", ""))
        folder = self._folder()
        try:
            place = _writable(folder, path, content)
            before = _text_before(folder, place)
        except (InputValidation, OSError) as error:
            return f"{path}\n{content}\n[it will fail: {_sentence(error)}]"
        # What the person saw when it was asked; an edit made while the question stood open must not
        # be lost.
        self._seen[place.shown] = before
        return _change(place.shown, before, content)

    def write(self, path: str, content: str) -> str:
        """Write the file whole; say what it replaced."""
        folder = self._folder()
        place = _writable(folder, path, content)
        before = _text_before(folder, place)
        if self._seen.pop(place.shown, before) != before:
            raise InputValidation(
                f'"{place.shown}" was changed after the question was asked; nothing was written.'
                " Read it again."
            )
        # Half of a surrogate pair can't be written as UTF-8.
        data = clean_text(content).encode()
        folder.write(place, data)
        told = f"wrote {place.shown}: {len(content.splitlines()):,} lines, {len(data):,} bytes"
        return told if before is None else f"{told}, in place of {len(before.splitlines()):,} lines"


def _change(name: str, before: str | None, content: str) -> str:
    if before is None:
        return f"{name} (new)\n{content}"
    old, new = before.splitlines(), content.splitlines()
    if len(old) + len(new) > MAX_DIFFED_LINES:
        return f"{name} (replaces all of its {len(old):,} lines)\n{content}"
    diff = list(difflib.unified_diff(old, new, lineterm=""))[2:]
    return "\n".join([f"{name} (changed)", *(diff or ["[no change]"])])


def _answered(work: Callable[[], str]) -> ToolOutput:
    try:
        return ToolOutput(content=clean_text(work()))
    except (InputValidation, OSError) as error:
        return ToolOutput(content=_sentence(error), is_error=True)


def _sentence(error: InputValidation | OSError) -> str:
    if isinstance(error, InputValidation):
        return error.message
    name = clean_text(Path(str(error.filename or "")).name)  # not where the folder is
    return f"{error.strerror or type(error).__name__}: {name}."


def _list(folder: Folder, wanted: str, glob: str) -> str:
    place = folder.place(wanted)
    entries = list(itertools.islice(folder.walk(place, glob), MAX_LISTED + 1))
    if not entries:
        return f'Nothing in "{place.shown}" fits "{glob}"; hidden files are left out.'
    lines = [_listed(entry) for entry in entries[:MAX_LISTED]]
    return "\n".join([*lines, CUT.format(MAX_LISTED)] if len(entries) > MAX_LISTED else lines)


def _listed(entry: Entry) -> str:
    if entry.is_folder:
        return f"{entry.place.shown}/"
    size = "a link" if entry.size is None else f"{entry.size:,} bytes"
    return f"{entry.place.shown}  {size}"


def _read(rules: FileRules, path: str, first: int, last: int | None) -> str:
    if first < 1 or (last is not None and last < first):
        raise InputValidation("Lines are counted from 1, and last_line comes after first_line.")
    folder = _readable(rules)
    place = folder.place(path)
    with folder.reading(place) as stream:
        return rules.shown(told_file(stream, place.shown, first, last))


def _search(rules: FileRules, wanted: str, glob: str, path: str) -> str:
    if not wanted.strip():
        raise InputValidation("There is no text to search for.")
    folder = _readable(rules)
    place = folder.place(path)
    searched = _Search(folder, wanted.casefold())
    for entry in folder.walk(place, glob):
        if searched.is_over:
            break
        if entry.size is not None:
            searched.look_into(entry)
    return rules.shown(searched.told(wanted))


class _Search:
    """Lines found so far, and how much was looked at."""

    def __init__(self, folder: Folder, wanted: str) -> None:
        self._folder = folder
        self._wanted = wanted
        self._found: list[str] = []
        self._files = 0
        self._bytes = 0
        self._left_out = 0

    @property
    def is_over(self) -> bool:
        is_tired = self._files >= MAX_SEARCHED_FILES or self._bytes >= MAX_SEARCHED_IN_ALL
        return is_tired or len(self._found) > MAX_FOUND

    def look_into(self, entry: Entry) -> None:
        self._files += 1
        size = entry.size or 0
        if size > MAX_SEARCHED_BYTES:
            self._left_out += 1
            return
        self._bytes += size
        with suppress(OSError, InputValidation), self._folder.reading(entry.place) as stream:
            encoding = encoding_of(stream)
            if encoding is None:
                return
            with decoded(stream, encoding) as text:
                self._look_at(entry.place.shown, text)

    def _look_at(self, name: str, text: TextIO) -> None:
        for number, line in enumerate(text, start=1):
            at = line.casefold().find(self._wanted)
            if at >= 0:
                self._found.append(f"{name}:{number}: {_around(line, at)}")
            if self.is_over:
                return

    def told(self, wanted: str) -> str:
        lines = self._found[:MAX_FOUND] or [f'No line of {self._files:,} files holds "{wanted}".']
        if len(self._found) > MAX_FOUND:
            lines.append(CUT.format(MAX_FOUND))
        elif self.is_over:
            lines.append(f"[cut: only {self._files:,} files were searched]")
        if self._left_out:
            lines.append(f"[{self._left_out} files over {MAX_SEARCHED_BYTES:,} bytes left out]")
        return "\n".join(lines)


def _around(line: str, at: int) -> str:
    start = max(0, at - MAX_FOUND_CHARACTERS // 2)
    shown = line[start : start + MAX_FOUND_CHARACTERS].strip()
    return f"{'…' if start else ''}{shown}{'…' if len(line) > start + MAX_FOUND_CHARACTERS else ''}"


def _readable(rules: FileRules) -> Folder:
    if not rules.may_read():
        raise InputValidation(
            "What files hold isn't shared here (AgentMagics.share); list_files tells their names."
        )
    return rules.folder()


def _writable(folder: Folder, path: str, content: str) -> FolderPath:
    place = folder.place(path)
    if place.name.casefold().rstrip(". ").endswith(NOTEBOOK):
        raise InputValidation(
            "Notebooks are not written: a front end may have it open. Use add_cell_below."
        )
    if not place.parts:
        raise InputValidation(f'"{place.shown}" is a folder.')
    if len(content) > MAX_WRITTEN_CHARACTERS:
        raise InputValidation(f"content is over {MAX_WRITTEN_CHARACTERS:,} characters.")
    return place


def _text_before(folder: Folder, place: FolderPath) -> str | None:
    """Return what a file holds that will be replaced; None where there is none yet."""
    try:
        with folder.reading(place) as stream:
            return stream.read(MAX_WRITTEN_CHARACTERS).decode(errors="replace")
    except FileNotFoundError:
        return None
