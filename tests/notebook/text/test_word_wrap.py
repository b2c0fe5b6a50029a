"""Answers that stream into a terminal are broken between words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.notebook.text.word_wrap import MAX_HELD_CHARACTERS, WordWrap

pytestmark = pytest.mark.req("N12")
WIDTH = 20
CODE = "```python\nprint('a line of code that is long')\n```\n"


def wrapped(*chunks: str, width: int | None = WIDTH) -> str:
    wrap = WordWrap(width)
    return "".join([*map(wrap.feed, chunks), wrap.flush()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("one two three four five", "one two three four\nfive"),
        ("- one two three four five", "- one two three four\n  five"),
        ("12. one two three four", "12. one two three\n    four"),
        ("  - one two three four", "  - one two three\n    four"),
        ("    indented code is not broken", "    indented code is not broken"),
        ("| a table | is not | broken |", "| a table | is not | broken |"),
        (CODE + "one two three four five", CODE + "one two three four\nfive"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("averyveryverylongwordindeed x", "averyveryverylongwordindeed\nx"),
    ],
)
def test_text_is_broken_and_code_is_not(text: str, shown: str) -> None:
    """Items go on under their text; code and tables stay as they are."""
    assert wrapped(text) == shown
    assert wrapped(*text) == shown
    assert wrapped(text, width=None) == text


def test_a_word_waits_for_its_end() -> None:
    """What is written is never taken back."""
    wrap = WordWrap(WIDTH)
    assert wrap.feed("one two three four fi") == "one two three four"
    assert wrap.holds
    assert wrap.feed("ve six") == "\nfive"
    assert wrap.flush() == " six"
    assert not wrap.holds


def test_scripts_without_blanks_are_not_held_back() -> None:
    """They come as they come; the terminal breaks them anywhere."""
    wrap = WordWrap(WIDTH)
    assert wrap.feed("\u4f60\u597d" * 30) == "\u4f60\u597d" * 30
    assert not wrap.holds


WORDS = st.text("ab\u4f60-*>|`1. \n", max_size=120)


@given(text=WORDS, at=st.lists(st.integers(0, 120), max_size=6))
def test_only_line_ends_are_added_however_it_comes(text: str, at: list[int]) -> None:
    """Every word is there, in its order."""
    cuts = [0, *sorted(min(each, len(text)) for each in at), len(text)]
    shown = wrapped(*(text[start:end] for start, end in pairwise(cuts)))
    assert "".join(shown.split()) == "".join(text.split())
    if all(len(word) < MAX_HELD_CHARACTERS for word in text.split()):
        assert shown.split() == text.split()
        assert shown == wrapped(text)
