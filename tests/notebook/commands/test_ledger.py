"""`%ledger`: shown, searched, given as a frame, written to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter

import agent_magics
from agent_magics.dataframes.columns import EVENT_COLUMNS
from tests.notebook.conftest import Notebook

PING = """
import agent_magics
@agent_magics.tool
def rain(city: str) -> str:
    return f"12 mm in {city}"
"""
STEPS: tuple[Any, ...] = (
    {
        "text": "Let me look.",
        "calls": [{"name": "rain", "arguments": {"city": "Oslo"}}],
        "usage": {"input_tokens": 1_412, "output_tokens": 230},
    },
    "It rained **12 mm**.",
    "Take an umbrella.",
    "Or stay at home.",
    "No.",
)


@pytest.fixture
def told(notebook: Notebook, script: Callable[..., None]) -> Notebook:
    """Two turns in `default`, the first with a tool call, and one in a slot derived from it."""
    script(*STEPS)
    notebook.run("%unload_ext agent_magics")
    notebook.run(f"%load_ext agent_magics\n{PING}")
    notebook.run("%agent Did it rain in Oslo?")
    notebook.run("%slot derive side")
    notebook.run("%agent And what shall I do?")
    notebook.run("%agent --slot side What else?")
    return notebook


@pytest.mark.req("N6")
def test_it_shows_the_last_events(told: Notebook) -> None:
    """A line each, with slot, turn, kind and words; and how many there are."""
    said = told.run("%ledger --last 4").splitlines()
    count = len(told.session.frames.events())
    assert said[0] == f"the last 4 of {count} events · more: --last N, --df"
    assert said[-2].split()[-7:-5] == ["side", "2"]
    assert said[-2].endswith("assistant_message  Or stay at home.")
    assert len(told.run("%ledger --last 1000").splitlines()) == count + 1
    told.run("\n".join(f"%slot new more-{number}" for number in range(8)))
    assert len(told.run("%ledger").splitlines()) == 21


@pytest.mark.req("N6")
def test_a_line_says_what_came_of_it(told: Notebook) -> None:
    """Calls with their arguments, results with their mark, requests with their tokens."""
    said = told.run("%ledger --turn 1 --slot default")
    assert 'rain {"city":"Oslo"}' in said
    assert "12 mm in Oslo" in said
    assert "✓" in said
    assert "turn · scripted:" in said
    assert "1,412 → 230 tokens" in said


FILTERS = {
    "--find OSLO rained": [],
    "--find rain oslo": ["tool_call", "tool_result", "user_message"],
    "--find=umbrella": ["assistant_message"],
    "--kind tool_call,tool_result": ["tool_call", "tool_result"],
    "--kind user_message --slot side": ["user_message"],
    "--find what else --kind user_message": ["user_message"],
}


@pytest.mark.req("N6")
@pytest.mark.parametrize("line", FILTERS)
def test_events_are_found(told: Notebook, line: str) -> None:
    """By all words, whatever their case, by kind, slot and turn, together."""
    told.run(f"df = %ledger --df {line}")
    frame = told.shell.user_ns["df"]
    assert sorted(frame["kind"]) == FILTERS[line]


@pytest.mark.req("N6", "D1")
def test_it_gives_a_data_frame(told: Notebook) -> None:
    """The same frame as `session.frames.events()`, filtered or whole."""
    told.run("df = %ledger --df")
    frame = told.shell.user_ns["df"]
    pd.testing.assert_frame_equal(frame, told.session.frames.events())
    told.run("some = %ledger --df --slot side")
    some = told.shell.user_ns["some"]
    assert {name: str(dtype) for name, dtype in some.dtypes.items()} == dict(EVENT_COLUMNS)
    assert set(some["slot"]) == {"side"}
    assert list(some.index) == list(range(len(some)))


@pytest.mark.req("N6", "dec8")
def test_a_turn_is_found_along_the_lineage(told: Notebook) -> None:
    """Turn 1 of a child is its parent's; without a slot it is the current slot's."""
    told.run("of_child = %ledger --df --slot side --turn 1")
    told.run("of_parent = %ledger --df --turn 1")
    ns = told.shell.user_ns
    assert ns["of_child"]["seq"].tolist() == ns["of_parent"]["seq"].tolist()
    assert set(ns["of_child"]["slot"]) == {"default"}
    told.run("second = %ledger --df --slot side --turn 2")
    assert "What else?" in ns["second"]["text"].tolist()


MISTAKES = {
    "--slot sied": "There is no slot 'sied'. Did you mean side? Slots here: default, side.",
    "--kind tool_cal": "There is no kind 'tool_cal'. Did you mean tool_call?",
    "--turn 9": 'Slot "default" has no turn 9; its turns are 1 to 2.',
    "rain": "%ledger can't use 'rain': %ledger [--find WORDS]",
    "--df --csv x.csv": "--df and --csv of %ledger can't both hold; keep one.",
    "--md x.md --find a": "--md writes the whole conversation of a slot; leave --find out.",
    "--force": "--force of %ledger goes with --md or --csv.",
    "--df --last 3": "--last of %ledger is for showing; leave it out beside --df.",
    "--md": "--md of %ledger needs FILE after it.",
}


@pytest.mark.req("N6")
@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_sentence(told: Notebook, line: str) -> None:
    """It names what would be valid."""
    said = told.run(f"%ledger {line}", fails=True)
    assert MISTAKES[line] in said
    assert "Traceback" not in said


@pytest.mark.req("N6")
def test_an_empty_ledger_is_a_sentence(notebook: Notebook) -> None:
    """What is there before a first question is shown as it is; nothing that matches, too."""
    said = notebook.run("%ledger")
    assert "slot_changed" in said
    assert notebook.run("%ledger --kind usage").startswith("No event matches, of ")


@pytest.mark.req("N6")
def test_the_conversation_is_written_as_markdown(told: Notebook, tmp_path: Path) -> None:
    """Questions quoted, answers as they are, calls folded with what came of them."""
    path = tmp_path / "talk.md"
    said = told.run(f"%ledger --md {path}")
    assert said == f"{path}: 2 turns of default\n"
    text = path.read_text()
    assert "Slot `default` · 2 turns · `scripted:" in text
    assert "## Turn 1\n" in text
    assert "**You**\n\n> Did it rain in Oslo?\n" in text
    assert "\nIt rained **12 mm**.\n" in text
    assert "<details><summary><code>rain</code> {&quot;city&quot;:&quot;Oslo&quot;} ✓" in text
    assert "```text\n12 mm in Oslo\n```" in text
    assert text.index("## Turn 2") < text.index("Take an umbrella.")
    assert "What else?" not in text


@pytest.mark.req("N6")
def test_a_childs_conversation_begins_with_its_parents(told: Notebook, tmp_path: Path) -> None:
    """What it inherited is part of it."""
    path = tmp_path / "side talk.md"
    told.run(f'%ledger --md "{path}" --slot side')
    text = path.read_text()
    assert "Did it rain" in text
    assert "What else?" in text
    assert "And what shall I do?" not in text


@pytest.mark.req("N6")
@pytest.mark.parametrize("way", ["--md", "--csv"])
def test_no_file_is_written_over_without_a_word(told: Notebook, tmp_path: Path, way: str) -> None:
    """`--force` is the word; nothing half-written is left."""
    path = tmp_path / "mine.txt"
    path.write_text("precious")
    said = told.run(f"%ledger {way} {path}", fails=True)
    assert f"There is a file {path} already; --force (in Python overwrites=True) writes" in said
    assert path.read_text() == "precious"
    told.run(f"%ledger {way} {path} --force")
    assert "Oslo" in path.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


PLACES = {
    "nowhere/x.md": "There is no folder",
    ".": "is a folder; give the name of a file.",
}


@pytest.mark.req("N6")
@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_can_not_be_written_is_one_sentence(
    told: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Nothing is made on the way."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert PLACES[place] in told.run(f"%ledger --md {place}", fails=True)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.req("N6", "D2")
def test_events_are_written_as_csv(told: Notebook, tmp_path: Path) -> None:
    """What a filter lets through, with the columns of the frame."""
    path = tmp_path / "events.csv"
    said = told.run(f"%ledger --csv {path} --kind user_message")
    assert said == f"{path}: 3 events\n"
    read = pd.read_csv(path)
    assert list(read.columns) == list(EVENT_COLUMNS)
    assert read["text"].tolist() == ["Did it rain in Oslo?", "And what shall I do?", "What else?"]


@pytest.mark.req("N6")
def test_what_others_wrote_is_text_in_the_table(told: Notebook) -> None:
    """No tag of a question, an answer or a result reaches a page as one."""
    from agent_magics.notebook.views.ledger.rows import LedgerRows, Query
    from agent_magics.notebook.views.ledger.text import ledger_html, ledger_text, shown_of

    told.run("%agent <img src=x onerror=alert(1)>\x1b[31m or not")
    rows = LedgerRows(*told.session.frames.states())
    shown = shown_of(rows, Query(), last=20, is_exact=False)
    assert "<img" not in ledger_html(shown)
    assert "&lt;img src=x" in ledger_html(shown)
    assert "\x1b" not in ledger_text(shown)
    assert "time" not in ledger_html(shown)


@pytest.mark.req("N6")
def test_no_folder_of_this_machine_is_saved(told: Notebook) -> None:
    """Outputs are shared; a model that is a file is shown by its name."""
    told.run(f"%agent model {told.session.model}")  # which is noted in the ledger
    said = told.run("%ledger --last 1000")
    assert "session_config: scripted:script.yaml" in said
    assert "/script.yaml" not in said


@pytest.mark.req("N10")
def test_kinds_and_slots_complete(told: Notebook) -> None:
    """Behind their options."""
    assert completed(told, "%ledger --kind tool_") == ["tool_call", "tool_result"]
    assert completed(told, "%ledger --slot si") == ["side"]


def completed(told: Notebook, line: str) -> list[str]:
    with provisionalcompleter():
        return [each.text for each in told.shell.Completer.completions(line, len(line))]


@pytest.mark.req("D1")
def test_frames_of_all_sessions_are_of_this_notebooks_store(told: Notebook, tmp_path: Path) -> None:
    """`%config AgentMagics.store` says which, environment and default are behind it."""
    assert agent_magics.frames().turns()["slot"].tolist() == ["default", "default", "side"]
    told.run(f"%config AgentMagics.store = {str(tmp_path / 'other.db')!r}")
    assert len(agent_magics.frames().turns()) == 0
