"""Where two answers differ: what is marked, how much is in common, and what finding out costs."""

from __future__ import annotations

import difflib
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.notebook.views.comparison import differences
from agent_magics.notebook.views.comparison.differences import MAX_STEPS, base_pieces, compared

pytestmark = pytest.mark.req("W5")

TENURE = "Use tenure, because it predicts churn."
PRICE = "Use price, because it predicts churn well."
WORDS = st.text(alphabet="ab \n.", max_size=60)
LINES = 12 * MAX_STEPS  # of Python that are run: a step of matching is about five
COMPARE: Callable[[str, str], object] = getattr(compared, "__wrapped__", compared)


def differing(pieces: object) -> list[str]:
    return [piece.text for piece in pieces if piece.differs]  # type: ignore[attr-defined]


def test_words_that_the_other_lacks_are_marked_on_both_sides() -> None:
    """The rest of both answers stands unmarked."""
    found = compared(TENURE, PRICE)
    assert differing(found.pieces) == ["price", "well"]
    assert differing(base_pieces(TENURE, [found])) == ["tenure"]


def test_of_several_the_base_marks_what_none_of_them_has() -> None:
    """A word that one of them shares isn't the base's own."""
    others = [compared(TENURE, PRICE), compared(TENURE, "Use tenure.")]
    assert differing(base_pieces(TENURE, others)) == []
    others = [compared(TENURE, PRICE), compared(TENURE, "Use age.")]
    assert differing(base_pieces(TENURE, others)) == ["tenure"]


def test_a_phrase_is_one_mark_without_the_blanks_at_its_edges() -> None:
    """An underline would run on into what both have, or stop at each word."""
    found = compared("Call those on basic plans.", "Call those plans.")
    pieces = base_pieces("Call those on basic plans.", [found])
    assert differing(pieces) == ["on basic"]
    found = compared("They were here for a year.", "They paid 45 or more.")
    assert differing(found.pieces) == ["paid 45 or more"]


@given(base=WORDS, answer=WORDS)
def test_pieces_add_up_to_the_answers(base: str, answer: str) -> None:
    """Nothing is lost or made up, whatever the texts are; equal ones are alike and unmarked."""
    found = compared(base, answer)
    assert "".join(piece.text for piece in found.pieces) == answer
    assert "".join(piece.text for piece in base_pieces(base, [found])) == base
    assert found.alike is not None
    assert 0 <= found.alike <= 1
    same = compared(answer, answer)
    assert (same.alike, differing(same.pieces)) == (1, [])


def prose(words: int, seed: int) -> list[str]:
    """Words as often as they are in a language, in sentences."""
    chance = random.Random(seed)
    ranks = range(1, 4_001)
    chosen = chance.choices(ranks, [1 / rank for rank in ranks], k=words)
    return [f"w{rank}{'.' if at % 15 == 14 else ''}" for at, rank in enumerate(chosen)]


def with_another(words: list[str], every: int) -> str:
    """The words, one in so many another one."""
    changed = (f"new{at}" if at % every == 7 else word for at, word in enumerate(words))
    return " ".join(changed)


def lines_run(call: Callable[[], object]) -> int:
    """Count the lines of Python that comparing runs; more than `LINES` are a failure at once."""
    count, files = 0, {difflib.__file__, differences.__file__}

    def within(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        assert count <= LINES, "it goes on and on"
        return within

    def traced(frame: FrameType, _event: str, _arg: object) -> Any:
        return within if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("base", "answer"),
    [
        pytest.param("a b " * 370, "a a b " * 250, id="repeats out of step"),
        pytest.param("a b " * 370, "a\tb\t" * 370, id="other blanks"),
        pytest.param(". " * 740, ".\n" * 740, id="stops"),
        pytest.param("a b " * 12_500, "x " + "a a b " * 8_000 + "y", id="repeats without an end"),
        pytest.param("ab. " * 12_500, "x. " + "ab. a. " * 6_000, id="sentences that repeat"),
        pytest.param("\n" * 50_000, "x" + "\n" * 40_000, id="blank lines"),
        pytest.param("x" * 50_000, "y" * 50_000, id="one word"),
        pytest.param(
            " ".join(map(str, range(9_000))),
            " ".join(map(str, range(9_000, 18_000))),
            id="no word in common",
        ),
        pytest.param(
            " ".join(map(str, range(9_000))),
            " ".join(map(str, reversed(range(9_000)))),
            id="the other way round",
        ),
        pytest.param(" ".join(prose(9_000, 1)), " ".join(prose(9_000, 2)), id="two long answers"),
    ],
)
def test_no_texts_take_long(base: str, answer: str) -> None:
    """The work is bounded, not the size: counted in lines of Python, not by the clock."""
    assert lines_run(lambda: COMPARE(base, answer)) <= LINES
    found = compared(base, answer)
    assert "".join(piece.text for piece in found.pieces) == answer
    assert "".join(piece.text for piece in base_pieces(base, [found])) == base


@pytest.mark.parametrize("size", [800, 8_000], ids=["by words", "by sentences first"])
def test_of_long_answers_only_the_words_that_differ_are_marked(size: int) -> None:
    """One in two hundred, however long the answer is and though it has no line break."""
    words = prose(size, 3)
    found = compared(" ".join(words), with_another(words, 200))
    assert differing(found.pieces) == [f"new{at}" for at in range(7, size, 200)]
    assert found.alike is not None
    assert 0.98 < found.alike < 1


def test_where_words_are_too_many_no_share_is_made_up() -> None:
    """What could be told is told: the ends that both have aren't marked."""
    found = compared("Begin. " + "a b " * 6_000 + "end", "Begin. " + "b a a " * 5_000 + "end")
    assert found.alike is None
    assert [piece.text for piece in found.pieces if not piece.differs] == ["Begin. ", " end"]


def test_the_same_is_alike_however_long_it_is() -> None:
    """No matching is needed."""
    text = "a b " * 12_500
    assert compared(text, text).alike == 1


def test_blanks_make_no_difference() -> None:
    """Lines that are broken elsewhere have the same words."""
    found = compared("One two. Three", "One\ntwo.\n\nThree ")
    assert (found.alike, differing(found.pieces)) == (1, [])


def test_two_texts_are_compared_once() -> None:
    """Views are refreshed again and again."""
    assert compared(TENURE, PRICE) is compared(TENURE, PRICE)
