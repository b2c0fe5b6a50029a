"""`%memory`: everything that is remembered can be seen, corrected and deleted here."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

import agent_magics
from agent_magics.core.memories import Memory
from agent_magics.core.turns import MemoriesChanged
from agent_magics.notebook.cell.display import remembered
from agent_magics.notebook.commands.memory import Remembered, remembered_html, remembered_text
from agent_magics.notebook.extension import loaded
from agent_magics.notebook.line.catalogue import magic
from agent_magics.testing import memory
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.req("N6", "E16")

ID = re.compile(r"\bm[0-9a-f]{4}\b")


def id_in(said: str) -> str:
    found = ID.search(said)
    assert found is not None, said
    return found.group()


def lasting(notebook: Notebook) -> list[Memory]:
    magics = loaded(notebook.shell)
    assert magics is not None
    return list(agent_magics.run(magics.notebook.lasting().list()))


@pytest.mark.req("dec47")
def test_both_stand_under_their_headings(notebook: Notebook) -> None:
    """The session's facts and what lasts; with nothing there, how it would come there."""
    assert notebook.run("%memory") == (
        "in this session, for all its slots\n"
        "  nothing yet: %memory set KEY VALUE\n"
        "\n"
        "in every session\n"
        "  nothing yet: only what you %memory add;"
        ' %config AgentMagics.memory = "on" lets the model note more\n'
    )
    made = id_in(notebook.run("%memory add likes green tea"))
    assert notebook.run("%memory set dataset churn.csv, 7,043 rows") == (
        "dataset is set for this session\n"
    )
    assert notebook.run("%memory") == (
        "in this session, for all its slots\n"
        "  dataset  churn.csv, 7,043 rows\n"
        "\n"
        "in every session\n"
        f"  {made}  likes green tea · by you\n"
        '  only what you %memory add; %config AgentMagics.memory = "on" lets the model note more\n'
    )


def test_what_is_added_reaches_the_model(notebook: Notebook) -> None:
    """From the next opening of a session on, in another notebook too, under one heading each."""
    notebook.run("%memory add likes green tea")
    notebook.run("%memory set dataset churn.csv")
    notebook.run("%unload_ext agent_magics")
    notebook.run("%load_ext agent_magics")
    said = notebook.run("%context --full")
    assert "<memories>\n- likes green tea\n</memories>" in said
    assert "churn.csv" not in said  # of the session before
    assert "likes green tea" in notebook.run("%memory")


def test_correct_and_forget(notebook: Notebook) -> None:
    """By the short id; what is forgotten is gone for good, and the next request knows it."""
    made = id_in(notebook.run("%memory add likes green tea"))
    assert notebook.run(f"%memory correct {made} likes black tea") == f"{made} is corrected\n"
    assert [each.content for each in lasting(notebook)] == ["likes black tea"]
    assert notebook.run(f"%memory forget {made}") == (
        f"{made} is forgotten for good: likes black tea\n"
    )
    assert lasting(notebook) == []
    notebook.run("%memory set dataset churn.csv")
    assert "dataset is forgotten in this session" in notebook.run("%memory forget dataset")
    assert agent_magics.run(notebook.session.memory.items()) == {}


def test_find(notebook: Notebook) -> None:
    """Words of both; the best first."""
    notebook.run("%memory add likes green tea")
    notebook.run("%memory add works on churn")
    notebook.run("%memory set dataset churn.csv")
    notebook.run("%memory set goal fewer leave")
    said = notebook.run("%memory find CHURN")
    assert "works on churn" in said
    assert "churn.csv" in said
    assert "tea" not in said
    assert "goal" not in said
    assert notebook.run("%memory find submarine").count("none with these words") == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%memory add", "%memory add needs more: %memory add TEXT"),
        ('%memory add ""', "%memory add needs more"),
        ("%memory set dataset", "%memory set needs more: %memory set KEY VALUE"),
        ("%memory set", "%memory set needs more"),
        ("%memory correct", "%memory correct needs more: %memory correct ID TEXT"),
        ("%memory forget", "%memory forget needs more: %memory forget ID|KEY"),
        ("%memory find", "%memory find needs more: %memory find WORDS"),
        ("%memory forget datset", "Nothing that is remembered is called 'datset'. Did you mean"),
        ("%memory forget zzz", "%memory shows what there is."),
        ("%memory correct dataset x", "write %memory set dataset VALUE"),
        ("%memory correct zzz x", "Nothing that is remembered is called 'zzz'"),
        ("%memory ad x", "%memory has no command 'ad'. Did you mean add?"),
        ("%memory --all", "%memory has no option"),
        ("%memory add the password is hunter2", "secrets are never remembered"),
        (f"%memory add {'x' * 1001}", "1,001 characters"),
        ("%memory set key " + "x" * 4_001, "4,001 characters"),
    ],
    ids=lambda value: value[:28],
)
def test_mistakes_are_one_line(notebook: Notebook, line: str, says: str) -> None:
    """What is valid stands in it; nothing changes."""
    notebook.run("%memory set dataset churn.csv")
    said = notebook.run(line, fails=True)
    assert says in said
    assert said.count("\n") == 1
    assert lasting(notebook) == []


def test_texts_are_kept_as_they_are_typed(notebook: Notebook) -> None:
    """Braces, percent signs and inner quotes stay; quotes around the whole go."""
    notebook.run('%memory add "likes tea"')
    notebook.run("%memory add says 'hello' and {name} 100%")
    notebook.run('%memory set "two words" a "quoted" value')
    assert [each.content for each in lasting(notebook)] == [
        "says 'hello' and {name} 100%",
        "likes tea",
    ]
    assert agent_magics.run(notebook.session.memory.items()) == {"two words": 'a "quoted" value'}
    notebook.run('%memory forget "two words"')
    assert agent_magics.run(notebook.session.memory.items()) == {}


def test_help_and_completion(notebook: Notebook) -> None:
    """As every magic: `--help`, commands, and the names of what was shown last."""
    assert magic("memory").help in notebook.run("%memory --help")
    assert "%memory forget ID|KEY" in notebook.run("%memory forget --help")
    made = id_in(notebook.run("%memory add likes tea"))
    notebook.run('%memory set "two words" x')
    notebook.run("%memory")

    def completed(line: str) -> list[str]:
        with provisionalcompleter():
            found = notebook.shell.Completer.completions(line, len(line))
            return [each.text for each in found if each.type == "magic"]

    assert completed("%memory f") == ["find", "forget"]
    assert completed("%memory forget m") == [made]
    assert completed("%memory correct ") == ['"two words"', made]
    assert made not in completed("%memory add ")


@pytest.mark.req("dec45")
def test_nothing_is_noted_by_itself_unless_it_is_turned_on(
    shell: Any, script: Any, notebook: Notebook
) -> None:
    """On: what is said from then on is read, and a line says what came of it."""
    answer = {
        "memoryOperations": [{"action": "create", "content": "likes green tea"}],
        "rolloutSummary": "", "rolloutSlug": "",
    }  # fmt: skip
    script(
        *[f"answer {number}" for number in range(12)],
        {"text": json.dumps(answer), "purpose": "memory"},
    )
    notebook.run("%agent this is between us")
    notebook.run('%config AgentMagics.memory = "on"')
    said = [notebook.run(f"%agent question {number}") for number in range(10)]
    assert [number for number, text in enumerate(said) if "Remembered" in text] == [9]
    assert "Remembered for every session: 1 new · %memory shows them" in said[9]
    shown = notebook.run("%memory")
    assert "likes green tea · from a conversation" in shown
    assert '"off" ends that' in shown
    read = notebook.session._open_session.loaded.metadata["memory_checkpoint"]
    assert read["is_on"] is True


def test_what_an_unload_left_is_read_and_announced(script: Any, notebook: Notebook) -> None:
    """Unloading waits for no model; the next question of the session says that it reads it."""
    answer = {"memoryOperations": [], "rolloutSummary": "", "rolloutSlug": ""}
    script("a", "b", {"text": json.dumps(answer), "purpose": "memory"})
    notebook.run('%config AgentMagics.session = "mine"')
    notebook.run('%config AgentMagics.memory = "on"')
    notebook.run("%agent I like tea.")
    notebook.run("%unload_ext agent_magics")
    notebook.run("%load_ext agent_magics")
    notebook.run('%config AgentMagics.session = "mine"')
    notebook.run('%config AgentMagics.memory = "on"')
    assert "The last close left 1 turn unread" in notebook.run("%agent hello")


def test_the_table_is_plain_and_escaped() -> None:
    """Nothing that was remembered runs as HTML; long values say how much is left out."""
    found = Remembered(
        facts={"<b>key</b>": "line\nline", "long": "x" * 1_500},
        memories=(memory("<script>alert(1)</script>", memory_id="m1234567", tags=("a&b",)),),
        ids={"m1234567": "m1234"},
    )
    notes = {"facts": "", "memories": "  <note>"}
    html = remembered_html(found, notes)
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert ">by you · a&amp;b</td>" in html
    assert "&lt;note&gt;" in html
    text = remembered_text(found, notes)
    assert "  <b>key</b>  line line\n" in text
    assert "… (500 characters more)" in text
    assert "\n\n\n" not in text


def test_the_line_counts_what_changed() -> None:
    """Only what there was."""
    changed = MemoriesChanged(created=2, updated=0, deleted=1)
    assert remembered(changed) == (
        "Remembered for every session: 2 new, 1 forgotten · %memory shows them"
    )
