"""Places to cut a text at that tear no word: half an identifier would be a wrong one."""

from __future__ import annotations

import re

LONGEST_WORD = 64  # a longer run is torn where the cut falls

_WORD = re.compile(r"[\w.,@:/+-]+")
_WORD_SO_FAR = re.compile(_WORD.pattern + r"\Z")


def word_begin(text: str, at: int) -> int:
    """Go back to the beginning of the word that `at` is inside of; `at` where it is in none."""
    torn = _WORD_SO_FAR.search(text, max(0, at - LONGEST_WORD), at)
    if torn is None or not _WORD.match(text, at) or len(torn.group()) == LONGEST_WORD:
        return at
    return torn.start()


def word_end(text: str, at: int) -> int:
    """Go on to the end of the word that `at` is inside of; `at` where it is in none."""
    torn = _WORD.match(text, at, at + LONGEST_WORD)
    if torn is None or not _WORD.match(text, at - 1) or len(torn.group()) == LONGEST_WORD:
        return at
    return torn.end()
