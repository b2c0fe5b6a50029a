"""Every magic in a real shell, on a scripted model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
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
    script("See:\n\n```python\nx = 1\n```\n", "two")
    notebook.run("%reload_ext agent_magics")
    notebook.run("answer = %agent show me")
    answer = notebook.shell.user_ns["answer"]
    assert (answer.code, answer.slot, repr(answer)) == (("x = 1\n",), "default", answer.text)
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
        ("%agent --slt a hi", "no option '--slt'. Did you mean --slot?"),
        ("%agent --out 2x hi", "--out '2x' is no name for a variable"),
        ("%agent --out class hi", "--out 'class' is no name for a variable"),
        ("%agent redo", 'There is nothing to redo in "default".'),
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
        ("%compact", 'Nothing to compact in "default"'),
        ("%compact now", "%compact has no command 'now'"),
        ("%compact --slot nope", 'Nothing called "nope".'),
        ("%context --slot nope", 'Nothing called "nope".'),
        ("%context --ful", "no option '--ful'. Did you mean --full?"),
        ("%sessions open nope", '"nope"'),
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


@pytest.mark.req("N6", "W2")
def test_context_names_the_parts(notebook: Notebook) -> None:
    """`%context` shows tokens by part, `--full` the request itself."""
    notebook.run("%agent hello")
    assert "of 128,000 tokens · compacts past 111,616" in notebook.run("%context")
    assert "  history " in notebook.said
    said = notebook.run("%context --full")
    assert "── system ──" in said
    assert said.rstrip().endswith("── assistant ──\nanswer 1")


@pytest.mark.req("N5")
def test_compaction_says_what_it_did(notebook: Notebook, script: Script) -> None:
    """The plan first, then the deed, in a line each; the raw log stays."""
    summary = "\n".join(f"## {heading}\nkept" for heading in SUMMARY_HEADINGS)
    script(
        *[f"a long answer {'word ' * 200}{n}" for n in range(12)],
        {"purpose": "compaction", "text": summary},
        context_window=8_000,
    )
    notebook.run("%reload_ext agent_magics")
    for number in range(12):
        notebook.run(f"%agent question {number} {'and ' * 100}")
    history = notebook.session.history()
    said = notebook.run("%compact --dry-run")
    assert "would become a summary" in said
    assert notebook.session.context_info().checkpoint_id is None
    assert "the log keeps them all" in notebook.run("%%compact\nKeep the numbers.")
    assert notebook.session.history() == history
    assert "last compaction: " in notebook.run("%context")


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
    assert "nothing to redo" in notebook.run("%agent redo", fails=True)


@pytest.mark.req("N3", "dec27")
def test_the_model_is_listed_and_changed(notebook: Notebook, tmp_path: Path) -> None:
    """`%agent model` lists, with a spec it chooses."""
    other = tmp_path / "other.yaml"
    other.write_text("steps: [I am another.]")
    assert notebook.session.model in notebook.run("%agent model")
    notebook.run(f"%agent model scripted:{other}")
    assert notebook.session.model == f"scripted:{other}"
    assert "I am another." in notebook.run("%agent hello")


@pytest.mark.req("N3")
def test_stop_says_that_nothing_runs(notebook: Notebook) -> None:
    """`%agent stop` answers where there is nothing to stop."""
    assert notebook.run("%agent stop") == "nothing is running\n"


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
    """People use one cell as a chat box; the line says what continues instead."""
    notebook.run("%agent one", cell="a")
    said = notebook.run("%agent another", cell="a")
    assert "a new cell continues the conversation instead" in said
    assert notebook.view() == ["another", "answer 2"]
    assert "left the view" not in notebook.run("%agent another", cell="a")


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


@pytest.mark.req("N11")
def test_current_without_the_extension_says_what_to_do(shell: Any) -> None:
    """Outside a loaded notebook it is a sentence."""
    import agent_magics

    with pytest.raises(agent_magics.AgentError, match="run %load_ext agent_magics first"):
        agent_magics.current()


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
        notebook.run("%reload_ext agent_magics")
        said = notebook.run("%agent two", fails=True)
        assert "This session is open in another kernel" in said
        assert "%sessions take churn takes it over" in said
        notebook.run("%sessions open churn --readonly")
        assert notebook.view() == ["one", "answer 1"]
        notebook.run("%sessions take churn")
        notebook.run("%agent two")
        other.stdin.close()
    assert notebook.view()[:3] == ["one", "answer 1", "two"]


def test_sessions_are_listed(notebook: Notebook) -> None:
    """`%sessions` marks the open one."""
    notebook.run("%agent hello there")
    assert " *  hello there · 2 messages · " in notebook.run("%sessions")


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
    assert "No model answers: set OPENAI_API_KEY, start Ollama, or " in said
    assert "Traceback" not in said
    assert "  openai    no key: set OPENAI_API_KEY" in notebook.run("%agent model")
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
    notebook: Notebook, model: str, says: str
) -> None:
    """An unknown provider, a missing file, a server that isn't there."""
    notebook.run(f'%config AgentMagics.model = "{model}"')
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
