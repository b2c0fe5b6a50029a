"""Lines as wide as a terminal."""

from __future__ import annotations

import pytest

from agent_magics.notebook.text.lines import columns, fitted

pytestmark = pytest.mark.req("N12")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("short enough", "short enough"),
        ("one two three four five six", "one two three four\n  five six"),
        ("    - one two three four", "    - one two three\n      four"),
        ("first\n\none two three four five", "first\n\none two three four\n  five"),
        ("a  b  c  columns  stay", "a  b  c  columns\n  stay"),
        ("a-name-that-is-not-broken-anywhere x", "a-name-that-is-not-broken-anywhere\n  x"),
        ("", ""),
    ],
)
def test_long_lines_are_broken_between_words(text: str, fits: str) -> None:
    """What goes on stands a little to the right; nothing is cut."""
    assert fitted(text, 20) == fits


def test_nothing_is_broken_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    """What goes to a file or a notebook is wrapped by whoever shows it."""
    assert columns() is None
    assert fitted("word " * 50, None) == "word " * 50
