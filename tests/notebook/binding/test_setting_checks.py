"""A setting that can't be used is refused where it is set, and the one before still holds."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from traitlets.config import Config
from traitlets.config.loader import DeferredConfigString

from agent_magics.notebook.binding.setting_checks import form_of
from agent_magics.notebook.magics import AgentMagics
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
        ("models", "{'m': {'has_tools': False}}", 'names no provider; write "provider:model"'),
        ("prices", "{'x': [1, 2]}", 'names no provider; write "provider:model", or "provider:*"'),
        ("prices", "{5: [1, 2]}", "names no provider"),
        ("store", "'postgres://x'", "postgres can't be used yet; give a path or an sqlite:///"),
        ("model", "'foo'", 'No provider answers for model "foo". Write provider:model with one'),
        ("model", "'opnai:gpt'", "Did you mean openai:gpt?"),
        ("model", "'embedded:big'", "the one there is: embedded:smollm2-135m"),
        ("compact_model", "'foo:bar'", 'No provider answers for model "foo:bar"'),
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
        ("rerun = 'rewnd'", """rerun stays as it was: 'rewnd' can't be used; write "rewind" or """),
        (
            "approval = 'aks'",
            """write "ask", "auto" or "never", or by tool {"run_python": "auto",""",
        ),
        ("approval = {'run_python': 'aks'}", """can't be used; write "ask", "auto" or "never","""),
        ("auto_compact = 'no'", "'no' can't be used; write True or False."),
        ("recording_strict = 'no'", "'no' can't be used; write True or False, or None."),
        ("reserve_tokens = 'many'", "'many' can't be used; write a whole number, or None."),
        ("keep_recent_tokens = 0.5", "0.5 can't be used; write a whole number."),
        ("max_cost_per_turn = 5", """5 can't be used; write "$5" or "200k tokens"."""),
        ("max_cost_per_session = 0.5", """0.5 can't be used; write "$5" or "200k tokens"."""),
        ("recording = True", """write "", "off", "record", "replay" or "auto"."""),
        ("session = 5", "5 can't be used; write a text in quotes."),
        ("model = 5", """5 can't be used; write "provider:model"."""),
        ("files = 'data'", """'data' can't be used; write a list of folders, ["../data"]."""),
        ("prices = 5", """write dollars per million tokens, {"openai:my-model": [0.25, 2.0]}."""),
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


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    "line",
    [
        "rerun = 'foo'",
        "memory = 'maybe'",
        "context_limit = -1",
        "max_cost_per_turn = b'5 bananas'",
        f"max_cost_per_turn = '{'9' * 400} tokens'",
        "rerun = 'vllm:m@http://me:a-password@host/v1?k=a-code'",
    ],
)
@pytest.mark.parametrize("again", ["%reload_ext", "%unload_ext agent_magics\n%load_ext"])
def test_what_was_refused_is_gone_at_the_next_loading(
    notebook: Notebook, line: str, again: str
) -> None:
    """IPython keeps no value that we refused; what was set before is still set."""
    notebook.run("%config AgentMagics.files = ['data']")
    assert "stays as it was" in notebook.run(f"%config AgentMagics.{line}")
    said = notebook.run(f"{again} agent_magics")
    assert said.startswith("agent_magics · ")
    assert said.count("\n") == 1
    assert "['data']" in notebook.run("%config AgentMagics.files")
    assert "answer 1" in notebook.run("%agent hello")


@pytest.mark.req("N10")
def test_a_value_before_a_refused_one_lasts_over_a_loading(notebook: Notebook) -> None:
    """The refused one takes its place nowhere."""
    notebook.run("%config AgentMagics.rerun = 'append'")
    notebook.run("%config AgentMagics.rerun = 'foo'")
    notebook.run("%reload_ext agent_magics")
    assert "'append'" in notebook.run("%config AgentMagics.rerun")


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("rerun", "foo", "AgentMagics.rerun has its default: 'foo' can't be used; "),
        ("context_limit", -1, "AgentMagics.context_limit has its default: -1 tokens can't be used"),
        ("modle", "x", "There is no setting AgentMagics.modle. Did you mean model? %config Agent"),
        ("context_limit", DeferredConfigString("many"), "context_limit has its default: 'many' "),
    ],
)
def test_a_configuration_that_cannot_be_used_breaks_no_loading(
    shell: Any,
    script: object,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: Any,
    says: str,
) -> None:
    """One sentence says what is wrong, the default holds, and what can be used is used."""
    shell.update_config(Config({"AgentMagics": {name: value, "share": "names"}}))
    made = Notebook(shell, capsys, monkeypatch)
    said = made.run("%load_ext agent_magics")
    assert says in said
    assert said.count("\n") == 2
    assert "'rewind'" in made.run("%config AgentMagics.rerun")
    assert "'names'" in made.run("%config AgentMagics.share")
    assert "answer 1" in made.run("%agent hello")
    made.run("%unload_ext agent_magics")


@pytest.mark.req("N10")
def test_additions_in_a_configuration_are_kept(
    shell: Any, script: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`c.AgentMagics.files.append("data")`, as a configuration file writes it."""
    config = Config()
    config.AgentMagics.files.append("data")
    shell.update_config(config)
    made = Notebook(shell, capsys, monkeypatch)
    assert made.run("%load_ext agent_magics").startswith("agent_magics · ")
    assert "['data']" in made.run("%config AgentMagics.files")
    made.run("%unload_ext agent_magics")


@pytest.mark.req("N10")
def test_a_tool_that_is_nearly_named_is_asked_for(notebook: Notebook) -> None:
    """Before the session is open and after; what no name here is near may come later."""
    asks = "AgentMagics.approval: no tool here is called run_pyton. Is it run_python?\n"
    for _ in range(2):
        assert notebook.run("%config AgentMagics.approval = {'run_pyton': 'auto'}") == asks
        assert "run_pyton" in notebook.run("%config AgentMagics.approval")
        fits = "{'run_python': 'ask', 'db__query': 'auto', '*': 'ask'}"
        assert notebook.run(f"%config AgentMagics.approval = {fits}") == ""
        notebook.run("%agent hello")


@pytest.mark.req("N10")
def test_no_refusal_speaks_of_traitlets() -> None:
    """Each setting says how it is written, and what it says of itself can be read as that."""
    for name, trait in AgentMagics.class_traits(config=True).items():
        form = form_of(trait)
        assert not re.search(r"unicode|any of|\ban int\b|boolean|a dict\b|instance", form), name
        for example in re.findall(r"\{.*\}|\[.*\]", form):
            assert ast.literal_eval(example)


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "model = openai:gpt",
            "openai:gpt can't be read; write it in quotes, %config AgentMagics.",
        ),
        ("model = “openai:gpt”", 'AgentMagics.model = "openai:gpt".'),
        ("model = 'openai:gpt", 'AgentMagics.model = "openai:gpt".'),
        ("rerun = append", 'write it in quotes, %config AgentMagics.rerun = "append".'),
        ("session = my work  # mine", '%config AgentMagics.session = "my work".'),
        ("max_cost_per_turn = $5", '%config AgentMagics.max_cost_per_turn = "$5".'),
        ("context_limit = 5k", "5k can't be read; write a whole number, or None."),
        ("auto_compact = no", "no can't be read; write True or False."),
        ("prices = {openai:x: [1]}", 'write dollars per million tokens, {"openai:my-model": '),
        ("approval = {run_python: auto", 'write "ask", "auto" or "never", or by tool {"run_'),
    ],
)
def test_a_value_without_quotes_is_one_sentence(notebook: Notebook, line: str, says: str) -> None:
    """With the line as it should be, or the form of what isn't a text; nothing else runs."""
    said = notebook.run(f"1\n%config AgentMagics.{line}", fails=True)
    assert said.startswith("UsageError: AgentMagics.")
    assert says in said
    assert said.count("\n") == 1
    assert "'rewind'" in notebook.run("%config AgentMagics.rerun")


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    "source",
    [
        "word = 'append'\n%config AgentMagics.rerun = word",
        "%config AgentMagics.rerun = kept",
        "if True:\n    %config AgentMagics.rerun = 'append'  # from now on",
        "%config AgentMagics.rerun = 'app' + 'end'",
        "text = '''\n%config AgentMagics.rerun = no:x\n'''\n%config AgentMagics.rerun = kept",
    ],
)
def test_a_value_that_python_reads_is_left_to_it(notebook: Notebook, source: str) -> None:
    """Names of the notebook or of the cell, sums, what stands in a text."""
    notebook.run("kept = 'append'")
    assert notebook.run(source) == ""
    assert "'append'" in notebook.run("%config AgentMagics.rerun")
