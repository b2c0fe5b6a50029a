"""`%agent fix`: the failing cell and its traceback, shown before they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agent_magics.notebook.kernel.tracebacks import traceback_text
from tests.notebook.conftest import Notebook


@pytest.mark.req("N3")
def test_fix_sends_the_cell_and_its_traceback(notebook: Notebook) -> None:
    """Nothing else: no other cell, no variable, no frame of IPython."""
    notebook.run("secret = 'other cell'")
    notebook.run("def half(n):\n    return n / 0\nhalf(4)", fails=True)
    said = notebook.run("%agent fix")
    prompt = notebook.view()[0]
    assert prompt in said
    assert said.index(prompt) < said.index("answer 1")
    assert "```python\ndef half(n):\n    return n / 0\nhalf(4)\n```" in prompt
    assert "ZeroDivisionError: division by zero" in prompt
    assert "in half" in prompt
    assert "other cell" not in prompt
    assert "interactiveshell" not in prompt


@pytest.mark.req("N3")
def test_fix_sends_no_frame_of_a_library(notebook: Notebook) -> None:
    """A line counts them, in a cause too; functions that a library calls are the person's own."""
    notebook.run("import pandas as pd\ndf = pd.DataFrame({'a': [1]})\ndf['b']", fails=True)
    notebook.run("%agent fix")
    prompt = notebook.view()[0]
    assert "site-packages" not in prompt
    assert prompt.count(" in pandas]\n") == 2
    assert prompt.count("KeyError: 'b'") == 2
    assert "df['b']\n" in prompt.partition("Traceback")[2]
    notebook.run("def half(n):\n    return n / 0\npd.Series([1]).apply(half)", fails=True)
    notebook.run("%agent fix")
    assert " in pandas]\n" in notebook.view()[2]
    assert ", in half\n" in notebook.view()[2]


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    ("failing", "mark"),
    [
        ("import json; json.loads('{')", "frames in Python]\njson.decoder.JSONDecodeError: "),
        ("raise ExceptionGroup('both', [loads(), loads()])", " frames in Python]\n"),
    ],
)
def test_frames_of_python_itself_are_cut(failing: str, mark: str) -> None:
    """Those of the standard library, inside a group as well."""

    def loads() -> Exception:
        try:
            json.loads("{")
        except ValueError as error:
            return error
        raise AssertionError

    try:
        exec(failing, {"loads": loads})
    except Exception as error:  # noqa: BLE001
        said = traceback_text(error, error.__traceback__)
    assert mark in said
    assert "decoder.py" not in said
    assert "<string>" in said


@pytest.mark.req("N3", "N8")
def test_fix_sends_no_secret(notebook: Notebook) -> None:
    """Neither one that stands in the cell or its traceback, nor a variable's value."""
    notebook.run("db_password = 'correct-horse'")
    key = "sk-" + "a1B2" * 10
    failing = f"say = 'login correct-horse'\nraise ValueError('{key} ' + say)"
    notebook.run(failing, fails=True)
    said = notebook.run("%agent fix")
    for text in (said, notebook.view()[0]):
        assert "ValueError" in text
        assert "correct-horse" not in text
        assert key not in text


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    "cell",
    ["1 +", "raise ValueError('`' * 4)", "import nope_nope"],
)
def test_any_failure_can_be_asked_about(notebook: Notebook, cell: str) -> None:
    """A syntax error, a message of backticks, a missing module."""
    notebook.run(cell, fails=True)
    notebook.run("%agent fix")
    prompt = notebook.view()[0]
    assert f"python\n{cell}\n" in prompt
    assert prompt.count("Error") >= 1


@pytest.mark.req("N3")
def test_what_is_no_failure_of_a_cell_is_not_sent(
    notebook: Notebook, script: Callable[..., None]
) -> None:
    """An error of ours, a wrong header, and a cell that runs by now."""
    sentence = "No cell has failed here"
    assert sentence in notebook.run("%agent fix", fails=True)
    notebook.run("%slot switch nowhere", fails=True)
    notebook.run("%slot nonsense", fails=True)
    assert sentence in notebook.run("%agent fix", fails=True)
    notebook.run("late + 1", fails=True)
    notebook.run("late = 1")
    notebook.run("late + 1")
    assert sentence in notebook.run("%agent fix", fails=True)
    assert notebook.view() == []


@pytest.mark.req("N3")
def test_an_error_whose_text_fails_is_named(notebook: Notebook) -> None:
    """Code of the person writes an exception's text; where that fails, its name is sent."""
    notebook.run(
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Odd()",
        fails=True,
    )
    notebook.run("%agent fix")
    assert "Odd" in notebook.view()[0]


@pytest.mark.req("N3")
def test_long_cells_and_tracebacks_are_cut_in_the_middle(notebook: Notebook) -> None:
    """Both keep their head and their tail."""
    notebook.run(
        "# head\n" + "x = 1\n" * 5_000 + "raise ValueError('y' * 50_000 + 'end')", fails=True
    )
    notebook.run("%agent fix")
    prompt = notebook.view()[0]
    assert len(prompt) < 30_000
    assert "# head" in prompt
    assert prompt.count("[…]") == 2
    assert "end" in prompt[-20:]


@pytest.mark.req("N1")
def test_unloading_takes_the_hook_back(notebook: Notebook) -> None:
    """After `%unload_ext` no callback of ours is left."""
    callbacks = notebook.shell.events.callbacks["post_run_cell"]
    assert any("Failures" in repr(callback) for callback in callbacks)
    notebook.run("%unload_ext agent_magics")
    assert not any("Failures" in repr(callback) for callback in callbacks)
