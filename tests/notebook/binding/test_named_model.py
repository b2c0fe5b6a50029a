"""Which model answers: named now, chosen here, stored, or none yet."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import NoModel
from agent_magics.providers.scripted import ScriptedProvider
from tests.notebook.conftest import Notebook

Named = Callable[[str], str]


@pytest.fixture
def named(tmp_path: Path) -> Named:
    """Make a scripted model that answers with its own name; give its spec."""

    def make(name: str) -> str:
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"repeat: true\nsteps: [I am {name}.]")
        return f"scripted:{path}"

    return make


@pytest.fixture
def resumed(notebook: Notebook, named: Named, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A notebook whose session `churn` has stored the model `old`, in a new kernel."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    notebook.run("%reload_ext agent_magics")
    notebook.run(f"%agent model {named('old')}")
    assert "I am old." in notebook.run("%agent hello")
    return notebook


@pytest.mark.req("dec27", "dec46")
def test_a_name_wins_over_what_a_session_has_stored(
    resumed: Notebook, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load line and the answer agree, and the change is said once."""
    monkeypatch.setenv("AGENT_MAGICS_MODEL", named("new"))
    assert "scripted:new.yaml" in resumed.run("%reload_ext agent_magics")
    said = resumed.run("%agent hello")
    assert "this session asks scripted:new.yaml now (it asked scripted:old.yaml before)\n" in said
    assert "I am new." in said
    assert "this session asks" not in resumed.run("%agent hello")


@pytest.mark.req("dec27")
def test_a_name_that_was_there_before_does_not_undo_a_choice(
    notebook: Notebook, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`%agent model` holds in its kernel, until another name is set after it."""
    notebook.run(f"%config AgentMagics.model = '{named('first')}'")
    notebook.run(f"%agent model {named('chosen')}")
    for _ in range(2):
        assert "I am chosen." in notebook.run("%agent hello")
        notebook.run('%config AgentMagics.rerun = "append"')
    session = notebook.session.session_id
    notebook.run('%config AgentMagics.session = "other"')
    assert "I am first." in notebook.run("%agent hello")
    notebook.run(f"%sessions open {session}")
    assert "I am chosen." in notebook.run("%agent hello")
    notebook.run(f"%config AgentMagics.model = '{named('second')}'")
    assert "I am second." in notebook.run("%agent hello")


@pytest.mark.req("dec27")
def test_a_name_wins_in_a_session_that_is_opened_by_name(resumed: Notebook, named: Named) -> None:
    """`%sessions open` says it, too."""
    resumed.run('%config AgentMagics.session = "elsewhere"')
    resumed.run(f"%config AgentMagics.model = '{named('new')}'")
    resumed.run("%agent hello")
    assert "this session asks scripted:new.yaml now" in resumed.run("%sessions open churn")
    assert "I am new." in resumed.run("%agent hello")


@pytest.mark.req("dec27", "dec59")
def test_without_a_name_the_load_line_tells_the_stored_model(
    resumed: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says is what answers."""
    monkeypatch.delenv("AGENT_MAGICS_MODEL")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert "agent_magics · scripted:old.yaml · " in resumed.run("%reload_ext agent_magics")
    assert "in use: scripted:old.yaml\n" in resumed.run("%agent model")
    assert "I am old." in resumed.run("%agent hello")


@pytest.mark.req("N11")
def test_another_model_leaves_the_handle_of_the_session_open(
    notebook: Notebook, named: Named
) -> None:
    """Only the model changes, so `session` of before asks the new one."""
    notebook.run("import agent_magics\nsession = agent_magics.current()")
    notebook.run(f"%config AgentMagics.model = '{named('new')}'")
    notebook.run("%slot list")
    notebook.run("reply = await session.submit_turn('hello')")
    assert notebook.shell.user_ns["reply"].text == "I am new."


@pytest.mark.req("N11")
@pytest.mark.parametrize("setting", ["session = 'other'", "store = 'other.db'"])
def test_a_handle_of_a_session_that_was_left_says_so(
    notebook: Notebook, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session or store closes it; the error says how to get the one in use."""
    monkeypatch.chdir(tmp_path)
    notebook.run("import agent_magics\nsession = agent_magics.current()")
    notebook.run(f"%config AgentMagics.{setting}")
    said = notebook.run("await session.submit_turn('hello')", fails=True)
    assert "settings changed" in said
    assert "agent_magics.current() gives the one in use" in said


@pytest.mark.req("N10")
def test_another_session_is_said_at_its_first_use(notebook: Notebook) -> None:
    """One line, new or resumed, and only once."""
    notebook.run("%agent hello")
    notebook.run("%config AgentMagics.session = 'other'")
    assert 'session "other" new\n' in notebook.run("%agent hello")
    assert 'session "other"' not in notebook.run("%agent hello")
    notebook.run("%config AgentMagics.session = 'third'")
    notebook.run("%slot list")
    notebook.run("%config AgentMagics.session = 'other'")
    assert 'session "other" resumed: 1 slot, 2 turns, in default\n' in notebook.run("%slot list")


@pytest.mark.req("N1", "N9", "dec46")
def test_a_named_session_is_greeted_though_nothing_is_bound_to_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was made from Python or imported; the first use opens it, so it isn't new."""
    store = tmp_path / "made.db"
    monkeypatch.setenv("AGENT_MAGICS_STORE", str(store))
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    notebook.run("%reload_ext agent_magics")
    notebook.run("%agent hello")
    notebook.run("%unload_ext agent_magics")
    with closing(sqlite3.connect(store)) as ledger, ledger:
        ledger.execute("DELETE FROM bindings")
    said = notebook.run("%load_ext agent_magics")
    assert 'session "churn" resumed: 1 slot, 1 turn, in default' in said
    assert notebook.run("%slot list") == "  default *  1 turn  12 tokens  full\n"


@pytest.mark.req("N2", "N4", "N6", "N9", "N11")
@pytest.mark.parametrize("model", ["", "nonsense"])
def test_without_a_model_everything_can_be_looked_at(
    notebook: Notebook, nothing_found: None, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Slots, context, sessions, Python; only asking says what is missing."""
    monkeypatch.setenv("AGENT_MAGICS_SESSION", "churn")
    notebook.run("%slot new other")
    notebook.run("%reload_ext agent_magics")
    monkeypatch.setenv("AGENT_MAGICS_MODEL", model)
    assert "other" in notebook.run("%slot list")
    assert "tokens" in notebook.run("%context")
    assert "churn" in notebook.run("%sessions")
    assert notebook.view() == []
    why = 'No provider answers for model "nonsense"' if model else "No model answers: set OPENAI"
    for source in ("%agent hello", "%%agent\nhello", "%agent retry"):
        said = notebook.run(source, fails=True)
        assert why in said
        assert len(said.splitlines()) == 1
    assert f"in use: none. {why}" in notebook.run("%agent model")
    assert f"in use: none. {why}" in notebook.run("%agent")
    with pytest.raises(Exception, match=why):
        asyncio.run(notebook.session.submit_turn("hello"))


@pytest.mark.req("N2")
def test_a_model_that_is_there_by_now_is_found(
    notebook: Notebook, nothing_found: None, monkeypatch: pytest.MonkeyPatch, named: Named
) -> None:
    """Nothing needs to be loaded again, and `%agent model` chooses one as ever."""
    notebook.run("%reload_ext agent_magics")
    notebook.run("%slot new other")
    assert "No model answers" in notebook.run("%agent hello", fails=True)
    monkeypatch.setattr("agent_magics.settings.choice.embedded_is_ready", lambda: True)
    assert "in use: embedded:smollm2-135m\n" in notebook.run("%agent model")
    assert "other" in notebook.run("%slot list")
    notebook.run(f"%agent model {named('chosen')}")
    assert "I am chosen." in notebook.run("%agent hello")


@pytest.mark.req("N10")
def test_a_variable_that_names_no_model_is_told_by_name(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next question, before anything is sent; a good one mends it."""
    notebook.run("%agent hello")
    was = os.environ["AGENT_MAGICS_MODEL"]
    monkeypatch.setenv("AGENT_MAGICS_MODEL", "nonsense")
    said = notebook.run("%agent again", fails=True)
    assert 'No provider answers for model "nonsense"' in said
    assert notebook.view() == ["hello", "answer 1"]
    monkeypatch.setenv("AGENT_MAGICS_MODEL", was)
    assert "answer 2" in notebook.run("%agent again")


@pytest.mark.req("N2")
def test_asking_nothing_prints_no_load_line(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare magics and `%agent model` say what is in use, on a closed session, too."""
    monkeypatch.chdir(tmp_path)
    for source in ("%agent", "%%agent", "%agent model"):
        notebook.run('%config AgentMagics.store = "other.db"')
        said = notebook.run(source)
        assert said.startswith("in use: scripted:script.yaml")
        assert "agent_magics ·" not in said


def test_the_provider_of_no_model_says_why() -> None:
    """Whoever asks it gets the sentence."""
    from agent_magics.notebook.binding.model_choice import ModelChoice, NoModelYet

    provider = NoModelYet(ModelChoice(lambda: "ollama"))
    request: Any = None

    async def ask() -> None:
        async for _ in provider.chat(request):
            pass

    with pytest.raises(NoModel, match="ollama tells no models"):
        asyncio.run(ask())


@pytest.mark.req("dec27", "C15")
def test_a_model_with_a_smaller_window_says_what_becomes_of_the_conversation(
    notebook: Notebook, tmp_path: Path
) -> None:
    """At once; the next question goes out shortened, and no request is sent that can't fit."""
    for number in range(4):
        notebook.run(f"%agent question {number} {'blah ' * 900}")
    notebook.run("%config AgentMagics.kernel_tools = False")
    small = tmp_path / "small.yaml"
    small.write_text("context_window: 2500\nrepeat: true\nsteps: [short]")
    said = notebook.run(f"%agent model scripted:{small}").splitlines()
    assert said[0] == "this session asks scripted:small.yaml now"
    assert re.match(r"default has \d,\d{3} tokens, its window 2,500: older turns are ", said[1])
    notebook.run("%agent and now")
    (provider,) = (
        each
        for each in notebook.session._open_session.parts.registry.all
        if isinstance(each, ScriptedProvider)
    )
    sent = [request for request in provider.requests if request.model == str(small)]
    assert sent
    assert all(len(str(request.messages).split()) < 2_500 for request in sent)
    assert notebook.session.history()[0].payload.content[0].text.startswith("question 0")


@pytest.mark.req("dec27")
def test_a_model_past_its_threshold_says_what_makes_room(
    notebook: Notebook, tmp_path: Path
) -> None:
    """And one with room says nothing of it; a slot with its own model isn't spoken of."""
    notebook.run("%config AgentMagics.kernel_tools = False")
    notebook.run(f"%agent question {'blah ' * 900}")
    for window, words in ((1_800, "past the threshold of 900: %compact"), (90_000, None)):
        model = tmp_path / f"{window}.yaml"
        model.write_text(f"context_window: {window}\nrepeat: true\nsteps: [short]")
        said = notebook.run(f"%agent model scripted:{model}").splitlines()
        assert len(said) == (2 if words else 1)
        assert words is None or words in said[1]
    notebook.run(f"%slot new own --model scripted:{tmp_path / '90000.yaml'} --switch")
    assert len(notebook.run(f"%agent model scripted:{tmp_path / '1800.yaml'}").splitlines()) == 1


@pytest.mark.req("N9", "dec27")
def test_a_model_that_was_named_is_asked_after_a_restart(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody names it any more, and another one would be found: the session still asks its own."""
    other = tmp_path / "other.yaml"
    other.write_text('{"steps": ["from other"], "repeat": true}')
    notebook.run("%config AgentMagics.session = 'kept'")
    notebook.run(f"%config AgentMagics.model = 'scripted:{other}'")
    assert "from other" in notebook.run("%agent hello")
    notebook.run("%unload_ext agent_magics")
    notebook.run("%load_ext agent_magics")
    notebook.run("%config AgentMagics.session = 'kept'")
    monkeypatch.delenv("AGENT_MAGICS_MODEL")
    assert "from other" in notebook.run("%agent again")
