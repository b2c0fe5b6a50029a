"""A setting that can't be used is refused where it is set, and the one before still holds."""

from __future__ import annotations

import pytest

from tests.notebook.conftest import Notebook


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("reserve_tokens", "-5", "give 0 or more"),
        ("keep_recent_tokens", "0", "give 1 or more"),
        ("context_limit", "-1", "give 1 or more"),
        ("max_cost_per_turn", "'5 bananas'", 'money as "$0.50"'),
        ("max_cost_per_session", "'x'", 'money as "$0.50"'),
        ("prices", "{'openai:x': 'much'}", "openai:x"),
        ("models", "{'vllm:x': {'window': 5}}", "vllm:x"),
        ("models", "{'vllm:x': {'context_window': 0}}", "vllm:x"),
        ("models", "{'vllm:x': 5}", "vllm:x"),
    ],
)
def test_a_value_that_cannot_be_used_changes_nothing(
    notebook: Notebook, setting: str, value: str, says: str
) -> None:
    """One line that names the setting; everything works on."""
    said = notebook.run(f"%config AgentMagics.{setting} = {value}")
    assert said.startswith(f"AgentMagics.{setting} stays as it was: ")
    assert says in said
    assert said.count("\n") == 1
    assert "answer 1" in notebook.run("%agent hello")


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "rerun = 'rewnd'",
            "rerun stays as it was: 'rewnd' can't be used; give any of",
        ),
        (
            "approval = 'aks'",
            "give any of ['ask', 'auto', 'never'] or a dict.",
        ),
        ("approval = {'run_python': 'aks'}", "can't be used; give any of"),
        ("auto_compact = 'no'", "'no' can't be used; give a boolean."),
        ("reserve_tokens = 'many'", "'many' can't be used; give an int or None."),
        ("modle = 'x'", "There is no setting AgentMagics.modle. Did you mean model? %config Agent"),
        ("qqq = 1", "There is no setting AgentMagics.qqq. %config AgentMagics lists them."),
    ],
)
def test_a_name_or_kind_that_is_none_is_one_sentence(
    notebook: Notebook, line: str, says: str
) -> None:
    """It names what would be valid; IPython would log or warn."""
    said = notebook.run(f"%config AgentMagics.{line}")
    assert says in said
    assert said.count("\n") == 1
    assert "'rewind'" in notebook.run("%config AgentMagics.rerun")


@pytest.mark.req("N10")
def test_values_that_can_be_used_are_taken(notebook: Notebook) -> None:
    """The least, none, and money."""
    for line in (
        "reserve_tokens = 0",
        "reserve_tokens = None",
        "context_limit = 5_000",
        "max_cost_per_turn = '$0.50'",
        "max_cost_per_turn = ''",
    ):
        assert notebook.run(f"%config AgentMagics.{line}") == ""
