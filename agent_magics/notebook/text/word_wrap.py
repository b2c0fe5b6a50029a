"""An answer that streams into a terminal: its lines are broken between words while it comes.

The last word is held back until it is whole. Code and tables stay as they are.
"""

from __future__ import annotations

import re
from unicodedata import east_asian_width

MAX_HELD_CHARACTERS = 30  # scripts without blanks have no words to wait for
_CODE_INDENT = 4
_PART = re.compile(r"\n|[^\S\n]+|\S+")
_FENCE = re.compile(r"```|~~~")
_MARKER = re.compile(r"[-*+]|\d+[.)]|>+")


class WordWrap:
    """Takes text as it comes and gives it back with line ends in it; `width` None adds none."""

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._held = ""
        self._in_fence = False
        self._begin_line()

    @property
    def holds(self) -> bool:
        """Return whether a word waits for its end."""
        return bool(self._held)

    def feed(self, text: str) -> str:
        """Return what may be written by now."""
        if self._width is None:
            return text
        parts = _PART.findall(self._held + text)
        is_open = parts and parts[-1].strip() and len(parts[-1]) < MAX_HELD_CHARACTERS
        self._held = parts.pop() if is_open else ""
        return "".join(map(self._placed, parts))

    def flush(self) -> str:
        """Return the word that is held: nothing comes behind it."""
        held, self._held = self._held, ""
        return self._placed(held)

    def end_line(self) -> None:
        """Begin anew: somebody else ended the line."""
        self._begin_line()

    def _begin_line(self) -> None:
        self._column = self._indent = 0
        self._blanks = ""
        self._has_words = False
        self._stays = self._in_fence

    def _placed(self, part: str) -> str:
        if part == "\n":
            self._begin_line()
            return part
        if not part.strip():
            self._blanks += part
            return ""
        if not self._has_words:
            self._read_first(part)
        blanks, self._blanks = self._blanks, ""
        wide = len(blanks) + _columns_of(part)
        if not self._breaks_before(wide):
            self._column += wide
            return blanks + part
        self._column = self._indent + wide - len(blanks)
        return f"\n{' ' * self._indent}{part}"

    def _breaks_before(self, wide: int) -> bool:
        fits = self._width is None or self._column + wide <= self._width
        return not fits and not self._stays and self._column > self._indent

    def _read_first(self, word: str) -> None:
        """Learn from the first word of a line whether it is text, and where text goes on."""
        self._has_words = True
        self._indent = len(self._blanks)
        is_marker = _MARKER.fullmatch(word) is not None
        if _FENCE.match(word):
            self._in_fence = not self._in_fence
            self._stays = True
        elif word.startswith("|") or (self._indent >= _CODE_INDENT and not is_marker):
            self._stays = True
        elif is_marker:
            self._indent += len(word) + 1


def _columns_of(word: str) -> int:
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in word)
