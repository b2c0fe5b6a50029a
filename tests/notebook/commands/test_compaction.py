"""Compaction as a notebook shows it: before an answer, `%compact`, `%context`, settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import msgspec
import pytest

from agent_magics.context.budget import ContextInfo, Limits, Share
from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.errors import FixedContextExceedsBudget, InputValidation, NothingHelped
from agent_magics.core.turns import AgentEvent, SummaryFailed, SummaryWritten
from agent_magics.notebook.cell.display import AnswerDisplay
from agent_magics.notebook.cell.remedies import sentence_of
from agent_magics.notebook.text.page import Terminal
from agent_magics.notebook.views.budget_notes import budget_notes
from tests.notebook.conftest import Notebook

Script = Callable[..., None]
SUMMARY = "\n".join(f"## {heading}\n- kept" for heading in SUMMARY_HEADINGS)
WRITES = {"purpose": "compaction", "text": SUMMARY}
LONG = "a long answer " + "word " * 250
QUESTION = f"%agent question {'and ' * 250}"
LINE = re.compile(r"(\d+) older turns are now a summary: ([\d,]+) → ([\d,]+) tokens; the log keeps")


@pytest.fixture
def long(notebook: Notebook, script: Script) -> Notebook:
    """A conversation of six long turns in a window of 8,000 tokens: one more is too many."""
    script(*[f"{LONG}{n}" for n in range(20)], *[WRITES] * 4, context_window=8_000)
    notebook.run("%reload_ext agent_magics")
    for _ in range(6):
        notebook.run(QUESTION)
    return notebook


@pytest.mark.req("N5", "C4", "C14")
def test_a_turn_that_compacts_says_so_before_its_answer(long: Notebook) -> None:
    """One line with turns and tokens; a later `%context` says the same."""
    before = len(long.session.history())
    asked = 0
    while (found := LINE.search(said := long.run(QUESTION))) is None:
        asked += 1
        assert asked < 5, said
    assert said.index("older turns are now a summary") < said.index("a long answer")
    info = long.session.context_info()
    assert found.group(1) == f"{info.turns_behind}"
    assert found.group(2) == f"{info.tokens_before:,}"
    assert found.group(3) == f"{info.tokens_after:,}"
    assert len(long.session.history()) == before + 2 * (asked + 1)
    assert info.reason == "auto"
    assert "last compaction (auto" in long.run("%context")


@pytest.mark.req("C14")
def test_a_turn_that_could_not_compact_says_why(notebook: Notebook, script: Script) -> None:
    """A refused summary is a line, the answer comes all the same, the footer says what to do."""
    refused = {"purpose": "compaction", "text": "I can't help with that."}
    script(*[f"{LONG}{n}" for n in range(20)], refused, context_window=8_000)
    notebook.run("%reload_ext agent_magics")
    said = ""
    for _ in range(10):
        said = notebook.run(QUESTION)
        if "was not compacted" in said:
            break
    assert "The context was not compacted: The summary by scripted:" in said
    assert said.index("was not compacted") < said.index("a long answer")
    assert "%, past the threshold: %compact or %slot new makes room" in said
    assert "past the threshold by " in notebook.run("%context")


@pytest.mark.req("C15")
def test_turns_left_out_without_a_summary_are_said_once(notebook: Notebook, script: Script) -> None:
    """The line doesn't call it a summary; `%context` marks it."""
    overflow = {"error": {"kind": "overflow", "window": 3_000, "used": 4_000}}
    lost = {"purpose": "compaction", "error": "connection"}
    script(LONG, LONG, LONG, overflow, lost, lost, lost, lost, "here", context_window=8_000)
    notebook.run("%reload_ext agent_magics")
    for _ in range(3):
        notebook.run(QUESTION)
    said = notebook.run(QUESTION)
    assert said.count("Older turns were left out without a summary") == 1
    assert "now a summary" not in said
    assert "here" in said
    shown = notebook.run("%context")
    assert re.search(r"last compaction \(overflow.*\): .* turns? left out without a summary", shown)


@pytest.mark.req("N5", "C14")
def test_compact_tells_the_plan_and_the_deed(long: Notebook) -> None:
    """The plan changes nothing; the deed is one line, and the log stays."""
    history = long.session.history()
    plan = long.run("%compact --dry-run")
    assert plan.startswith("plan for default; no model was asked, nothing changed\n")
    summarised, cut = re.search(r"summary +(\d+) turns?, before seq (\d+)", plan).groups()  # type: ignore[union-attr]
    stays = re.search(rf"stays as it is +(\d+) turns?, from seq {cut} on", plan)
    assert stays is not None
    assert int(summarised) + int(stays.group(1)) == 6
    assert long.session.context_info().checkpoint_id is None
    used = long.session.context_info().used
    said = long.run("%%compact\nKeep the numbers.")
    assert re.fullmatch(
        rf"{used:,} → [\d,]+ tokens, kept {stays.group(1)} turns? from seq {cut},"
        r" raw history unchanged\n",
        said,
    )
    assert long.session.history() == history


@pytest.mark.req("N5", "dec37")
def test_an_undo_goes_back_and_deletes_nothing(long: Notebook) -> None:
    """The request is what it was; a second undo says that there is none."""
    view = long.view()
    assert (
        long.run("%compact --undo") == "no compaction of default is active that could be undone\n"
    )
    long.run("%compact")
    assert long.view() != view
    assert "undo: %compact --undo" in long.run("%context")
    said = long.run("%compact --undo")
    assert said.startswith("back to the raw history: ")
    assert long.view() == view
    assert "last compaction" not in long.run("%context")
    assert long.run("%compact --dry-run --undo", fails=True).count("keep one") == 1
    assert "--undo takes no body" in long.run("%%compact --undo\nthe numbers", fails=True)


@pytest.mark.req("N5", "N9")
@pytest.mark.parametrize("source", ["%compact --dry-run", "%compact", "%%compact\nkeep numbers"])
def test_nothing_to_compact_stops_no_run(notebook: Notebook, source: str) -> None:
    """The reason is an answer, not an error; in Python it is raised."""
    said = notebook.run(source)
    assert said == 'Nothing to compact in "default": it has no turns yet.\n'
    notebook.run("import agent_magics as a; a.run(a.current().compact())", fails=True)
    assert 'Nothing to compact in "default"' in notebook.said


@pytest.mark.req("N4", "S5")
def test_a_slot_is_derived_at_a_turn_of_a_compacted_parent(long: Notebook) -> None:
    """Before the cut the child has the raw history, behind it the parent's summary."""
    long.run("%compact")
    cut = long.session.context_info().turns_behind
    long.run("%slot derive early --at 1")
    assert [len(long.session.turns("early")), long.session.context_info("early").turns_behind] == [
        1,
        0,
    ]
    assert "kept" not in long.view("early")[0]
    long.run(f"%slot derive late --at {cut + 1}")
    assert len(long.session.turns("late")) == cut + 1
    assert long.session.context_info("late").turns_behind == cut
    assert "kept" in long.view("late")[0]


@pytest.mark.req("N2", "C4", "C5")
def test_settings_reach_the_next_request_of_the_same_session(
    long: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing binds a session to a terminal, and the conversation goes on all the same."""
    session = long.session.session_id
    long.run("%config AgentMagics.context_limit = 6000")
    long.run("%config AgentMagics.reserve_tokens = 2000")
    long.run("%config AgentMagics.keep_recent_tokens = 700")
    long.run("%config AgentMagics.auto_compact = False")
    long.run("%config AgentMagics.compact_model = 'scripted:nowhere.yaml'")
    assert "of 6,000 tokens · compacts past 4,000" in long.run("%context")
    assert long.session.session_id == session
    assert len(long.session.turns()) == 6
    assert long.session.context_info().limits.keep == 700
    said = "".join(long.run(QUESTION) for _ in range(4))
    assert "ompacted" not in said
    assert "past the threshold" in said
    assert "nowhere.yaml" in long.run("%compact", fails=True)
    long.run("%config AgentMagics.context_limit = None")
    monkeypatch.setenv("AGENT_MAGICS_CONTEXT_LIMIT", "7000")
    long.run("%config AgentMagics.keep_recent_tokens = 800")
    assert "of 7,000 tokens" in long.run("%context")
    said = long.run("%config AgentMagics.keep_recent_tokens = 0")
    assert "keep_recent_tokens stays as it was: 0 tokens can't be used; give 1 or more." in said
    assert long.session.context_info().limits.keep == 800


@pytest.mark.req("C7", "N10")
@pytest.mark.parametrize("limit", [10, 900])
def test_a_limit_that_nothing_fits_is_named(notebook: Notebook, limit: int) -> None:
    """It is what keeps the window small, not the model."""
    notebook.run(f"%config AgentMagics.context_limit = {limit}")
    said = notebook.run(f"%agent {'word ' * 2_000}", fails=True)
    assert f"raise context_limit, which is {limit}" in said
    assert "use a model" not in said


@pytest.mark.req("C7", "C15")
def test_what_does_not_fit_is_named_with_remedies() -> None:
    """The largest part first, small ones not at all; an overflow names what makes room here."""
    fixed = FixedContextExceedsBudget(
        {"system": 20, "memories": 400, "tools": 3_310, "media": 0}, 3_000
    )
    remedies = sentence_of(fixed).removeprefix(fixed.message)
    assert remedies.startswith(" Tools: delete functions")
    assert remedies.endswith(" Memories: delete facts of session.memory.")
    assert "System" not in remedies
    overflow = sentence_of(NothingHelped("Too long."))
    for remedy in ("%compact", "%slot new", "%agent undo"):
        assert remedy in overflow
    assert sentence_of(InputValidation("Blank.")) == "Blank."


@pytest.mark.req("C15")
def test_an_overflow_that_nothing_cures_says_what_to_do(notebook: Notebook, script: Script) -> None:
    """The cell fails with the parts and the remedies."""
    overflow: dict[str, Any] = {"error": {"kind": "overflow"}}
    script("hello", overflow, overflow, repeat=False)
    notebook.run("%reload_ext agent_magics\n%agent hi")
    said = notebook.run("%agent more", fails=True)
    assert "%agent undo takes the last one out of the view" in said
    assert "Traceback" not in said


@pytest.mark.req("Y3", "Y4")
def test_a_failed_automatic_summary_is_a_line() -> None:
    """One that was written says nothing: nobody has to act on it."""
    stream = StringIO()
    with AnswerDisplay(Terminal(stream)) as view:
        for payload in (
            SummaryWritten(slot_id="default", characters=40),
            SummaryFailed(slot_id="default", message="The model refused."),
        ):
            view.feed(
                AgentEvent(
                    session_id="s",
                    slot_id="default",
                    turn_id="t",
                    sequence=1,
                    created_at=datetime.now(UTC),
                    payload=payload,
                )
            )
    assert stream.getvalue() == "No automatic summary was written: The model refused.\n"


INFO = ContextInfo(
    slot_id="default",
    model="scripted:x",
    limits=Limits(
        window=8_000,
        reserve=4_000,
        keep=2_000,
        threshold=4_000,
        configured_reserve=16_384,
        configured_keep=20_000,
    ),
    parts={},
    used=3_000,
    remaining=1_000,
    source="estimated",
)


LIMITS = "reserve: 4,000 (set: 16,384) · newest turns kept as they are: 2,000 (set: 20,000)"


@pytest.mark.parametrize(
    ("facts", "notes"),
    [
        ({}, ["estimated"]),
        ({"source": "measured"}, ["measured: the model's server counted this very request"]),
        (
            {"factor": 1.034, "last_measured": 65_210},
            [
                (
                    "estimated (\u00d7 1.03, learnt from this model)"
                    " · the last request was measured: 65,210"
                )
            ],
        ),
        (
            {"used": 4_001},
            ["estimated", "past the threshold by 1: %compact summarises older turns now"],
        ),
        (
            {"clipped_results": 2},
            ["estimated", "2 old tool results are shortened in the request; the log has all of it"],
        ),
        (
            {
                "checkpoint_id": "c",
                "tokens_before": 9_000,
                "tokens_after": 700,
                "degraded": True,
                "reason": "overflow",
                "compacted_at": datetime.now(UTC),
                "turns_behind": 1,
            },
            [
                "estimated",
                (
                    "last compaction (overflow): 9,000 → 700 tokens,"
                    " 1 turn left out without a summary · undo: %compact --undo"
                ),
            ],
        ),
        (
            {
                "checkpoint_id": "c",
                "tokens_before": 9_000,
                "tokens_after": 700,
                "turns_behind": 2,
                "is_turn_cut": True,
            },
            [
                "estimated",
                (
                    "last compaction: 9,000 → 700 tokens,"
                    " 2 turns and the beginning of the next behind it · undo: %compact --undo"
                ),
            ],
        ),
        (
            {"checkpoint_id": "c", "degraded": True, "is_turn_cut": True},
            [
                "estimated",
                (
                    "last compaction: 0 → 0 tokens, the beginning of a long turn left out without"
                    " a summary · undo: %compact --undo"
                ),
            ],
        ),
    ],
    ids=["plain", "measured", "learnt", "over", "clipped", "degraded", "cut", "only cut"],
)
@pytest.mark.req("C18", "N6")
def test_the_notes_of_a_budget(facts: dict[str, Any], notes: list[str]) -> None:
    """Each is a line, and with nobody there none has a time."""
    info = msgspec.structs.replace(INFO, **facts)
    first, *others = notes
    assert list(budget_notes(info, is_exact=False)) == [first, LIMITS, *others]


@pytest.mark.req("C16")
def test_the_notes_tell_what_is_used_of_each_share() -> None:
    """Beside the limits, in the words of the parts."""
    shares = (
        Share(name="history", used=1_764, tokens=5_000),
        Share(name="tool_results", used=0, tokens=1_250),
    )
    notes = budget_notes(msgspec.structs.replace(INFO, shares=shares), is_exact=False)
    assert notes[2] == "shares: history 1,764 of 5,000 · tool results 0 of 1,250"


@pytest.mark.req("C18")
def test_what_is_set_is_said_once_where_it_holds() -> None:
    """Only a limit that a small window made tighter is told beside what was set."""
    limits = msgspec.structs.replace(INFO.limits, configured_reserve=4_000, configured_keep=2_000)
    notes = budget_notes(msgspec.structs.replace(INFO, limits=limits), is_exact=False)
    assert notes[1] == "reserve: 4,000 · newest turns kept as they are: 2,000"


@pytest.mark.req("C18", "N6")
def test_context_shows_every_number_of_the_budget(long: Notebook) -> None:
    """Window, reserve, keep, threshold, parts, what is free, and what the compaction did."""
    long.run("%compact")
    info = long.session.context_info()
    said = long.run("%context")
    limits = info.limits
    assert limits.reserve < limits.configured_reserve
    assert limits.keep < limits.configured_keep
    numbers = [getattr(limits, name) for name in limits.__struct_fields__ if name != "held_by"]
    numbers += [info.used, info.remaining, info.tokens_before, info.tokens_after]
    numbers += [tokens for tokens in info.parts.values() if tokens]
    assert [number for number in numbers if f"{number:,}" not in said] == []
    assert "estimated" in said
    assert f"{info.turns_behind} turns behind it" in said


@pytest.mark.req("C18")
def test_the_last_compaction_has_its_time_where_somebody_is_there() -> None:
    """With its day, where that isn't today."""
    info = msgspec.structs.replace(INFO, checkpoint_id="c", reason="auto")
    now = datetime.now(UTC)
    for at, form in ((now, r"auto, \d\d:\d\d"), (now - timedelta(days=3), r"auto, [\d-]{10} .{5}")):
        notes = budget_notes(msgspec.structs.replace(info, compacted_at=at), is_exact=True)
        assert re.match(rf"last compaction \({form}\): ", notes[-1])
