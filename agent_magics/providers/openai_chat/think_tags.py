"""Reasoning that a server leaves in its answer, between `<think>` and `</think>`."""

from __future__ import annotations

from collections.abc import Iterator

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Splits a leading `<think>…</think>` from the answer; pieces are (is_reasoning, text).

    Only at the start: further on the words may be what the user asked about.
    """

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def add(self, text: str) -> Iterator[tuple[bool, str]]:
        """Take a piece; yield what is sure, hold back what may be the beginning of a tag."""
        self._held += text
        if self._state == "start":
            lead = self._held.lstrip()
            if lead.startswith(_OPEN):
                self._state, self._held = "thinking", lead[len(_OPEN) :]
            elif not _OPEN.startswith(lead):
                self._state = "text"
        if self._state == "thinking":
            yield from self._thinking()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        if self._state == "text" and self._held:
            yield False, self._held
            self._held = ""

    def _thinking(self) -> Iterator[tuple[bool, str]]:
        thought, closing, rest = self._held.partition(_CLOSE)
        if closing:
            self._state, self._held = "after", rest
        else:
            kept = _overlap(thought, _CLOSE)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield True, thought

    def end(self) -> Iterator[tuple[bool, str]]:
        """Yield what was held back."""
        held, self._held = self._held, ""
        if held:
            yield self._state == "thinking", held


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    for size in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-size:]):
            return size
    return 0
