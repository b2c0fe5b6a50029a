"""Every magic in a real shell, on a scripted model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.notebook.line import catalogue
from tests.notebook.conftest import Notebook

Script = Callable[..., None]


@pytest.mark.req("N1")
def test_loading_says_one_line(shell: Any, script: Script, capsys: Any) -> None:
    """The line names the model, the session and how to get help."""
    shell.run_cell("%load_ext agent_magics")
    said = capsys.readouterr().out
    shell.run_cell("%unload_ext agent_magics")
    assert said.count("\n") == 1
    assert said.startswith("agent_magics · scripted:")
    assert said.endswith(" · new session · %agent? for help\n")


@pytest.mark.req("N1")
def test_loading_twice_changes_nothing(notebook: Notebook) -> None:
    """`%reload_ext` leaves one of each; a second `load` says nothing."""
    transformers = len(notebook.shell.input_transformers_cleanup)
    notebook.run("%reload_ext agent_magics")
    assert len(notebook.shell.input_transformers_cleanup) == transformers
    assert len(notebook.shell.Completer.custom_matchers) == 1
    names = [type(each).__name__ for each in notebook.shell.configurables]
    assert names.count("AgentMagics") == 1


@pytest.mark.req("N1")
def test_unloading_takes_everything_back(shell: Any, script: Script) -> None:
    """Magics, transformer, completion and settings are gone, the session's lock too."""
    manager = shell.magics_manager

    def state() -> tuple[Any, ...]:
        return (
            sorted(manager.magics["line"]),
            sorted(manager.magics["cell"]),
            list(shell.input_transformers_cleanup),
            list(shell.Completer.custom_matchers),
            [type(each).__name__ == "AgentMagics" for each in shell.configurables].count(True),
        )

    before = state()
    for _ in range(2):
        assert shell.run_cell("%load_ext agent_magics").success
        assert shell.run_cell("%agent hello").success
        assert shell.run_cell("%unload_ext agent_magics").success
        assert state() == before


@pytest.mark.req("N1", "dec59")
def test_loading_imports_nothing_heavy(root: Path) -> None:
    """The magics come with the standard library, msgspec and IPython alone."""
    code = (
        "import sys, agent_magics, agent_magics.notebook.magics\n"
        "heavy = {'httpx', 'sqlalchemy', 'tiktoken', 'pandas', 'anywidget', 'alembic', 'numpy',"
        " 'ipywidgets', 'yaml', 'filelock', 'platformdirs', 'stamina'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.req("N2")
def test_a_cell_is_a_prompt(notebook: Notebook) -> None:
    """The body goes to the model as it is, the answer is shown and kept."""
    said = notebook.run('%%agent\n  Tell me {"a": 1} of it.\n\n  And $that.')
    assert "answer 1" in said
    assert notebook.view() == ['  Tell me {"a": 1} of it.\n\n  And $that.', "answer 1"]
    assert notebook.shell.user_ns["agent_last"].text == "answer 1"


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("%%agent what is it?", "what is it?"),
        ("%agent what's this", "what's this"),
        ("%agent is it so?", "is it so?"),
        ("%agent retry it with more care", "retry it with more care"),
        ("%agent model the data by a line", "model the data by a line"),
        ("%%agent explain:\nx = {1}", "explain:\nx = {1}"),
        ("%agent -- --slot is what?", "--slot is what?"),
        ("name = 'Ada'\n%agent who is {{name}}?", "who is Ada?"),
        ("def ask(who):\n    %agent who is {{who}}?\nask('Bob')", "who is Bob?"),
        ("for i in range(1):\n    %agent count {{i}}", "count 0"),
        ("%agent --raw who is {{name}}?", "who is {{name}}?"),
        (r"%agent who is \{{name}}?", "who is {{name}}?"),
    ],
)
def test_words_that_are_no_command_are_a_prompt(
    notebook: Notebook, source: str, prompt: str
) -> None:
    """One-liners are only what is exactly one."""
    notebook.run(source)
    assert notebook.view()[0] == prompt


@pytest.mark.req("N2")
def test_the_answer_is_an_object(notebook: Notebook, script: Script) -> None:
    """`answer = %agent …` and `--out` keep text, code, slot and number."""
    script("See:\n\n```python\nx = 1\n```\n- or\n  ~~~\n  y\n", "two")
    notebook.run("%reload_ext agent_magics")
    notebook.run("answer = %agent show me")
    answer = notebook.shell.user_ns["answer"]
    assert (answer.code, answer.slot, repr(answer)) == (
        ("x = 1\n", "y\n"),
        "default",
        answer.text,
    )
    assert isinstance(answer.seq, int)
    notebook.run("%agent --out second again")
    assert notebook.shell.user_ns["second"].text == "two"
    assert "x = 1" in notebook.run("answer")


@pytest.mark.req("N2", "N4")
def test_a_prompt_may_name_its_slot(notebook: Notebook) -> None:
    """`--slot` asks elsewhere without going there."""
    notebook.run("%slot new other")
    notebook.run("%%agent --slot other\nhello")
    assert notebook.view("other") == ["hello", "answer 1"]
    assert notebook.session.current_slot == "default"


@pytest.mark.req("N2", "N4", "N5", "N6")
@pytest.mark.parametrize(
    "source",
    ["%agent --help", "%agent -h", "%%agent -h", "%slot -h", "%slot new --help", "%compact -h"],
)
def test_help_is_shown_and_nothing_asked(notebook: Notebook, source: str) -> None:
    """`-h` and `--help` print the command's table."""
    said = notebook.run(source)
    assert "%" + source.strip("%").split(" ")[0] in said
    assert notebook.view() == []


@pytest.mark.req("N2", "N3", "N4", "N6")
@pytest.mark.parametrize(
    ("source", "example"),
    [
        ("%slot derive --help", "> %slot derive what-if --at 7 --switch"),
        ("%slot derive?", "> %slot derive what-if --at 7 --switch"),
        ("%sessions prune?", "> %sessions prune --older 90d --dry-run"),
        ("%agent model?", "> %agent model ollama:qwen3"),
        ("%agent model --help", "> %agent model ollama:qwen3"),
    ],
)
def test_a_command_has_its_own_help(notebook: Notebook, source: str, example: str) -> None:
    """Of that command alone, with an example, by `--help` or a question mark."""
    said = notebook.run(source)
    assert example in said
    assert len(said.splitlines()) < 20


@pytest.mark.req("N2", "N4", "N5", "N6")
@pytest.mark.parametrize("ours", catalogue.MAGICS, ids=lambda ours: str(ours.name))
def test_ipythons_help_is_the_same(notebook: Notebook, ours: catalogue.Magic) -> None:
    """`%slot?` shows what `%slot --help` says."""
    said = re.sub(r"\x1b\[[0-9;]*m", "", notebook.run(f"%{ours.name}?"))
    assert [line for line in ours.help.splitlines() if line.strip() not in said] == []


@pytest.mark.req("N4")
def test_a_slot_of_an_empty_parent_names_no_turn(notebook: Notebook) -> None:
    """There is no turn 0."""
    said = notebook.run("%slot derive a")
    assert said == "a is new, full, from default · %slot switch a goes there\n"
    assert notebook.run("%slot list").splitlines()[1] == (
        "  └ a        0 turns  0 tokens  full       from default"
    )


@pytest.mark.req("N4")
def test_slots_are_made_switched_and_listed(notebook: Notebook) -> None:
    """new and derive don't switch, `--switch` does."""
    notebook.run("%agent hello")
    assert "%slot switch a goes there" in notebook.run("%slot derive a")
    notebook.run("%slot derive b --from a --at 1 --focused 4 --switch")
    notebook.run("%agent more")
    assert notebook.run("%slot list").splitlines() == [
        "  default   1 turn  12 tokens  full",
        "  └ a      0 turns  12 tokens  full       from default at turn 1",
        "    └ b *   1 turn  24 tokens  focused 4  from a at turn 1",
    ]


@pytest.mark.req("N4")
def test_the_body_of_a_new_slot_is_its_prompt(notebook: Notebook) -> None:
    """`%%slot new` keeps the body as the slot's identity."""
    notebook.run("%%slot new reviewer --switch\nYou review {code}.\nBe strict.\n")
    assert (
        notebook.session.slot_config("reviewer").system_prompt == "You review {code}.\nBe strict."
    )
    assert "Be strict." in notebook.run("%context --full")


@pytest.mark.req("N4")
def test_slots_are_renamed_set_and_deleted(notebook: Notebook) -> None:
    """mode with and without a name, rename, delete."""
    notebook.run("%slot new a")
    assert notebook.run("%slot mode a focused 6") == "a is focused 6\n"
    assert notebook.run("%slot mode focused") == "default is focused 10\n"
    assert notebook.run("%slot rename a b") == "a is now called b\n"
    notebook.run("%slot switch b")
    assert notebook.run("%slot delete b").startswith(
        "b is deleted, its log is kept; now in default"
    )
    assert [slot.slot_id for slot in notebook.session.list_slots()] == ["default"]


@pytest.mark.req("N4", "S7", "N10")
def test_a_deleted_slot_is_restored(notebook: Notebook) -> None:
    """The newest of that name, with its turns; what is no deleted slot is told."""
    for prompt in ("older", "newer"):
        notebook.run("%slot new a --switch")
        notebook.run(f"%agent {prompt}")
        said = notebook.run("%slot delete a")
    assert said.endswith("now in default · %slot restore a brings it back\n")
    assert "Did you mean a? Deleted: a.\n" in notebook.run("%slot restore aa", fails=True)
    assert notebook.run("%slot restore a") == "a is back · %slot switch a goes there\n"
    assert notebook.view("a")[0] == "newer"
    assert "There is already a slot" in notebook.run("%slot restore a", fails=True)
    assert notebook.session.deleted_slots() == {}
    notebook.run("%slot rename a b")
    notebook.run("%slot restore a")
    assert notebook.view("a")[0] == "older"
    assert 'called "c".\n' in notebook.run("%slot restore c", fails=True)


@pytest.mark.req("N6", "W2")
def test_context_names_the_parts(notebook: Notebook) -> None:
    """`%context` shows tokens by part, `--full` the request itself."""
    notebook.run("%agent hello")
    assert "of 128,000 tokens · compacts past 111,616" in notebook.run("%context")
    assert "  history " in notebook.said
    said = notebook.run("%context --full")
    assert "── system ──" in said
    assert "── assistant ──\nanswer 1\n" in said
    assert "session_memory_set" in said.partition("answer 1")[2]


@pytest.mark.req("N3", "dec27")
def test_the_model_is_listed_and_changed(notebook: Notebook, tmp_path: Path) -> None:
    """`%agent model` lists, with a spec it chooses."""
    other = tmp_path / "other.yaml"
    other.write_text("steps: [I am another.]")
    assert notebook.view() == []  # it is open now
    assert "in use: scripted:script.yaml\n" in notebook.run("%agent model")
    notebook.run(f"%agent model scripted:{other}")
    assert notebook.session.model == f"scripted:{other}"
    assert "I am another." in notebook.run("%agent hello")


@pytest.mark.req("N2")
def test_no_output_holds_a_path_of_this_machine(notebook: Notebook, tmp_path: Path) -> None:
    """The load line, answers, views and one-liners are saved and shared; inside it is whole."""
    assert "scripted:script.yaml" in notebook.run("%reload_ext agent_magics")
    spec = notebook.session.model
    notebook.run(f"%slot new own --model {spec}")
    for source in (
        *("%agent hello", "%agent", "%agent model", "%slot", "%context"),
        *(f"%agent model {spec}", f"%agent --model {spec} again"),
    ):
        assert "scripted:script.yaml" in notebook.run(source)
        assert str(tmp_path) not in notebook.said
    assert notebook.session.model == notebook.shell.user_ns["agent_last"].model == spec
    assert notebook.session.slot_config("own").model == spec


@pytest.mark.req("N2", "N4")
def test_a_providers_bare_name_is_completed(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model openai` and `--model embedded` mean what they mean in the settings."""
    monkeypatch.setenv("AGENT_MAGICS_OPENAI_MODEL", "gpt-x")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    notebook.run("%reload_ext agent_magics")
    notebook.run("%slot new small --model embedded")
    assert notebook.session.slot_config("small").model == "embedded:smollm2-135m"
    assert "127.0.0.1:1" in notebook.run("%agent --model openai hello", fails=True)
    (turn,) = notebook.session.frames.turns().to_dict("records")
    assert turn["model"] == "openai:gpt-x"


@pytest.mark.req("N3")
def test_stop_says_that_nothing_runs(notebook: Notebook) -> None:
    """`%agent stop` answers where there is nothing to stop."""
    assert notebook.run("%agent stop") == "nothing is running\n"


@pytest.mark.req("N10")
def test_settings_are_traits(notebook: Notebook, tmp_path: Path) -> None:
    """`%config AgentMagics` lists them; a change holds from the next use on."""
    assert "AgentMagics.rerun" in notebook.run("%config AgentMagics")
    notebook.run("%agent one")
    notebook.run('%config AgentMagics.session = "other"')
    assert notebook.view() == []
    assert notebook.session.session_id == "other"
    store = tmp_path / "elsewhere.db"
    notebook.run(f'%config AgentMagics.store = "{store}"')
    notebook.run("%agent two")
    assert store.exists()


@pytest.mark.req("N10")
def test_a_profile_may_set_them(shell: Any, script: Script) -> None:
    """What `ipython_config.py` says reaches the traits."""
    shell.config.AgentMagics.rerun = "append"
    shell.run_cell("%load_ext agent_magics")
    assert shell.magics_manager.registry["AgentMagics"].rerun == "append"
    shell.run_cell("%unload_ext agent_magics")


@pytest.mark.req("N10")
def test_slots_and_options_complete_in_a_shell(notebook: Notebook) -> None:
    """The completion knows the slots of the open session."""
    from IPython.core.completer import provisionalcompleter

    notebook.run("%slot new option-a")
    with provisionalcompleter():
        found = notebook.shell.Completer.completions("%slot switch opt", 16)
        assert [completion.text for completion in found] == ["option-a"]


@pytest.mark.req("N11")
def test_current_gives_the_session_to_python(notebook: Notebook) -> None:
    """`current()` in a cell, and `await` on it."""
    notebook.run("import agent_magics\nlast = agent_magics.current()")
    notebook.run("reply = await last.submit_turn('hello')")
    assert notebook.shell.user_ns["reply"].text == "answer 1"
    notebook.run("again = agent_magics.run(last.submit_turn('hello'))")
    assert notebook.shell.user_ns["again"].text == "answer 2"


def test_sessions_are_listed(notebook: Notebook) -> None:
    """`%sessions` tells the title first, marks the open one and knows its notebook."""
    notebook.run("%agent hello there")
    said = notebook.run("%sessions")
    assert f"  hello there *  {notebook.session.session_id} · 2 messages · " in said
