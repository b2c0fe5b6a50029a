"""What the input transformer puts right, in a real shell."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.error import UsageError

from agent_magics.notebook.transform import InputTransformer


class Heard:
    """A shell with stand-ins for our magics that note what reaches them."""

    def __init__(self, shell: Any) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.shell = shell
        for name in ("agent", "memory"):
            self.shell.register_magic_function(self._line, "line", name)
        for name in ("agent", "slot", "compact"):
            self.shell.register_magic_function(self._cell, "cell", name)
        self.shell.input_transformers_cleanup.append(InputTransformer())

    def _line(self, line: str) -> str:
        self.calls.append((line,))
        return "the answer"

    def _cell(self, line: str, cell: str) -> str:
        self.calls.append((line, cell))
        return "the answer"

    def run(self, source: str) -> Any:
        return self.shell.run_cell(source, store_history=True)


@pytest.fixture
def heard(shell: Any) -> Heard:
    return Heard(shell)


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("%%agent\nWhy?\n  {x} {{y}}\n", [("", "Why?\n  {x} {{y}}\n")]),
        ("%%agent why is it so?", [("why is it so?", "\n")]),
        ("%%agent --slot a why?\n\n", [("--slot a why?", "\n")]),
        ("%%slot new x\n", [("new x", "\n")]),
        ("%agent why is it so?", [("why is it so?",)]),
        ("x = 1\n%agent is x one?\ny = 2", [("is x one?",)]),
        ("if True:\n    %agent really??", [("really??",)]),
        ("%agent plain words", [("plain words",)]),
        ("%memory add was it so?", [("add was it so?",)]),
        ('text = """\n%agent quoted?\n"""', []),
        ("# %agent commented?", []),
    ],
)
def test_magics_get_what_was_typed(heard: Heard, source: str, calls: list[tuple[str, ...]]) -> None:
    """Questions and header prompts reach the magic; strings and comments don't."""
    result = heard.run(source)
    assert result.success
    assert heard.calls == calls


@pytest.mark.req("N2")
def test_an_assigned_question_gives_its_answer(heard: Heard) -> None:
    """`answer = %agent …?` assigns what the magic gives."""
    heard.run("answer = %agent is it so?")
    assert heard.shell.user_ns["answer"] == "the answer"
    assert heard.calls == [("is it so?",)]


@pytest.mark.req("N2")
@pytest.mark.parametrize("source", ["%agent?", "%%agent?"])
def test_help_on_the_magic_itself_stays_ipythons(
    heard: Heard, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`%agent?` asks for help and no model."""
    heard.run(source)
    assert heard.calls == []


@pytest.mark.req("N2")
def test_a_comment_above_the_magic_is_named(
    heard: Heard, capsys: pytest.CaptureFixture[str]
) -> None:
    """IPython would only say that Python can't read the cell."""
    result = heard.run("# my question\n\n%%agent\nWhy is it so?")
    assert isinstance(result.error_before_exec, UsageError)
    shown = capsys.readouterr()
    assert "%%agent must stand on the first line of its cell" in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


@pytest.mark.req("N12")
def test_typing_on_is_not_disturbed(heard: Heard) -> None:
    """A terminal asks whether the cell is complete while it is being typed."""
    assert heard.shell.check_complete("# note\n%%agent\nWhy")[0] in (
        "complete",
        "incomplete",
        "invalid",
    )


@pytest.mark.req("N12")
@pytest.mark.parametrize(
    ("source", "shows"),
    [
        ("%agent plain words", 0),
        ("%agent a question?", 0),
        ("%%agent\nWhy?", 0),
        ("%%agent on the header", 0),
        ("x = 1\n%agent last", 0),
        ("%agent first\n'a value'", 1),
        ("'%agent'", 1),
        ('"""\n%agent quoted\n"""', 1),
    ],
)
def test_a_terminal_shows_an_answer_once(
    shell: Any, source: str, shows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer was shown as it came; an `Out` would show it again, other values keep theirs."""
    heard = Heard(shell)
    heard.shell.input_transformers_cleanup[-1] = InputTransformer(hides_results=True)
    assert heard.run(source).success
    assert capsys.readouterr().out.count("Out[") == shows
