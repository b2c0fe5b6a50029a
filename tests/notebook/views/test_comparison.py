"""Comparing what several slots answered: which prompts are shared, and what is marked."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from agent_magics.core.slots import SlotMeta
from agent_magics.notebook.views.comparison.compare_view import CompareView
from agent_magics.notebook.views.comparison.comparison import (
    MAX_SLOTS,
    NEWEST_TURNS,
    NONE_IN_NEWEST,
    NONE_SHARED,
    ONLY_NEWEST,
    TOO_FEW,
    ComparedAnswer,
    ComparedSlots,
    comparison_of,
    shared_prompts,
)
from agent_magics.notebook.views.comparison.differences import Compared, Piece, compared
from agent_magics.notebook.views.comparison.text import comparison_html, comparison_text
from agent_magics.notebook.views.widgets import Views
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.req("W5")

TENURE = "Use tenure, because it predicts churn."
PRICE = "Use price, because it predicts churn well."


def answered(seq: int, text: str, *, turn_id: str | None = None) -> ComparedAnswer:
    return ComparedAnswer(
        seq=seq, turn_id=turn_id or f"t{seq}", turn=seq, text=text, status="complete"
    )


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
    answers: dict[str, dict[str, ComparedAnswer]], hint: str
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


def test_a_share_that_is_not_known_is_not_told() -> None:
    """That it was compared by lines and sentences is."""

    def roughly(_base: str, answer: str) -> Compared:
        return Compared(pieces=(Piece(text=answer),), lacks=(), alike=None)

    answers = {"default": {"which?": answered(1, TENURE)}, "a": {"which?": answered(2, PRICE)}}
    state = comparison_of(answers, compare=roughly)
    assert [(column.alike, column.by_lines) for column in state.columns] == [
        (None, False),
        (None, True),
    ]
    for told in (comparison_text(state), comparison_html(state)):
        assert "compared with default by lines and sentences" in told
        assert "%" not in told


def test_slots_that_are_left_out_are_told() -> None:
    """Named ones are all shown."""
    answers = {f"s{n}": {"which?": answered(n, TENURE)} for n in range(1, MAX_SLOTS + 4)}
    state = comparison_of(answers, is_named=False)
    assert len(state.columns) == MAX_SLOTS
    told = "12 of the 15 slots that answered are shown; name those to compare."
    assert state.note == told
    assert told in comparison_text(state)
    assert told in comparison_html(state)
    named = comparison_of(answers)
    assert (len(named.columns), named.note) == (MAX_SLOTS + 3, "")


def test_turns_that_are_not_looked_at_are_told() -> None:
    """That nothing was shared is said of those that are."""
    answers = {"default": {"which?": answered(1, TENURE)}, "a": {"which?": answered(2, PRICE)}}
    assert ONLY_NEWEST in comparison_text(comparison_of(answers, is_cut=True))
    nothing = comparison_of({"default": {}, "a": {}}, is_cut=True)
    assert nothing.hint == NONE_IN_NEWEST
    assert f"{NEWEST_TURNS} turns" in nothing.hint
    assert " yet" not in nothing.hint


@pytest.mark.req("N4")
def test_how_another_prompt_is_shown_depends_on_which_is(asked: Notebook) -> None:
    """And is an option of the magic's alone."""
    assert asked.run("%slot compare a b").endswith(": --prompt 2 shows the one before\n")
    assert asked.run("%slot compare a b --prompt 2").endswith(": --prompt 1 shows the newest\n")
    state = comparison_of(ComparedSlots(asked.session).read())
    assert comparison_text(state).endswith("one other prompt was asked in several of these slots")
    assert "--prompt" not in comparison_html(state)


def test_more_turns_than_are_looked_at_are_noticed(asked: Notebook) -> None:
    """By the slots that are compared alone."""
    slots = {slot.slot_id: slot for slot in asked.session.list_slots()}
    long = structs.replace(slots["b"], turns=NEWEST_TURNS + 1)

    class Longer:
        history, turns, running = (
            asked.session.history,
            asked.session.turns,
            asked.session.running,
        )

        def list_slots(self) -> list[SlotMeta]:
            return [slots["default"], slots["a"], long]

    for uids, is_cut in (((), True), ((slots["default"].uid, slots["a"].uid), False)):
        answers = ComparedSlots(Longer(), uids)
        answers.read()
        assert answers.is_cut is is_cut


def test_a_comparison_shows_what_it_was_asked_for_each_time(asked: Notebook) -> None:
    """Neither another cell's prompt nor what a page chose meanwhile."""
    views = Views(asked.session)
    newest, before = (each.id for each in views.comparison(("a", "b")).comparison.prompts)
    pinned = views.comparison(("a", "b"), before)
    assert pinned.comparison.prompt == "which?"
    plain = views.comparison(("a", "b"))
    assert plain.comparison.prompt == "and how?"
    assert pinned.comparison.prompt == "which?"
    assert views.comparison(("a", "b"), before) is pinned
    plain.choose(prompt=before, base="b")
    assert (plain.comparison.prompt, plain.comparison.base) == ("which?", "b")
    again = views.comparison(("a", "b")).comparison
    assert (again.chosen, again.base) == (newest, "a")


def test_a_comparison_follows_without_holding_up_the_session(asked: Notebook) -> None:
    """Its pages are told by the thread that compared."""
    view = CompareView(asked.session, "a", "b")
    threads: list[str] = []
    view.send = lambda _message: threads.append(threading.current_thread().name)
    asked.run("%%agent --slots a,b\nand then?")
    deadline = time.monotonic() + 10
    while not _is_whole(view, "and then?") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _is_whole(view, "and then?")
    assert "agent-magics-worker" in threads
    view.close()


def _is_whole(view: CompareView, prompt: str) -> bool:
    state = view.comparison
    statuses = [column.status for column in state.columns]
    return (state.prompt, statuses) == (prompt, ["complete", "complete"])


def test_a_page_chooses_what_is_compared(asked: Notebook) -> None:
    """The kernel tells it when it has compared."""
    view = CompareView(asked.session, "a", "b")
    view.hear({"kind": "choose", "base": "b"})
    deadline = time.monotonic() + 10
    while view.comparison.base != "b" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert view.comparison.base == "b"
    view.close()


@pytest.mark.req("dec66")
def test_a_page_that_chooses_in_a_broken_session_is_logged(
    asked: Notebook, caplog: pytest.LogCaptureFixture
) -> None:
    """Reading the answers fails on the loop, before anything is compared."""

    class Broken:
        is_gone = False
        history, turns, running, follow = (
            asked.session.history,
            asked.session.turns,
            asked.session.running,
            asked.session.follow,
        )

        def list_slots(self) -> list[SlotMeta]:
            if self.is_gone:
                raise OSError("no words of it")
            slots: list[SlotMeta] = asked.session.list_slots()
            return slots

    session = Broken()
    view = CompareView(session, "a", "b")
    session.is_gone = True
    view.hear({"kind": "choose", "base": "b"})
    deadline = time.monotonic() + 10
    while not caplog.messages and time.monotonic() < deadline:
        time.sleep(0.01)
    assert caplog.messages[0].startswith("choosing what to compare failed: OSError at ")
    view.close()


def test_a_line_compares_once(asked: Notebook) -> None:
    """Neither for the newest prompt first, nor again for the view."""
    compared.cache_clear()
    asked.run("%slot compare a b --prompt 2")
    assert compared.cache_info().misses == 1
    views = Views(asked.session)
    views.comparison(("a", "b"), views.comparison(("a", "b")).comparison.prompts[1].id)
    assert compared.cache_info().misses == 2  # the newest prompt's, for the plain comparison


def test_a_deleted_slot_keeps_what_it_had_answered(asked: Notebook) -> None:
    """In the comparisons that named it, with a word that says so."""
    view = CompareView(asked.session, "a", "b")
    before = view.comparison
    asked.run("%slot delete b")
    view.renew()
    assert [column.id for column in view.comparison.columns] == ["a", "b (deleted)"]
    assert view.comparison.columns[1].pieces == before.columns[1].pieces
    view.close()
