"""A model that can't answer yet: what it waits for is said when it is chosen, before a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_magics.providers.presets import PRESETS
from tests.notebook.conftest import Notebook

GIVE_KEY = (
    "openai needs a key: set OPENAI_API_KEY before the kernel starts, or in a cell: import os,"
    ' getpass; os.environ["OPENAI_API_KEY"] = getpass.getpass(). %agent model shows which others'
    " answer.\n"
)
NO_OLLAMA = (
    "Nothing answers at 127.0.0.1:1: start ollama. %agent model shows which others answer.\n"
)


@pytest.fixture
def bare(
    notebook: Notebook, nothing_found: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Notebook]:
    """A notebook on its script, on a machine without keys, servers and weights."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", *(v for p in PRESETS for v in p.keys)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_MAGICS_MODEL", f"scripted:{tmp_path / 'script.yaml'}")
    yield notebook
    notebook.run("%config AgentMagics.recording = 'off'")


@pytest.mark.req("N10", "P3")
@pytest.mark.parametrize(
    ("model", "shown", "says"),
    [
        ("openai", "openai:gpt-5-mini", GIVE_KEY),
        ("openai:gpt-x", "openai:gpt-x", GIVE_KEY),
        ("anthropic:claude-x", "anthropic:claude-x", 'os.environ["ANTHROPIC_API_KEY"] = '),
        ("azure:mine", "azure:mine", "set AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY before"),
        ("ollama:qwen3", "ollama:qwen3", NO_OLLAMA),
        ("embedded", "embedded:smollm2-135m", '%agent model pull" (93 MB).'),
    ],
)
def test_a_model_that_is_chosen_says_what_it_waits_for(
    bare: Notebook, model: str, shown: str, says: str
) -> None:
    """It is chosen all the same."""
    said = bare.run(f"%agent model {model}")
    assert said.startswith(f"this session asks {shown} now\n")
    assert says in said
    assert said.count("\n") == 2


@pytest.mark.req("N10", "P3")
def test_a_model_that_is_set_says_what_it_waits_for(bare: Notebook) -> None:
    """In the output of `%config`; one that waits for nothing says nothing."""
    was = bare.session.model
    assert bare.run("%config AgentMagics.model = 'openai:gpt-x'") == GIVE_KEY
    assert bare.run("%config AgentMagics.model = ''") == ""
    assert bare.run("%config AgentMagics.model = 'openai'") == GIVE_KEY
    assert bare.run("%config AgentMagics.model = 'ollama:qwen3'") == NO_OLLAMA
    assert bare.run(f"%config AgentMagics.model = '{was}'") == ""


@pytest.mark.req("N2", "P3")
def test_a_question_without_the_key_is_no_turn(bare: Notebook) -> None:
    """In the session's model, a slot's own and the cell's; nothing is recorded."""
    bare.run("%agent hello")
    assert bare.run("%agent --model openai:gpt-x again", fails=True) == GIVE_KEY
    bare.run("%slot new other --model openai:gpt-x")
    assert bare.run("%agent --slot other again", fails=True) == GIVE_KEY
    assert bare.run("%agent --slots default,other again", fails=True) == GIVE_KEY
    bare.run("%slot switch default")
    bare.run("%agent model openai:gpt-x")
    assert bare.run("%%agent\nagain", fails=True) == GIVE_KEY
    assert bare.run("%agent retry", fails=True) == GIVE_KEY
    assert bare.view("default") == ["hello", "answer 1"]
    assert bare.view("other") == []


@pytest.mark.req("P4")
def test_a_replay_needs_no_key(
    bare: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is the recording, and that is what is said."""
    monkeypatch.chdir(tmp_path)
    bare.run("%config AgentMagics.recording = 'replay'")
    assert bare.run("%agent model openai:gpt-x") == "this session asks openai:gpt-x now\n"
    assert "There is no recording" in bare.run("%agent hello", fails=True)
