"""Comparing what several slots answered: which prompts are shared, and what is marked."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from agent_magics.notebook.comparison_text import comparison_html, comparison_text
from agent_magics.notebook.views.comparison import (
    NONE_SHARED,
    TOO_FEW,
    Answered,
    comparison_of,
    shared_prompts,
)
from agent_magics.notebook.views.differences import MAX_UNITS, base_pieces, compared
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.req("W5")

TENURE = "Use tenure, because it predicts churn."
PRICE = "Use price, because it predicts churn well."
WORDS = st.text(alphabet="ab \n.", max_size=60)


def answered(seq: int, text: str, *, turn_id: str | None = None) -> Answered:
    return Answered(seq=seq, turn_id=turn_id or f"t{seq}", turn=seq, text=text, status="complete")


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
    assert 0 <= found.alike <= 1
    same = compared(answer, answer)
    assert (same.alike, differing(same.pieces)) == (1, [])


@pytest.mark.parametrize("cut", [" ", "\n", ""], ids=["lines", "many lines", "one endless word"])
def test_endless_answers_are_compared_too(cut: str) -> None:
    """By lines, or as a whole: what differs is marked, and it doesn't take for ever."""
    base = cut.join(str(number % 7) for number in range(3 * MAX_UNITS))
    found = compared(base, f"{base}{cut}and more")
    assert "and more" in "".join(differing(found.pieces))


def test_a_prompt_is_shared_where_two_turns_answered_it() -> None:
    """An inherited turn is the parent's own; the newest prompt stands first."""
    inherited = answered(1, "yes", turn_id="t1")
    answers = {
        "default": {"old": inherited, "which?": answered(2, TENURE), "how?": answered(5, "so")},
        "a": {"old": inherited, "which?": answered(3, PRICE), "how?": answered(4, "so")},
    }
    assert shared_prompts(answers) == ("how?", "which?")


def test_slots_that_nobody_named_are_those_with_answers_of_their_own() -> None:
    """Named ones stand there in any case."""
    answers = {
        "default": {"which?": answered(1, TENURE)},
        "heir": {"which?": answered(1, TENURE)},
        "a": {"which?": answered(2, PRICE)},
        "empty": {},
    }
    ids = [column.id for column in comparison_of(answers, is_named=False).columns]
    assert ids == ["default", "a"]
    named = comparison_of(answers)
    assert [column.status for column in named.columns] == ["complete"] * 3 + ["not asked"]
    assert [column.alike for column in named.columns] == [None, 100, 78, None]


@pytest.mark.parametrize(
    ("answers", "hint"),
    [
        ({"default": {"which?": answered(1, TENURE)}}, TOO_FEW),
        ({"default": {"which?": answered(1, TENURE)}, "a": {}}, NONE_SHARED),
    ],
    ids=["one slot", "nothing shared"],
)
def test_where_nothing_compares_a_sentence_says_what_to_do(
    answers: dict[str, dict[str, Answered]], hint: str
) -> None:
    """In every form of the view."""
    state = comparison_of(answers)
    assert (state.hint, state.columns) == (hint, ())
    assert hint in comparison_text(state)
    assert "%%agent" in comparison_html(state) or "%slot derive" in comparison_html(state)


def test_no_answer_is_ever_html() -> None:
    """Neither a prompt, nor an answer, nor its facts."""
    hostile = "<img src=x onerror=alert(1)>"
    answers = {
        "default": {hostile: answered(1, hostile)},
        "a": {hostile: answered(2, f"{hostile}\x1b[2J more")},
    }
    html = comparison_html(comparison_of(answers))
    assert "<img" not in html
    assert html.count("&lt;img") == 3
    assert "\x1b" not in comparison_text(comparison_of(answers))


@pytest.fixture
def asked(notebook: Notebook) -> Notebook:
    """Two slots beside the first, which share two prompts."""
    notebook.run("%agent hello")
    notebook.run("%slot derive a")
    notebook.run("%slot derive b")
    notebook.run("%%agent --slots a,b\nwhich?")
    notebook.run("%%agent --slots a,b\nand how?")
    return notebook


@pytest.mark.req("N4")
def test_slots_are_compared_by_a_line(asked: Notebook) -> None:
    """The newest shared prompt by itself, an earlier one by its number."""
    said = asked.run("%slot compare a b")
    assert said.startswith("asked: and how?\n")
    assert "── a · turn 3" in said
    assert "[-" in said
    assert "{+" in said
    assert "% in common with a" in said
    assert asked.run("%slot compare b a --prompt 2").startswith("asked: which?\n")
    assert asked.run("%slot compare").startswith("asked: and how?\n")


@pytest.mark.req("N4")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a", 'Slot "a" alone can\'t be compared; name another.'),
        ("a a", 'Slot "a" is named twice; name each once.'),
        ("a bb", 'Nothing called "bb"'),
        ("a b --prompt 3", "These slots share 2 prompts; there is no number 3."),
        ("a b --prompt 0", "--prompt"),
    ],
)
def test_what_cannot_be_compared_is_told(asked: Notebook, line: str, says: str) -> None:
    """In one sentence."""
    assert says in asked.run(f"%slot compare {line}", fails=True)


@pytest.mark.req("N4")
def test_slots_without_a_shared_prompt_are_no_error(notebook: Notebook) -> None:
    """What to do is said."""
    notebook.run("%agent hello")
    assert notebook.run("%slot compare") == f"{TOO_FEW}\n"


def test_the_example_of_the_page_is_what_is_made(root: Path) -> None:
    """`tests/data/comparison.json` checks the JavaScript side too."""
    facts = ("scripted:demo", "1,412 → 230 tokens")
    which, then = "Which column predicts churn?", "And which next?"
    answers = {
        "default": {},
        "option-a": {
            which: structs.replace(answered(20, TENURE), turn=10, facts=facts),
            then: answered(30, "Age."),
        },
        "option-b": {
            which: structs.replace(answered(24, PRICE), turn=10, facts=facts),
            then: answered(34, "Ag"),
        },
    }
    example = json.loads((root / "tests" / "data" / "comparison.json").read_text("utf-8"))
    assert msgspec.json.decode(msgspec.json.encode(comparison_of(answers, chosen="24"))) == example
