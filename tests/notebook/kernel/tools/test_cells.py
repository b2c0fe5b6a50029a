"""`recent_cells` and `add_cell_below` on a real shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_magics.notebook.kernel.tools.access import KernelAccess
from tests.notebook.kernel.tools.calling import Kernel

pytestmark = [pytest.mark.inside, pytest.mark.req("N8")]


@pytest.fixture
def kernel(shell: Any, tmp_path: Path) -> Kernel:
    return Kernel(shell, tmp_path)


def run(kernel: Kernel, *cells: str) -> None:
    for cell in cells:
        kernel.shell.run_cell(cell, store_history=True)


def test_cells_are_told_with_their_values(kernel: Kernel) -> None:
    """Oldest first, as many as were asked for."""
    assert kernel.told("recent_cells") == "No cell has run before this one."
    run(kernel, "x = 1", "x + 1", "import pandas as pd\npd.DataFrame({'a': [x]})")
    assert kernel.told("recent_cells", count=2) == (
        "In [2]:\nx + 1\nOut[2]:\n2\n\nIn [3]:\nimport pandas as pd\npd.DataFrame({'a': [x]})\n"
        "Out[3]:\nDataFrame, 1 row x 1 column\na: int64\nfirst 1 rows as CSV:\na\n1"
    )
    assert kernel.told("recent_cells", count=-3).startswith("In [3]:")


def test_the_cell_that_asks_is_not_told(kernel: Kernel) -> None:
    """Its text is the prompt already."""
    run(kernel, "first = 1")
    kernel.shell.user_ns["told"] = lambda: kernel.told("recent_cells")
    run(kernel, "said = told()")
    assert kernel.shell.user_ns["said"] == "In [1]:\nfirst = 1"


@pytest.mark.req("inv17")
def test_long_cells_are_cut(kernel: Kernel) -> None:
    """In their middle; the oldest are left out where all of them are too long."""
    run(kernel, *[f"x = '{'y' * 5_000}'" for _ in range(20)])
    told = kernel.told("recent_cells", count=20)
    assert len(told) < 15_000
    assert told.startswith("[older cells are left out: too long]")
    assert "characters left out …]" in told


@pytest.mark.req("dec56")
def test_secrets_in_cells_are_taken_out(kernel: Kernel) -> None:
    """Literals, values that are called like secrets, what such variables hold."""
    run(kernel, "api_key = 'sk-1'", "api_key", "note = 'hidden-value'\nmy_password = note")
    told = kernel.told("recent_cells")
    assert "sk-1" not in told
    assert "hidden-value" not in told
    assert "Out[2]:\n[called like a secret]" in told
    kernel.kernel_access = KernelAccess(share="schema")
    run(kernel, "'Ada'")
    assert kernel.told("recent_cells", count=1) == "In [4]:\n'Ada'\nOut[4]:\nstr, 3 characters"
    kernel.kernel_access = KernelAccess(share="names")
    assert kernel.do("recent_cells").is_error


def test_a_cell_is_added_once_a_question(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the front end, where somebody is there to see it."""
    said = kernel.do("add_cell_below", code="df.plot()")
    assert said.is_error
    assert "Nobody is here" in said.content
    parent = {"header": {"msg_id": "m1"}, "content": {"allow_stdin": True}}
    monkeypatch.setattr(kernel.shell, "kernel", object(), raising=False)
    monkeypatch.setattr(kernel.shell, "get_parent", lambda: parent, raising=False)
    assert "into a new cell below" in kernel.told("add_cell_below", code="df.plot()")
    assert kernel.shell.rl_next_input == "df.plot()"
    assert "already" in kernel.do("add_cell_below", code="more").content
    parent["header"] = {"msg_id": "m2"}
    assert not kernel.do("add_cell_below", code="more").is_error
    assert kernel.do("add_cell_below", code=" ").is_error
