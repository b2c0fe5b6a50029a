"""Completion of header lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

from agent_magics.notebook.line.completion import Completer
from tests.notebook.conftest import Notebook

SLOTS = ("default", "option-a", "option-b")
MODELS = ("openai:gpt-x", "scripted:demo")
SESSIONS = ("churn", "what if")
TOOLS = ("python", "time__now")
SKILLS = ("plot", "plot-data", "tidy")


@pytest.fixture
def completer() -> Completer:
    return Completer(
        slots=lambda: SLOTS,
        models=lambda: MODELS,
        sessions=lambda: SESSIONS,
        tools=lambda: TOOLS,
        facts=lambda: ("goal", "schema"),
        skills=lambda: SKILLS,
        deleted=lambda: ("gone", "lost"),
        settings=lambda name: ('"rewind"', '"append"') if name == "rerun" else ("True", "False"),
    )


def texts(completer: Completer, line: str) -> list[str]:
    return [completion.text for completion in completer.complete(line)["completions"]]


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%slot sw", ["switch"]),
        ("%slot switch o", ["option-a", "option-b"]),
        ("%slot delete def", ["default"]),
        ("%slot restore g", ["gone"]),
        ("%slot derive x --from op", ["option-a", "option-b"]),
        ("%slot new x --sw", ["--switch"]),
        ("%slot mode rea", ["readonly"]),
        ("%slot mode opt", ["option-a", "option-b"]),
        ("%slot mode option-a foc", ["focused"]),
        ("%agent re", ["retry", "redo"]),
        ("%agent model op", ["openai:gpt-x"]),
        ("%agent model pu", ["pull"]),
        ("%agent --model scr", ["scripted:demo"]),
        ("answer = %agent --slot d", ["default"]),
        ("%%agent --slot option-", ["option-a", "option-b"]),
        ("%%agent --o", ["--out"]),
        ("%%agent re", []),
        ("%agent --model ", list(MODELS)),
        ("%agent --slot ", list(SLOTS)),
        ("%agent --slot=", list(SLOTS)),
        ("%agent --slot=def", ["default"]),
        ("%%agent --model=scr", ["scripted:demo"]),
        ("%agent model ", ["pull", *MODELS]),
        ("%agent --model zzz", ["zzz"]),
        ("%%agent --slots option-", ["option-a", "option-b"]),
        ("%%agent --slots option-a,", ["default", "option-b"]),
        ("%agent --slots option-a,opt", ["option-b"]),
        ("%agent --slots=default,option-a,o", ["option-b"]),
        ("%agent --slots option-a,option-b --mo", ["--model"]),
        ("%ledger --kind user_message,us", ["usage"]),
        ("%slot bridge option-a option-b --keys goal,s", ["schema"]),
        ("%memory set go", ["goal"]),
        ("%%slot ", ["new"]),
        ("%sessions open ", ["churn", '"what if"']),
        ("%sessions open wh", ['"what if"']),
        ('%sessions open "wh', ['"what if"']),
        ('%sessions open "what i', ['"what if"']),
        ("%sessions open 'what i", ["'what if'"]),
        ('%sessions rename "what if" ch', []),
        ('%sessions open "c', ['"churn"']),
        ("%config AgentMagics.rerun = ", ['"rewind"', '"append"']),
        ("%config AgentMagics.rerun=re", ['"rewind"']),
        ("%config AgentMagics.rerun = 'ap", ["'append'"]),
        ("%config AgentMagics.auto_compact = F", ["False"]),
        ("%config Other.rerun = ", []),
        ("%sessions open --readonly ch", ["churn"]),
        ("%sessions take ch", ["churn"]),
        ("%compact --dr", ["--dry-run"]),
        ("%context --slot d", ["default"]),
        ("%tools nev", ["never"]),
        ("%tools allow ti", ["time__now"]),
        ("%tools only python ti", ["time__now"]),
        ("%tools trust --u", ["--undo"]),
        ("x = y", []),
        ("agent --o", []),
        ("%agent", []),
    ],
)
def test_header_lines_complete(completer: Completer, line: str, expected: list[str]) -> None:
    """Each place of a header line offers what may stand there."""
    assert texts(completer, line) == expected


@pytest.mark.req("N10", "E15")
@pytest.mark.parametrize(
    ("line", "above", "expected"),
    [
        ("/pl", ["%%agent"], ["/plot", "/plot-data"]),
        ("/", ["%%agent --slot x"], ["/plot", "/plot-data", "/tidy"]),
        ("/plot /ti", ["%%agent"], ["/tidy"]),
        ("/ti", ["%%agent", "/plot", ""], ["/tidy"]),
        ("do it /pl", ["%%agent"], []),
        ("/pl", ["%%agent", "do it"], []),
        ("/plot do /ti", ["%%agent"], []),
        ("/pl", ["%%bash"], []),
        ("/pl", ["%agent"], []),
        ("/pl", ["x = 1"], []),
        ("/tmp/pl", ["%%agent"], []),
        ("%agent /pl", [], ["/plot", "/plot-data"]),
        ("answer = %agent --slot x /ti", [], ["/tidy"]),
        ("%agent --model=scripted:x /ti", [], ["/tidy"]),
        ("%agent why /ti", [], []),
        ("%slot /ti", [], []),
        ("/pl", [], []),
    ],
)
def test_skills_complete_at_the_beginning_of_a_prompt(
    completer: Completer, line: str, above: list[str], expected: list[str]
) -> None:
    """In a `%%agent` body and on a `%agent` line, as first words; nowhere else."""
    found = completer.complete(line, above)
    assert [completion.text for completion in found["completions"]] == expected
    if expected:
        assert found["matched_fragment"] == line[line.rindex("/") :]


@pytest.mark.req("N10")
def test_what_was_typed_is_replaced_as_far_as_it_counts(completer: Completer) -> None:
    """Of a list the last name, of a quoted name all, with its quote."""
    assert completer.complete("%agent --slots default,op")["matched_fragment"] == "op"
    assert completer.complete('%sessions open "what i')["matched_fragment"] == '"what i'
    assert completer.complete("%config AgentMagics.rerun = re")["matched_fragment"] == "re"


@pytest.mark.req("N10")
def test_files_complete_where_a_file_is_named(
    completer: Completer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders end with a slash, hidden ones are asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for name in ("churn.jsonl", ".hidden", "out/old one.md"):
        (tmp_path / name).touch()
    assert texts(completer, "%sessions import ") == ["churn.jsonl", "out/"]
    assert texts(completer, "%sessions export churn chu") == ["churn.jsonl"]
    assert texts(completer, "%ledger --md out/o") == ['"out/old one.md"']
    assert texts(completer, "%ledger --csv .h") == [".hidden"]
    assert texts(completer, "%ledger --csv nowhere/new") == ["nowhere/new"]


@pytest.mark.req("N10")
def test_ipythons_own_guesses_are_kept_away(completer: Completer) -> None:
    """A known place suppresses every other matcher; an unknown one suppresses none."""
    assert completer.complete("%slot sw")["suppress"] is True
    assert not completer.complete("%slot zzz").get("suppress")


@pytest.mark.req("N10")
def test_a_shell_offers_slots_behind_a_subcommand(completer: Completer, shell: Any) -> None:
    """Registered with a real completer, only our names come."""
    shell.Completer.custom_matchers.append(completer.matcher())
    with provisionalcompleter():
        found = list(shell.Completer.completions("%slot switch option-", 20))
    assert sorted(completion.text for completion in found) == ["option-a", "option-b"]


@pytest.mark.req("N10")
def test_a_notebook_offers_its_own_names_and_no_python(notebook: Notebook) -> None:
    """Models before any were listed, sessions of the store."""
    notebook.run("%agent hello there")

    def offered(line: str) -> list[str]:
        with provisionalcompleter():
            found = notebook.shell.Completer.completions(line, len(line))
            return [completion.text for completion in found]

    for line in ("%agent --model ", "%agent model "):
        assert {"openai:", "ollama:", "embedded", notebook.session.model} <= set(offered(line))
        assert "abs" not in offered(line)
    assert offered("%sessions open ") == ['"hello there"']
    assert offered('%sessions open "hello t') == ['"hello there"']
    assert offered("%agent --slot=") == ["default"]
    notebook.run("%slot new option-a")
    notebook.run("%memory set goal churn")
    assert offered("%%agent --slots default,") == ["option-a"]
    assert offered("%slot bridge default option-a --keys ") == ["goal"]
    assert offered("%tools allow run") == ["run_python"]


@pytest.mark.req("N10")
@pytest.mark.parametrize(
    ("setting", "some"),
    [
        ("rerun", {'"rewind"', '"append"'}),
        ("approval", {'"ask"', '"auto"', '"never"'}),
        ("auto_compact", {"True", "False"}),
        ("recording_strict", {"True", "False", "None"}),
        ("model", {'"embedded"', '"openai:"'}),
        ("session", {'"hello there"'}),
    ],
)
def test_values_of_settings_complete(notebook: Notebook, setting: str, some: set[str]) -> None:
    """Behind `=`, as they are typed, and no names of Python."""
    notebook.run("%agent hello there")
    line = f"%config AgentMagics.{setting} = "
    with provisionalcompleter():
        found = {each.text for each in notebook.shell.Completer.completions(line, len(line))}
    assert some <= found
    assert "abs" not in found
