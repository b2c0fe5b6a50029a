"""Mistyped commands of `%agent`: told, not sent."""

from __future__ import annotations

import pytest

from agent_magics.notebook.line.near_miss import near_miss
from tests.notebook.conftest import Notebook


@pytest.mark.req("N2", "N3")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("modle", "'modle' is no command of %agent. Did you mean %agent model?"),
        ("models", "Did you mean %agent model?"),
        ("modle openai:x", "Did you mean %agent model openai:x?"),
        ("rety", "Did you mean %agent retry?"),
        ("udno", "Did you mean %agent undo?"),
        ("help", "Did you mean %agent --help?"),
        ("list", "Did you mean %agent model?"),
        ("sotp", "Did you mean %agent stop?"),
        ("slots", "Did you mean %slot?"),
        ("slto list", "Did you mean %slot list?"),
        ("slot switch other", "Did you mean %slot switch other?"),
        ("cost --df", "Did you mean %cost --df?"),
        ("slot list", "Did you mean %slot list?"),
        ("sessions", "Did you mean %sessions?"),
        ("undo 2", "%agent undo can't use '2'."),
        ("undo --slot other", "%agent undo can't use '--slot other'."),
        ("model nonsense", "'nonsense' names no provider: write PROVIDER:NAME, as in %agent model"),
        ("model gpt-4.1-mini", "%agent model openai:gpt-4.1-mini, or one of openai, anthropic, "),
        ("model opnai", "'opnai' is no model. Did you mean %agent model openai?"),
        ("model pul", "Did you mean %agent model pull?"),
    ],
)
def test_a_short_line_that_is_nearly_a_command_is_told(line: str, says: str) -> None:
    """It names what was meant, and how to send it all the same."""
    told = near_miss(line)
    assert told is not None
    assert says in told
    assert told.endswith(f" To send it as a prompt: %agent -- {line}")


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "hi there",
        "why?",
        "-- undo",
        "--slot x undo",
        "undo the last rename in the data frame",
        "retry it with more care",
        "model the data by a line",
        "stop words of English",
        "{{df}}",
        "Last one.",
        "Last two.",
        "Most likely",
        "most likely",
        "List",
        "list slots",
        "Models?",
        "models?",
        "models available",
        "Step two",
        "step 2",
        "Top",
        "Undo",
        "Fit model",
        "fit model",
        "Model drift",
        "Fix it",
        "fix it",
        "Stop it",
        "Redo it",
        "Retry again",
        "retry again",
        "undo now",
        "memory leak",
        "help?",
        "fix -inf values",
        "slot compare the answers of both",
        "model pull requests",
    ],
)
def test_prompts_are_no_commands(line: str) -> None:
    """A capital, punctuation, a word too many, and words that are far from ours."""
    assert near_miss(line) is None


@pytest.mark.req("N2", "N3")
def test_a_mistyped_command_is_not_sent(notebook: Notebook) -> None:
    """One line and the status error; behind `--` it is a prompt."""
    for source in ("%agent modle", "%agent undo 2", "%%agent help", "%agent model nonsense"):
        said = notebook.run(source, fails=True)
        assert said.count("\n") == 1
        assert "To send it as a prompt: %agent -- " in said
    assert notebook.view() == []
    notebook.run("%agent -- undo 2")
    assert notebook.view()[0] == "undo 2"


@pytest.mark.req("N3")
def test_each_command_has_its_help(notebook: Notebook) -> None:
    """`--help` behind a command is no prompt."""
    assert "list the models that answer" in notebook.run("%agent model --help")
    assert "fetch the small demo model" in notebook.run("%agent model pull -h")
    assert notebook.view() == []
