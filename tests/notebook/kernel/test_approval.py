"""The question before a tool runs: what is shown, and what may be answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.notebook.kernel.approval import CHOICES, Question, edited_text
from tests.notebook.test_terminal import Terminal

pytestmark = [pytest.mark.inside, pytest.mark.req("N8", "dec55")]

CODE = "df = load()\ndf.plot()"


class Person:
    """Answers from a list; what was shown to them is kept. At its end they go away."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.seen: list[str] = []

    def read(self, prompt: str) -> str:
        self.seen.append(prompt)
        if not self.answers:
            raise EOFError
        return self.answers.pop(0)

    def write(self, text: str) -> None:
        self.seen.append(text)

    @property
    def saw(self) -> str:
        return "\n".join(self.seen)


def request(name: str = "run_python", slot: str = "default", **arguments: Any) -> ApprovalRequest:
    given = arguments or {"code": CODE}
    preview = given.get("code") or f"{name}({given})"
    return ApprovalRequest(
        session_id="s",
        slot_id=slot,
        turn_id="t",
        call_id="c",
        tool_name=name,
        arguments=given,
        preview=preview,
    )


def ask(person: Person, asked: ApprovalRequest | None = None) -> ApprovalAnswer:
    return Question(asked or request()).answer(person.read, person.write)


def test_the_question_shows_exactly_what_will_run() -> None:
    """The code, indented, and four answers."""
    person = Person("y")
    assert ask(person) == ApprovalAnswer(word="yes")
    assert person.seen == [
        "The agent wants to run in your kernel:\n    df = load()\n    df.plot()",
        f"run it?  {CHOICES}  ",
    ]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (request("write_file", path="x.txt", content="a"), "The agent wants to write a file:"),
        (request("wipe", table="x"), "The agent wants to call wipe:\n    wipe({'table': 'x'})"),
        (request(slot="option-a"), "The agent in option-a wants to run in your kernel:"),
    ],
)
def test_every_tool_is_asked_about(asked: ApprovalRequest, says: str) -> None:
    """In its own words, with the slot where it isn't the first one."""
    person = Person("y")
    ask(person, asked)
    assert says in person.saw


@pytest.mark.parametrize(
    ("answers", "word", "reason"),
    [
        (["y"], "yes", ""),
        (["YES"], "yes", ""),
        ([" a "], "always", ""),
        (["no"], "no", ""),
        (["n use the median"], "no", "use the median"),
        (["no, use the median"], "no", "use the median"),
        ([], "no", ""),
        (["", "maybe", "1", "y"], "yes", ""),
        (["s", "y"], "yes", ""),
    ],
)
def test_answers_are_read(answers: list[str], word: str, reason: str) -> None:
    """By their first word; what isn't one is asked again; the end of the input is a no."""
    person = Person(*answers)
    assert ask(person) == ApprovalAnswer(word=word, reason=reason)  # type: ignore[arg-type]
    assert person.saw.count(" is no answer") == max(0, len(answers) - 1)


def test_long_code_is_shown_whole_when_asked() -> None:
    """What was left out is said, and can be seen before the answer."""
    code = "\n".join(f"line_{n}" for n in range(200))
    person = Person("s", "y")
    ask(person, request(code=code))
    assert "… 140 lines …" in person.seen[0]
    assert "line_100" not in person.seen[0]
    assert "[s]how all" in person.seen[1]
    assert "line_100" in person.seen[2]
    assert "[s]how all" not in person.seen[3]


def test_code_is_edited_line_by_line() -> None:
    """It is shown again and asked about again; what runs is what was shown last."""
    person = Person("e", "2", "df.head()", "+0", "import x", "", "y")
    assert ask(person) == ApprovalAnswer(
        word="edited", arguments={"code": "import x\ndf = load()\ndf.head()"}
    )
    assert "    import x\n    df = load()\n    df.head()" in person.saw


def test_an_edit_that_changes_nothing_is_none() -> None:
    """A plain yes then."""
    assert ask(Person("e", "", "y")) == ApprovalAnswer(word="yes")
    assert ask(Person("e", "1", "x = 1", "", "a")).arguments == {"code": "x = 1\ndf.plot()"}


def test_what_is_edited_is_shown_as_it_is() -> None:
    """Characters that nobody sees are written by their codes."""
    person = Person("e", "x = 1 \u202e # safe", "y")
    answer = ask(person, request(code="x = 1"))
    assert answer.arguments == {"code": "x = 1 \u202e # safe"}
    assert "    x = 1 \\u202e # safe" in person.saw


@pytest.mark.parametrize(
    ("text", "answers", "edited"),
    [
        ("one", ["two"], "two"),
        ("one", [""], "one"),
        ("a\nb\nc\n", ["-2", ""], "a\nc\n"),
        ("a\nb", ["+2", "c", ""], "a\nb\nc"),
        ("a\nb", ["3", "0", "-", "x", "1", "A", ""], "A\nb"),
        ("a\nb", ["-1", "-1", ""], ""),
    ],
)
def test_lines_are_changed_added_and_dropped(text: str, answers: list[str], edited: str) -> None:
    """A number that is no line is said to be none."""
    person = Person(*answers)
    assert edited_text(text, person.read, person.write) == edited


def test_other_arguments_are_edited_as_json() -> None:
    """Until they are an object."""
    person = Person("e", "{", '{"table": "y", "force": false}', "y")
    answer = ask(person, request("wipe", table="x", force=True))
    assert answer == ApprovalAnswer(word="edited", arguments={"table": "y", "force": False})
    assert "That is no JSON object." in person.saw
    assert ask(Person("e", "gone", "y"), request("shout", text="hi")).arguments == {"text": "gone"}


@pytest.mark.slow
@pytest.mark.req("N12", "N7")
def test_a_terminal_asks_as_well(tmp_path: Path, root: Path) -> None:
    """The answer is typed; Ctrl-C withdraws the question and stops the turn."""
    calls = [{"name": "run_python", "arguments": {"code": "print('from the code')\n6 * 7"}}]
    steps = [{"text": "Let me see.", "calls": calls}, "It is 42.", {"calls": calls}, "Never said."]
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps({"steps": steps}))
    environ = {"AGENT_MAGICS_MODEL": f"scripted:{script}", "PYTHONPATH": str(root)}
    terminal = Terminal(environ)
    terminal.type("%load_ext agent_magics")
    terminal.child.sendline("%agent what is it?")
    terminal.child.expect_exact(CHOICES)
    assert "Let me see.\r\nThe agent wants to run in your kernel:\r\n" in terminal.child.before
    said = terminal.type("y")
    assert "from the code\n42\nrun_python(" in said
    assert "It is 42.\n" in said
    assert "stopped after" in terminal.interrupt_after("%agent again", CHOICES)
    assert "Never said." not in terminal.type("%context --full")
