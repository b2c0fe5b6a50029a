"""Going back: cells that run again, undo and redo, sessions found again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebook.conftest import Notebook


@pytest.mark.req("N3", "dec54")
def test_turns_are_undone_redone_and_tried_again(notebook: Notebook) -> None:
    """undo goes back one, redo forward until the next turn, retry asks the same."""
    notebook.run("%agent one")
    notebook.run("%agent two")
    notebook.run("%agent undo")
    notebook.run("%agent undo")
    assert notebook.view() == []
    notebook.run("%agent redo")
    assert notebook.view() == ["one", "answer 1"]
    notebook.run("%agent redo")
    assert notebook.view() == ["one", "answer 1", "two", "answer 2"]
    notebook.run("%agent retry")
    assert notebook.view() == ["one", "answer 1", "two", "answer 3"]
    notebook.run("%agent redo")
    assert notebook.view() == ["one", "answer 1", "two", "answer 2"]
    notebook.run("%agent undo")
    notebook.run("%agent three")
    assert "nothing to redo" in notebook.run("%agent redo")


@pytest.mark.req("N3", "N9")
def test_nothing_to_undo_or_redo_stops_no_run(notebook: Notebook) -> None:
    """It is said, the cell succeeds."""
    assert notebook.run("%agent undo") == 'There is no turn to undo in "default".\n'
    assert notebook.run("%agent redo") == 'There is nothing to redo in "default".\n'


@pytest.mark.req("N9", "dec51")
def test_a_cell_that_runs_again_takes_its_turns_place(notebook: Notebook) -> None:
    """The view is as if it ran once; one line says what left and how to get it back."""
    notebook.run("%agent one", cell="a")
    notebook.run("%agent two", cell="b")
    notebook.run("%agent three", cell="c")
    said = notebook.run("%agent one", cell="a")
    assert "2 later turns left the view (%agent redo brings them back)\n" in said
    assert notebook.view() == ["one", "answer 4"]
    notebook.run("%agent redo", cell="d")
    assert notebook.view() == ["one", "answer 1", "two", "answer 2", "three", "answer 3"]


@pytest.mark.req("N9", "dec51")
def test_a_cell_whose_text_changed_is_told_of_new_cells(notebook: Notebook) -> None:
    """People use one cell as a chat box; the line says what continues the conversation."""
    notebook.run("%agent one", cell="a")
    said = notebook.run("%agent another", cell="a")
    assert (
        "this cell's earlier turn left the view (%agent redo brings it back);"
        " to ask after it, use a new cell\n"
    ) in said
    assert notebook.view() == ["another", "answer 2"]
    assert "left the view" not in notebook.run("%agent another", cell="a")


@pytest.mark.req("N9", "dec51")
def test_later_turns_and_a_changed_text_are_told_in_one_line(notebook: Notebook) -> None:
    """How many left, how they come back, and where to ask after them."""
    for cell in ("a", "b", "c"):
        notebook.run(f"%agent {cell}", cell=cell)
    assert (
        "2 later turns left the view (%agent redo brings them back);"
        " to ask after them, use a new cell\n"
    ) in notebook.run("%agent changed", cell="a")


@pytest.mark.req("N9", "dec54")
def test_redo_after_a_rerun_says_what_left(notebook: Notebook) -> None:
    """The newer turn goes when the earlier one comes back: one step, told."""
    for text in ("one", "two", "three"):
        notebook.run(f"%agent {text}", cell="a")
    said = notebook.run("%agent redo", cell="b")
    assert "1 turn in view again (was 1); the turn that took its place left the view (" in said
    assert notebook.view() == ["two", "answer 2"]
    said = notebook.run("%agent redo", cell="b")
    assert "that is the newest; the earlier one left the view (%ledger shows it)\n" in said
    assert notebook.view() == ["three", "answer 3"]
    assert "nothing to redo" in notebook.run("%agent redo", cell="b")
    notebook.run("%agent undo", cell="b")
    assert "left the view" not in notebook.run("%agent redo", cell="b")
    assert notebook.view() == ["three", "answer 3"]


@pytest.mark.req("N3", "dec51", "dec54")
@pytest.mark.parametrize(
    ("commands", "view"),
    [
        ("retry redo", ["one", "answer 1"]),
        ("retry redo redo", ["one", "answer 2"]),
        ("retry redo undo redo redo", ["one", "answer 2"]),
        ("retry redo undo", []),
        ("retry retry redo redo", ["one", "answer 3"]),
        ("retry redo retry redo redo", ["one", "answer 3"]),
        ("retry undo redo", ["one", "answer 2"]),
    ],
)
def test_the_newest_answer_is_always_reached_again(
    notebook: Notebook, commands: str, view: list[str]
) -> None:
    """Whatever is redone and undone after a retry, going forward ends at the newest."""
    for source in ("one", *commands.split()):
        notebook.run(f"%agent {source}")
    assert notebook.view() == view


@pytest.mark.req("N3", "dec54")
def test_redo_never_swaps_the_newest_out_after_undos(notebook: Notebook) -> None:
    """It goes forward as far as it was gone back, and stops there."""
    for source in ("one", "two", "retry", "undo", "undo", "redo", "redo"):
        notebook.run(f"%agent {source}")
    assert notebook.view() == ["one", "answer 1", "two", "answer 3"]
    assert "nothing to redo" in notebook.run("%agent redo")
    assert notebook.view() == ["one", "answer 1", "two", "answer 3"]


@pytest.mark.req("N9", "dec51")
def test_two_questions_of_one_cell_stay_together(notebook: Notebook) -> None:
    """Both are asked, and both are replaced when the cell runs again."""
    source = "%agent one\n%agent two"
    notebook.run(source, cell="a")
    assert notebook.view() == ["one", "answer 1", "two", "answer 2"]
    notebook.run(source, cell="a")
    assert notebook.view() == ["one", "answer 3", "two", "answer 4"]


@pytest.mark.req("N9", "dec51")
def test_rerun_append_adds(notebook: Notebook) -> None:
    """`%config AgentMagics.rerun = "append"` never goes back."""
    notebook.run('%config AgentMagics.rerun = "append"')
    notebook.run("%agent one", cell="a")
    notebook.run("%agent one", cell="a")
    assert notebook.view() == ["one", "answer 1", "one", "answer 2"]


@pytest.mark.req("N9", "dec51")
def test_in_a_terminal_every_prompt_appends(notebook: Notebook) -> None:
    """There is no cell to run again."""
    notebook.run("%agent one")
    notebook.run("%agent one")
    assert notebook.view() == ["one", "answer 1", "one", "answer 2"]


@pytest.mark.req("N9", "dec51")
def test_a_mistake_in_a_rerun_changes_nothing(notebook: Notebook) -> None:
    """Everything is checked before the earlier turn leaves the view."""
    notebook.run("%agent one", cell="a")
    for source in ("%agent {{zzz}}", "%agent --slot nope x", "%agent --model nobody:x x"):
        notebook.run(source, cell="a", fails=True)
    assert notebook.view() == ["one", "answer 1"]


@pytest.mark.req("N4", "dec52")
def test_a_slot_made_again_by_its_cell_starts_again(notebook: Notebook) -> None:
    """new and derive reset it, `--keep` leaves it, another cell may not."""
    notebook.run("%agent hello", cell="a")
    for command in ("%slot derive what-if --switch", "%slot new fresh --switch"):
        name = command.split(" ")[2]
        notebook.run(command, cell=name)
        notebook.run("%agent more", cell="b")
        turns = notebook.view()
        notebook.run(f"{command} --keep", cell=name)
        assert notebook.view() == turns
        notebook.run(command, cell=name)
        assert len(notebook.view()) == len(turns) - 2
        assert "There is already a slot" in notebook.run(command, cell="other", fails=True)
        notebook.run("%slot switch default", cell="c")


@pytest.mark.req("N9", "dec51", "dec46")
def test_after_a_restart_a_run_of_all_cells_gives_the_same_view(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cells find their slots again, though the session ended in another one."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    cells = {
        "a": "%agent one",
        "b": "%slot derive option --switch",
        "c": "%agent two",
    }
    views = []
    for _ in range(3):
        notebook.run("%reload_ext agent_magics")
        for cell, source in cells.items():
            notebook.run(source, cell=cell)
        assert notebook.session.current_slot == "option"
        views.append([text.split(" ")[0] for text in [*notebook.view("default"), *notebook.view()]])
    assert views[0] == views[1] == views[2] == ["one", "answer", "one", "answer", "two", "answer"]


@pytest.mark.req("N9", "dec51")
@pytest.mark.parametrize(
    ("goes", "is_back"),
    [
        ("", True),
        ("%slot switch default", False),
        ("import agent_magics as a; a.run(a.current().switch_slot('default'))", False),
    ],
    ids=["nobody", "magic", "Python"],
)
def test_a_cell_goes_back_to_its_slot_until_somebody_chose_one(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, goes: str, *, is_back: bool
) -> None:
    """In whatever way it was chosen since the session was opened here."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    notebook.run("%reload_ext agent_magics")
    notebook.run("%slot new option --switch", cell="a")
    notebook.run("%agent two", cell="b")
    notebook.run("%slot switch default", cell="c")
    notebook.run("%reload_ext agent_magics")
    notebook.run(goes or "pass", cell="d")
    said = notebook.run("%agent two", cell="b")
    assert ("back in option" in said) is is_back
    assert notebook.session.current_slot == ("option" if is_back else "default")


@pytest.mark.req("N9", "dec46")
def test_a_named_session_is_found_again(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second load says what it resumes, and it is all there."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    assert 'session "churn" new' in notebook.run("%reload_ext agent_magics")
    notebook.run("%agent one")
    said = notebook.run("%reload_ext agent_magics")
    assert "resumed: 1 slot, 1 turn, in default" in said
    assert notebook.view() == ["one", "answer 1"]


@pytest.mark.req("N9", "dec44")
def test_a_session_open_elsewhere_is_told_and_taken(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """The second kernel is told who has it; `--readonly` looks, `take` takes."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    code = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('%load_ext agent_magics')\n"
        "shell.run_cell('%agent one')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        while "ready" not in other.stdout.readline():
            pass
        said = notebook.run("%reload_ext agent_magics")
        assert 'session "churn" open in another kernel: %sessions take churn · ' in said
        assert len(said.splitlines()) == 1
        said = notebook.run("%agent two", fails=True)
        assert "This session is open in another kernel" in said
        assert "%sessions take churn takes it over" in said
        assert "%sessions open churn --readonly looks at it meanwhile." in said
        notebook.run("%sessions open churn --readonly")
        assert notebook.view() == ["one", "answer 1"]
        notebook.run("%sessions take churn")
        notebook.run("%agent two")
        other.stdin.close()
    assert notebook.view()[:3] == ["one", "answer 1", "two"]
