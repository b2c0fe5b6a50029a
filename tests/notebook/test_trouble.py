"""Trouble is one sentence, without a traceback, and nothing is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import StorageError
from agent_magics.ledger.sqlite.store import SqlStore
from tests.notebook.conftest import Notebook

Script = Callable[..., None]


SETUP = ("%slot new notes --readonly", "%slot new draft", "%agent hello")


@pytest.mark.req("N2", "N4", "N5", "N6", "S4")
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("%agent {{zzz}}", "{{zzz}} is not defined; write \\{{ or --raw"),
        ("%agent {{1/0}}", "{{1/0}} failed (ZeroDivisionError: division by zero)."),
        ("%%agent\n \n", None),
        ("%%agent --slot default\n \n", "The prompt is empty; write what you want to ask."),
        ("%agent --slot drfat hi", 'Nothing called "drfat". Did you mean draft? Slots here:'),
        ("%agent --slot notes hi", 'Slot "notes" is read-only'),
        ("%agent --model nobody:x hi", 'No provider answers for model "nobody:x".'),
        ("%agent --model nobody hi", 'No provider answers for model "nobody".'),
        ("%agent --model embedded:xyz hi", 'There is no embedded model "xyz"'),
        ("%agent model embedded:xyz", 'There is no embedded model "xyz"'),
        ("%agent --slt a hi", "no option '--slt'. Did you mean --slot?"),
        ("%agent --out 2x hi", "--out '2x' is no name for a variable"),
        (
            "%agent --out class hi",
            "--out 'class' is no name for a variable: it is a keyword",
        ),
        ("%agent --attach . hi", '--attach "." is a folder; name a file in it. Nothing was sent.'),
        (
            "%slot new x --focused abc",
            "takes a whole number above 0, not 'abc'",
        ),
        ("%slot new x --focused 6 y", "%slot new can't use 'y': %slot new NAME"),
        ("%slot mode focus 6", "There is no mode 'focus'. Did you mean focused?"),
        ("# why\n%%agent\nhi", "%%agent must stand on the first line of its cell"),
        ("%slot swich x", "%slot has no command 'swich'. Did you mean switch?"),
        ("%slot draft", "Did you mean %slot switch draft?"),
        ("%slot switch drfat", 'Nothing called "drfat". Did you mean draft?'),
        ("%slot new draft", 'There is already a slot "draft"'),
        ("%slot new 'a b'", "The slot name 'a b' has the character ' '"),
        ("%slot new", "%slot new needs NAME"),
        ("%slot new x --focused 3 --readonly", "--focused and --readonly can't both hold"),
        ("%slot new x --model nobody:x", 'No provider answers for model "nobody:x".'),
        ("%slot derive x --at 7", 'Slot "default" has no finished turn 7; its turns are 1 to 1.'),
        ("%slot derive x --from draft --at 1", "it has none yet"),
        ("%slot derive x --from nope", 'Nothing called "nope".'),
        ("%slot delete default", 'Slot "default" can\'t be deleted'),
        ("%slot rename default x", 'Slot "default" can\'t be'),
        ("%slot rename draft notes", 'There is already a slot "notes"'),
        ("%slot mode loud", "%slot mode needs a mode"),
        ("%slot mode draft loud", "There is no mode 'loud'. Modes: full, focused, readonly."),
        ("%slot mode focused few", "focused takes a number of messages above 0, not 'few'."),
        ("%slot mode full 3", "full takes nothing after it"),
        ("%slot mode nope full", 'Nothing called "nope".'),
        ("%%slot switch draft\nbody", "Only %%slot new NAME takes a body"),
        ("%%slot new x\n\n", "The body of %%slot new is empty"),
        ("%compact now", "%compact can't use 'now': %compact [--slot NAME]"),
        ("%compact --slot nope", 'Nothing called "nope".'),
        ("%context --slot nope", 'Nothing called "nope".'),
        ("%context --ful", "no option '--ful'. Did you mean --full?"),
        ("%sessions open nope", 'No session "nope" is open or stored here. %sessions lists'),
        ("%sessions open helo", 'No session "helo" is open or stored here. Did you mean hello?'),
        ("%sessions open hello --readonl", "Did you mean --readonly?"),
        ("%agent --model opnai:x hi", "Did you mean openai:x?"),
        ("%agent model opnai:x", "Did you mean openai:x?"),
        ("%slot mode readonl", "There is no mode 'readonl'. Did you mean readonly?"),
        ("%slot bridge default draft --keys x --no-summary", 'There is no fact "x" to carry over.'),
        ("%tools allow run_pyton", "Did you mean run_python?"),
        ("%ledger --kind user_mesage", "Did you mean user_message?"),
        ("%memory find", "%memory find needs"),
        ("%slot new x --focused 10001", "10,001 messages: it takes 0 to 10,000; a full"),
        ("%slot derive x --focused 10001", "10,001 messages: it takes 0 to 10,000"),
        ("%slot mode focused 10001", "10,001 messages: it takes 0 to 10,000"),
        (f"%slot new x --focused {'9' * 5000}", "is '999999999999…'; give a whole number"),
        (f"%slot mode focused {'9' * 5000}", "focused takes a number of messages above 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_lost(
    notebook: Notebook, source: str, says: str | None
) -> None:
    """No traceback, the status error, the conversation and the slots as they were."""
    for cell in SETUP:
        notebook.run(cell)
    slots = notebook.session.list_slots()
    if says is None:
        notebook.run(source)  # an empty cell magic says where one is
    else:
        said = notebook.run(source, fails=True)
        assert says in said
        assert "Traceback" not in said
        assert len([line for line in said.splitlines() if line.strip()]) == 1
    assert notebook.session.list_slots() == slots
    assert notebook.view() == ["hello", "answer 1"]


@pytest.mark.req("N4", "B4")
def test_a_fact_that_is_nearly_named_is_asked_for(notebook: Notebook) -> None:
    """Nothing is carried over."""
    notebook.run("%slot new draft")
    notebook.run("%memory set goal churn")
    said = notebook.run("%slot bridge default draft --keys gaol --no-summary", fails=True)
    assert said == 'There is no fact "gaol" to carry over. Did you mean goal? Facts: goal.\n'


@pytest.mark.req("N2")
def test_a_fault_of_ours_keeps_its_traceback(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What isn't a user's mistake is shown whole."""
    monkeypatch.setattr(notebook.session, "list_slots", lambda: 1 / 0)
    assert "ZeroDivisionError" in notebook.run("%slot list", fails=True)
    assert "Traceback" in notebook.said


@pytest.mark.req("N2")
def test_a_failed_turn_ends_the_cell(notebook: Notebook, script: Script) -> None:
    """Its sentence is shown, what had been said stays; `--keep-going` lets the cell succeed."""
    script({"text": "I was about to", "error": "lost"}, {"error": "auth"})
    notebook.run("%reload_ext agent_magics")
    said = notebook.run("%agent first", fails=True)
    assert "Traceback" not in said
    assert notebook.view()[:2] == ["first", "I was about to"]
    notebook.run("%agent --keep-going second")


@pytest.mark.req("N7", "dec11")
def test_an_interrupt_where_nothing_waits_is_a_word(notebook: Notebook) -> None:
    """A value that takes its time in a prompt is stopped without our traceback."""
    notebook.shell.user_ns["stop"] = lambda: signal.raise_signal(signal.SIGINT)
    assert notebook.run("%agent {{stop()}}", fails=True) == "stopped\n"


@pytest.mark.req("N7", "N1", "dec11")
def test_a_load_that_is_interrupted_says_how_to_load(
    shell: Any, script: Script, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports take a moment; afterwards it loads as ever."""
    notebook = Notebook(shell, capsys, monkeypatch)
    with monkeypatch.context() as slow:
        slow.setattr(
            "agent_magics.notebook.extension.load",
            lambda _shell: signal.raise_signal(signal.SIGINT),
        )
        said = notebook.run("%load_ext agent_magics", fails=True)
    assert said == "stopped; %load_ext agent_magics loads it\n"
    notebook.run("%load_ext agent_magics")
    notebook.run("%unload_ext agent_magics")


@pytest.mark.req("N7", "dec11")
def test_first_use_is_interrupted_at_once(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is imported at first use isn't waited for."""
    main = threading.get_ident()
    loaded = threading.Event()
    engine = "agent_magics.notebook.binding.notebook_agent._import_engine"
    monkeypatch.setattr(engine, lambda: loaded.wait(20))
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    began = time.monotonic()
    assert notebook.run("%agent hello", fails=True) == "stopped\n"
    assert time.monotonic() - began < 5
    loaded.set()
    timer.join()
    assert "answer 1" in notebook.run("%agent hello")


@pytest.mark.req("N9", "dec46")
def test_a_session_that_can_not_be_bound_is_not_used(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not be found again; the next question opens it anew and binds it."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    bound: list[str] = []

    async def fails(_store: object, _key: str, _session_id: str) -> None:
        raise StorageError("The disk is full.")

    async def binds(_store: object, key: str, _session_id: str) -> None:
        bound.append(key)

    monkeypatch.setattr(SqlStore, "bind", fails)
    assert notebook.run("%agent hello", fails=True) == "The disk is full.\n"
    monkeypatch.setattr(SqlStore, "bind", binds)
    notebook.run("%agent hello")
    assert bound == ["session:churn"]


@pytest.mark.req("N11")
def test_current_without_the_extension_says_what_to_do(shell: Any) -> None:
    """Outside a loaded notebook it is a sentence."""
    import agent_magics

    with pytest.raises(agent_magics.AgentError, match="run %load_ext agent_magics first"):
        agent_magics.current()


@pytest.mark.req("N9", "dec44")
def test_a_session_that_is_only_looked_at_says_so(notebook: Notebook) -> None:
    """By the title that the person typed, without a kernel that has it."""
    notebook.run("%agent hello there")
    notebook.run('%sessions open "hello there" --readonly')
    for source in ("%%agent\nmore", "%slot new x", "%agent model scripted:x"):
        assert notebook.run(source, fails=True) == (
            'Session "hello there" is read-only here: it was opened here to look at only.'
            ' %sessions take "hello there" makes it writable.\n'
        )
    notebook.run('%sessions take "hello there"')
    notebook.run("%agent more")


@pytest.mark.req("N9")
def test_a_title_of_two_sessions_asks_for_an_id(notebook: Notebook) -> None:
    """Neither is taken by chance."""
    for name in ("one", "two"):
        notebook.run(f'%config AgentMagics.session = "{name}"')
        notebook.run("import agent_magics\nawait agent_magics.current().set_title('same')")
    said = notebook.run("%sessions open same", fails=True)
    assert '2 sessions are called "same"; give an id: ' in said
    notebook.run("%sessions open one")


@pytest.mark.req("N2", "dec59")
def test_without_any_model_a_sentence_lists_what_to_do(
    shell: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Loading works, the first use says it, and a model that is named then is used."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    for name in ("LMSTUDIO", "LLAMACPP"):
        monkeypatch.setenv(f"AGENT_MAGICS_{name}_URL", "http://127.0.0.1:1/v1")
    script = tmp_path / "script.yaml"
    script.write_text("steps: [Here I am.]")
    notebook = Notebook(shell, capsys, monkeypatch)
    assert "model: found at first use" in notebook.run("%load_ext agent_magics")
    said = notebook.run("%agent hello", fails=True)
    assert "No model answers: set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or " in said
    assert "Traceback" not in said
    assert "  no key: openai (OPENAI_API_KEY), anthropic (" in notebook.run("%agent model")
    notebook.run(f"%agent model scripted:{script}")
    assert "Here I am." in notebook.run("%agent hello")
    notebook.run("%unload_ext agent_magics")


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("nobody:x", 'No provider answers for model "nobody:x".'),
        ("scripted:/no/such/file.yaml", "/no/such/file.yaml"),
        ("openai:x@http://127.0.0.1:1/v1", "127.0.0.1:1"),
    ],
)
def test_a_model_that_can_not_answer_is_a_sentence(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, model: str, says: str
) -> None:
    """An unknown provider, a missing file, a server that isn't there."""
    monkeypatch.setenv("AGENT_MAGICS_MODEL", model)
    said = notebook.run("%agent hello", fails=True)
    assert says in said
    assert "Traceback" not in said


@pytest.mark.req("N2")
def test_a_ledger_that_is_no_database_is_a_sentence(notebook: Notebook, tmp_path: Path) -> None:
    """The file is named and left as it is; another one is used on demand."""
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all " * 400)
    before = broken.read_bytes()
    notebook.run(f'%config AgentMagics.store = "{broken}"')
    said = notebook.run("%agent hello", fails=True)
    assert str(broken) in said
    assert "Traceback" not in said
    assert broken.read_bytes() == before
    assert "resumed" not in notebook.run("%agent")
    notebook.run(f'%config AgentMagics.store = "{tmp_path / "good.db"}"')
    notebook.run("%agent hello")


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("AGENT_MAGICS_CONNECT_S", "soon", 'AGENT_MAGICS_CONNECT_S is "soon"'),
        ("AGENT_MAGICS_STORE", "postgresql://host/ledger", "A ledger in postgresql can't be used"),
    ],
)
def test_a_wrong_variable_is_told_at_load(
    shell: Any,
    script: Script,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    says: str,
) -> None:
    """One sentence, and the magics are there once it is mended."""
    notebook = Notebook(shell, capsys, monkeypatch)
    with monkeypatch.context() as wrong:
        wrong.setenv(variable, value)
        said = notebook.run("%load_ext agent_magics", fails=True)
        assert says in said
        assert "Traceback" not in said
    notebook.run("%agent hello")
    notebook.run("%reload_ext agent_magics")
    notebook.run("%unload_ext agent_magics")
