"""The sanitiser at the ledger's door."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.core.messages import ToolOutput
from agent_magics.core.text import MAX_DEPTH, TOO_DEEP, clean_text, clean_value

pytestmark = pytest.mark.req("inv13")
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone high half"),
        pytest.param("a\udc00", "a\ufffd", id="lone low half"),
        pytest.param("\udc00\ud800", "\ufffd\ufffd", id="halves in the wrong order"),
        pytest.param("\ud83d\ude00!", "\U0001f600!", id="a pair in two halves is joined"),
        pytest.param("a\0b", "a\\x00b", id="NUL is visible"),
        pytest.param("\\x00", "\\x00", id="what is visible stays"),
        pytest.param("a\rb\u2028c\u200fd", "a\rb\u2028c\u200fd", id="other controls stay"),
    ],
)
def test_text_that_kills_sessions_is_made_harmless(text: str, clean: str) -> None:
    """Each kind of bad text has one right form, and good text keeps its own."""
    assert clean_text(text) == clean


@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_cleaning_again_changes_nothing(text: str) -> None:
    """Whatever comes in, what comes out is UTF-8 without NUL, once and for all."""
    clean = clean_text(text)
    assert "\0" not in clean
    assert clean.encode().decode() == clean
    assert clean_text(clean) == clean


def test_good_text_is_not_copied() -> None:
    """Text that needs nothing is given back as the same object."""
    text = "h\u00e9llo \U0001f600" * 3
    assert clean_text(text) is text


def test_fifty_megabytes_in_one_line_are_cleaned_in_a_moment() -> None:
    """The sanitiser is linear, with a small factor."""
    text = "\u00e9" * 25_000_000 + "\ud800"
    began = time.perf_counter()
    assert clean_text(text)[-1] == "\ufffd"
    assert time.perf_counter() - began < 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner) | st.tuples(inner, inner),
)


@given(VALUES)
def test_clean_values_can_be_encoded(value: Any) -> None:
    """Every text in a value is cleaned, keys included, and the shape stays."""
    clean = clean_value(value)
    msgspec.json.encode(clean)
    assert type(clean) is type(value)
    assert clean_value(clean) == clean


def test_deep_values_end_in_a_mark() -> None:
    """A value that is too deep to be stored is cut, not refused."""
    value: Any = "end"
    for _ in range(5_000):
        value = [value]
    clean = clean_value(value)
    for _ in range(MAX_DEPTH):
        clean = clean[0]
    assert clean == TOO_DEEP


def test_structs_are_cleaned_to_the_bottom() -> None:
    """A message's blocks and a tool's metadata are values too; what was clean stays equal."""
    dirty = ToolOutput(content="a\0b", metadata={"k\0": ["\ud800"]})
    clean = ToolOutput(content="a\\x00b", metadata={"k\\x00": ["\ufffd"]})
    assert clean_value(dirty) == clean
    assert clean_value(clean) == clean
