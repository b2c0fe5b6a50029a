"""Recordings beside a notebook: its cells answer again, and nobody is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.conftest import Notebook

Script = Callable[..., None]
REFUSING = {"error": "auth"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notebook's folder; nothing is recorded in it yet."""
    made = tmp_path / "notebooks"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def recorded(folder: Path, notebook: Notebook) -> Notebook:
    """A notebook that was loaded in that folder, with recording on."""
    notebook.run("%reload_ext agent_magics")
    notebook.run('%config AgentMagics.recording = "auto"')
    return notebook


def run_all(notebook: Notebook, cells: dict[str, str]) -> dict[str, str]:
    """Restart and run all: a new session, each cell once, as a front end sends it."""
    notebook.run("%reload_ext agent_magics")
    return {cell: notebook.run(source, cell=cell) for cell, source in cells.items()}


def takes(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line["type"] == "take"]


CELLS = {
    "set": '%config AgentMagics.recording = "auto"',
    "a": "%%agent\none",
    "b": "%slot derive option --switch",
    "c": "%agent two",
    "d": "%slot switch default",
    "e": "%agent three",
}


def view_of(notebook: Notebook) -> list[list[str]]:
    return [notebook.view("default"), notebook.view("option")]


@pytest.mark.req("P4", "dec61", "N10")
def test_auto_asks_once_and_replays_from_then_on(
    folder: Path, notebook: Notebook, script: Script
) -> None:
    """The same cells in a new kernel have the same answers, though the model refuses by now."""
    run_all(notebook, CELLS)
    first = view_of(notebook)
    assert first[0] == ["one", "answer 1", "three", "answer 3"]
    script(REFUSING, repeat=True)
    for _ in range(2):
        run_all(notebook, CELLS)
        assert view_of(notebook) == first
    assert len(takes(folder / "agent.recording.jsonl")) == 3


@pytest.mark.req("P4", "dec61")
def test_a_changed_cell_asks_again_with_what_follows_from_it(
    folder: Path, notebook: Notebook, script: Script
) -> None:
    """What was derived before it, and so doesn't have it in its history, replays."""
    run_all(notebook, CELLS)
    script("new 1", "new 2", REFUSING)
    run_all(notebook, {**CELLS, "e": "%agent four", "f": "%agent five"})
    assert notebook.view("option") == ["one", "answer 1", "two", "answer 2"]
    assert notebook.view("default")[-4:] == ["four", "new 1", "five", "new 2"]
    script(*[f"other {number}" for number in range(1, 6)])
    run_all(notebook, {**CELLS, "a": "%agent one and a half"})
    assert notebook.view("default") == ["one and a half", "other 1", "three", "other 3"]


@pytest.mark.req("P4", "dec61")
def test_a_cell_that_runs_again_has_its_answer_again(
    recorded: Notebook, script: Script, folder: Path
) -> None:
    """In the same kernel, too; `retry` wants another one, and has it recorded as well."""
    recorded.run("%agent one", cell="a")
    recorded.run("%agent one", cell="a")
    assert recorded.view() == ["one", "answer 1"]
    recorded.run("%agent retry", cell="b")
    assert recorded.view() == ["one", "answer 2"]
    script(REFUSING, repeat=True)
    run_all(recorded, {"a": "%agent one", "b": "%agent retry"})
    assert recorded.view() == ["one", "answer 2"]
    assert len(takes(folder / "agent.recording.jsonl")) == 2


@pytest.mark.req("P4", "B5")
def test_slots_that_are_asked_at_once_keep_their_answers(
    folder: Path, notebook: Notebook, script: Script
) -> None:
    """Both ask the very same; each has its own answer again."""
    cells = {
        "set": '%config AgentMagics.recording = "auto"',
        "slots": "%slot new a\n%slot new b",
        "ask": "%%agent --slots a,b\nwhich?",
    }
    views = []
    for _ in range(3):
        run_all(notebook, cells)
        views.append([notebook.view("a"), notebook.view("b")])
        script(REFUSING, repeat=True)
    assert sorted(view[1] for view in views[0]) == ["answer 1", "answer 2"]
    assert views[0] == views[1] == views[2]
    assert len(takes(folder / "agent.recording.jsonl")) == 2


@pytest.mark.req("P4")
def test_record_puts_the_new_answer_in_the_place_of_the_old(
    recorded: Notebook, folder: Path
) -> None:
    """What stands in the notebook last is what replays."""
    recorded.run('%config AgentMagics.recording = "record"')
    recorded.run("%agent one", cell="a")
    recorded.run("%agent one", cell="a")
    assert recorded.view() == ["one", "answer 2"]
    (take,) = takes(folder / "agent.recording.jsonl")
    assert "".join(take["answer"][0]["pieces"]) == "answer 2"


@pytest.mark.req("P4", "dec61")
def test_replay_needs_no_model_and_no_key(
    recorded: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that isn't named is the recording's; what isn't in it is refused in a sentence."""
    recorded.run("%agent one", cell="a")
    monkeypatch.delenv("AGENT_MAGICS_MODEL")
    recorded.run('%config AgentMagics.recording = "replay"')
    assert "agent_magics · scripted:script.yaml · " in recorded.run("%reload_ext agent_magics")
    assert "answer 1" in recorded.run("%agent one", cell="a")
    said = recorded.run("%agent two", cell="b", fails=True)
    assert 'The recording "agent.recording.jsonl" has no answer to this request' in said
    assert len(said.splitlines()) == 1


@pytest.mark.req("P4")
def test_replay_without_a_recording_says_how_to_make_one(
    folder: Path, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where none is named and others lie there; nobody is asked for a model."""
    monkeypatch.delenv("AGENT_MAGICS_MODEL")
    monkeypatch.setenv("AGENT_MAGICS_RECORDING", "replay")
    for name in ("a", "b"):
        (folder / f"{name}.recording.jsonl").touch()
    notebook.run("%reload_ext agent_magics")
    said = notebook.run("%agent one", fails=True)
    assert said == (
        'There is no recording "agent.recording.jsonl" to replay; make one with recording = "auto"'
        " or name one of these in recording_file: a.recording.jsonl, b.recording.jsonl.\n"
    )
    notebook.run('%config AgentMagics.recording_file = "c.recording.jsonl"')
    assert '"c.recording.jsonl"' in notebook.run("%agent one", fails=True)


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("there", "path", "used"),
    [
        ((), None, "agent.recording.jsonl"),
        (("x.recording.jsonl",), None, "x.recording.jsonl"),
        (("x.recording.jsonl", "y.recording.jsonl"), None, "agent.recording.jsonl"),
        (("x.recording.jsonl",), "churn.ipynb", "churn.recording.jsonl"),
    ],
    ids=["none", "the only one", "one of two", "the notebook's own"],
)
def test_a_recording_lies_beside_its_notebook(
    folder: Path,
    notebook: Notebook,
    monkeypatch: pytest.MonkeyPatch,
    there: tuple[str, ...],
    path: str | None,
    used: str,
) -> None:
    """Its path where the server tells it, else the only one in the folder; `%agent model` says."""
    for name in there:
        (folder / name).touch()
    if path:
        monkeypatch.setenv("JPY_SESSION_NAME", path)
    monkeypatch.setenv("AGENT_MAGICS_RECORDING", "auto")
    notebook.run("%reload_ext agent_magics")
    notebook.run("%agent hello")
    assert len(takes(folder / used)) == 1
    assert f'recording: auto, "{used}" (1 answer)\n' in notebook.run("%agent model")


@pytest.mark.req("P4", "dec61", "N13")
def test_a_replay_spends_nothing(recorded: Notebook, script: Script) -> None:
    """The tokens are the recorded ones, the ledger says that nobody was asked for them."""
    script({"text": "x", "usage": {"input_tokens": 900, "output_tokens": 100}})
    recorded.run("%reload_ext agent_magics")
    recorded.run('%config AgentMagics.recording = "auto"')
    recorded.run("%agent one", cell="a")
    before = recorded.session._open_session.loaded.spent
    said = recorded.run("%agent one", cell="a")
    after = recorded.session._open_session.loaded.spent
    assert "900 → 100 tokens" in said
    assert (before.requests, before.tokens, before.replayed) == (1, 1000, 0)
    assert (after.requests, after.tokens, after.replayed) == (1, 1000, 1)


@pytest.mark.req("P4")
def test_a_difference_is_an_error_where_that_is_wanted(recorded: Notebook, script: Script) -> None:
    """`recording_strict` stops a replay whose tool results aren't the recorded ones."""
    script({"calls": [{"name": "look", "arguments": {}}]}, "it is {value}")
    recorded.run("%reload_ext agent_magics")
    tool = "import agent_magics\n@agent_magics.tool\ndef look() -> str:\n    'Look.'\n    return "
    recorded.run(f"{tool}'red'")
    recorded.run('%config AgentMagics.recording = "auto"')
    recorded.run("%agent one", cell="a")
    recorded.run(f"{tool}'blue'")
    assert "it is" in recorded.run("%agent one", cell="a")
    recorded.run("%config AgentMagics.recording_strict = True")
    assert "Replay stopped: tool results" in recorded.run("%agent one", cell="a", fails=True)


@pytest.mark.req("P4", "dec61")
def test_what_the_last_run_left_is_not_part_of_the_question(
    recorded: Notebook, script: Script
) -> None:
    """A session's facts stay when its turns are rewound; the first cell replays all the same."""
    cells = {"a": "%agent one", "b": "%memory set region EMEA", "c": "%agent two"}
    for cell, source in cells.items():
        recorded.run(source, cell=cell)
    script(REFUSING, repeat=True)
    for cell, source in cells.items():
        recorded.run(source, cell=cell)
    assert recorded.view() == ["one", "answer 1", "two", "answer 2"]


HEADINGS = (
    "Objective",
    "Constraints",
    "Progress",
    "Decisions",
    "Files and Operations",
    "Tool Results and Failures",
    "Outstanding Work",
    "Exact Facts",
    "Recent User Corrections",
)


@pytest.mark.req("P4", "dec51", "dec61")
def test_compactions_replay_at_the_same_turns(
    folder: Path, notebook: Notebook, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the resumed session has learnt what this model's tokens weigh."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    summary = {"text": "\n".join(f"## {each}\nx" for each in HEADINGS), "purpose": "compaction"}
    counts = [{"input_tokens": 1_500 + 600 * turn, "output_tokens": 300} for turn in range(9)]
    script(
        *[summary] * 5,
        *[{"text": "word " * 300, "usage": usage} for usage in counts],
        context_window=6_000,
    )
    cells = {
        "set": '%config AgentMagics.recording = "auto"\n'
        "%config AgentMagics.keep_recent_tokens = 1_000\n"
        "%config AgentMagics.kernel_tools = False",
        **{f"q{turn}": f"%agent question {turn} {'blah ' * 300}" for turn in range(9)},
    }
    runs = []
    for _ in range(3):
        said = run_all(notebook, cells)
        runs.append([cell for cell in cells if "now a summary" in said[cell]])
        script(REFUSING, repeat=True, context_window=6_000)
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0]) > 2


@pytest.mark.req("P4")
def test_a_recording_that_is_deleted_begins_anew(
    recorded: Notebook, script: Script, folder: Path
) -> None:
    """In the running kernel; so does one that git has brought."""
    recorded.run("%agent one", cell="a")
    path = folder / "agent.recording.jsonl"
    kept = path.read_bytes()
    path.unlink()
    recorded.run("%agent one", cell="a")
    assert recorded.view() == ["one", "answer 2"]
    path.write_bytes(kept)
    recorded.run("%agent one", cell="a")
    assert recorded.view() == ["one", "answer 1"]


@pytest.mark.req("P4")
def test_an_answer_that_cannot_be_written_down_is_given(recorded: Notebook, folder: Path) -> None:
    """With a warning that names the file."""
    recorded.run('%config AgentMagics.recording_file = "nowhere/x.jsonl"')
    recorded.run("1", cell="b")
    (folder / "nowhere").write_text("")
    said = recorded.run("%agent one", cell="a")
    assert "answer 1" in said
    assert 'The recording "x.jsonl" can\'t be written' in said


@pytest.mark.req("P4", "N10")
def test_a_word_that_is_no_mode_is_refused(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sentence that names those there are."""
    monkeypatch.setenv("AGENT_MAGICS_RECORDING", "on")
    assert 'There is no recording "on"' in notebook.run("%agent one", fails=True)
