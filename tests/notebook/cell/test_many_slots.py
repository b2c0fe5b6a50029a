"""`%%agent --slots` and `--background`: several turns at a time, from one notebook."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_magics.notebook.cell.columns import Columns
from tests.notebook.conftest import Notebook


@pytest.mark.req("B5", "N2")
def test_the_answers_come_by_slot(notebook: Notebook) -> None:
    """Each answer is in its own slot; what comes back is a mapping that stays silent here."""
    notebook.run("%slot new a")
    notebook.run("%slot new b")
    said = notebook.run("answers = %agent --slots a,b which one?")
    assert "── a ──" in said
    assert "── b ──" in said
    answers = notebook.shell.user_ns["answers"]
    assert {answers["a"].text, answers["b"].text} == {"answer 1", "answer 2"}
    assert notebook.view("a") == ["which one?", answers["a"].text]
    assert notebook.view("default") == []
    assert notebook.shell.user_ns["agent_last"] is answers


@pytest.mark.req("B5", "dec28")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--slots a,nope", 'Nothing called "nope"'),
        ("--slots a,frozen", 'Slot "frozen" is read-only'),
        ("--slots a,a", "named twice"),
        ("--slots ,", "names no slot"),
        ("--slots a --slot b", "can't go together"),
        ("--slots a --background", "can't go together"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    notebook: Notebook, options: str, sentence: str
) -> None:
    """Everything is checked first; no slot has the prompt then."""
    notebook.run("%slot new a")
    notebook.run("%slot new frozen --readonly")
    assert sentence in notebook.run(f"%agent {options} which?", fails=True)
    assert notebook.view("a") == []


@pytest.mark.req("B5")
def test_a_failed_slot_is_named(notebook: Notebook, script: Callable[..., None]) -> None:
    """The cell ends with its sentence; the other answer stands."""
    script({"error": "auth"}, "fine")
    notebook.run("%slot new a")
    notebook.run("%slot new b")
    said = notebook.run("%agent --slots a,b which?", fails=True)
    assert "fine" in said
    assert "a: " in said or "b: " in said


@pytest.mark.req("B5", "N2")
def test_what_is_whole_is_kept_when_a_slot_fails(
    notebook: Notebook, script: Callable[..., None]
) -> None:
    """`--out` and `agent_last` have the other answers; with none of them they stay as they were."""
    script({"error": "auth"}, "fine", {"error": "auth"}, {"error": "auth"})
    notebook.run("%slot new a")
    notebook.run("%slot new b")
    notebook.run("%agent --slots a,b --out answers which?", fails=True)
    answers = notebook.shell.user_ns["answers"]
    assert [answer.text for answer in answers.values()] == ["fine"]
    assert notebook.shell.user_ns["agent_last"] is answers
    notebook.run("%agent --slots a,b --out answers which?", fails=True)
    assert notebook.shell.user_ns["answers"] is answers


@pytest.mark.req("B5", "N7")
def test_what_is_whole_is_kept_when_the_rest_is_stopped(
    notebook: Notebook, script: Callable[..., None]
) -> None:
    """An interrupt takes no answer that had ended."""
    script("fine", {"text": "a slow answer that goes on", "chunks": 5, "chunk_delay_s": 5})
    notebook.run("%slot new a")
    notebook.run("%slot new b")
    main = threading.get_ident()
    timer = threading.Timer(1.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    assert "stopped" in notebook.run("%agent --slots a,b --out answers which?", fails=True)
    timer.join()
    answers = notebook.shell.user_ns["answers"]
    assert [answer.text for answer in answers.values()] == ["fine"]


@pytest.mark.req("B5", "dec51")
def test_a_cell_run_again_goes_back_in_all_its_slots(notebook: Notebook) -> None:
    """The same view after each run."""
    notebook.run("%slot new a")
    notebook.run("%slot new b")
    for _ in range(2):
        notebook.run("%%agent --slots a,b\nwhich?", cell="c")
    assert [len(notebook.view(slot)) for slot in ("a", "b")] == [2, 2]


@pytest.mark.req("B5")
def test_columns_are_one_output(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes of Markdown, each with its slot's name as text; a model can't close one."""
    shown: list[dict[str, Any]] = []

    def publish(data: dict[str, Any], *_: Any, **__: Any) -> None:
        shown.append(data)

    monkeypatch.setattr(notebook.shell.display_pub, "publish", publish)
    columns = Columns(["a_*b", "c"], is_live=False)
    columns.pages["a_*b"].add_text("one</div></div><script>")
    columns.pages["a_*b"].end("", {})
    assert shown == []
    columns.pages["c"].add_text("two")
    columns.pages["c"].end("", {})
    (data,) = shown
    assert data["text/plain"] == "a_*b\none</div></div><script>\n\nc\ntwo"
    markdown = data["text/markdown"]
    assert markdown.count("<div") == markdown.count("</div>") == 3
    assert "<script" not in markdown
    assert r"**a\_\*b**" in markdown


@pytest.mark.req("N2", "N3")
def test_a_background_turn_lets_other_cells_run(
    notebook: Notebook, script: Callable[..., None]
) -> None:
    """The answer arrives in its variable later; meanwhile its slot is busy and others aren't."""
    script({"text": "late", "delay_s": 1.0}, "other")
    notebook.run("%slot new side")
    notebook.run("%%agent --background --out later\nslow one", cell="c")
    assert "later" not in notebook.shell.user_ns
    assert "busy" in notebook.run("%agent again", cell="d", fails=True)
    _wait_for(lambda: "later" in notebook.shell.user_ns)
    assert notebook.shell.user_ns["later"].text == "late"
    assert notebook.run("%agent --slot side hello", cell="e")


@pytest.mark.req("N3")
def test_stop_ends_what_runs_behind(notebook: Notebook, script: Callable[..., None]) -> None:
    """`%agent stop` names it; the slot is free again."""
    script({"text": "never whole", "chunk_delay_s": 60}, "next")
    notebook.run("%%agent --background\nslow one", cell="c")
    _wait_for(lambda: any(turn.text_so_far for turn in notebook.session.running().values()))
    assert "stopping default" in notebook.run("%agent stop", cell="d")
    _wait_for(lambda: not notebook.session.running())
    notebook.run("%agent hello", cell="e")
    assert notebook.view()[-1] == "next"


@pytest.mark.req("dec66", "N2")
def test_a_background_turn_that_cannot_be_shown_is_logged(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for its display, which would be missed without a word."""

    def publish(*_: Any, **__: Any) -> None:
        raise OSError("the socket is gone")

    with monkeypatch.context() as patched:
        patched.setattr(notebook.shell.display_pub, "publish", publish)
        notebook.run("%%agent --background --out later\nhello", cell="d")
        _wait_for(lambda: any("OSError" in message for message in caplog.messages))
    assert "showing turn" in caplog.text
    assert "socket" not in caplog.text


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.req("N4", "B4")
def test_a_bridge_says_what_it_carried(notebook: Notebook, script: Callable[..., None]) -> None:
    """Facts by name, a summary where one could be had, and the reason where none could."""
    script("yes", {"text": "They chose PostgreSQL.", "purpose": "bridge"})
    notebook.run("%slot new plan")
    notebook.run("import agent_magics as am; am.run(am.current().memory.set('db', 'pg'))")
    assert notebook.run("%slot bridge default plan --no-summary") == "plan has db from default\n"
    notebook.run("%agent which?")
    said = notebook.run("%slot bridge default plan --keys db")
    assert said == "summarising default for the bridge…\nplan has a summary, db from default\n"
    assert "They chose PostgreSQL." in notebook.view("plan")[-1]
    assert "no fact" in notebook.run("%slot bridge default plan --keys nope", fails=True)
    assert "itself" in notebook.run("%slot bridge plan plan", fails=True)


@pytest.mark.req("W4")
def test_a_turn_that_python_started_is_shown_from_its_beginning(notebook: Notebook) -> None:
    """Also when it has been read by others, and as often as it is displayed."""
    asks = "turn = agent_magics.run(agent_magics.current().send_message('hello'))"
    notebook.run(f"import agent_magics\n{asks}\nreply = agent_magics.run(turn.join())")
    for _ in range(2):
        assert "answer 1" in notebook.run("display(agent_magics.TurnView(turn))")
    assert notebook.run("print([agent_magics.TurnView(turn)])") == "[<turn in default, ended>]\n"


@pytest.mark.req("W4")
def test_a_turn_needs_the_extension_to_be_shown(shell: Any) -> None:
    """Its stop and its questions are the magics' affair."""
    import agent_magics

    with pytest.raises(agent_magics.AgentError, match="load_ext agent_magics"):
        agent_magics.TurnView(object())  # type: ignore[arg-type]


@pytest.mark.req("W4")
def test_what_is_no_turn_is_told(notebook: Notebook) -> None:
    """In a sentence that says where a turn comes from."""
    import agent_magics

    with pytest.raises(agent_magics.AgentError, match="'x' is no turn"):
        agent_magics.TurnView("x")  # type: ignore[arg-type]
