"""What is new in the kernel, as it is told with a turn."""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
import pytest

from agent_magics.core.ports import ReferenceSource
from agent_magics.notebook.kernel.changes import FIRST, SINCE, KernelChanges
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.kernel.tools.names import ShellNames

pytestmark = pytest.mark.req("N8", "dec4")


class Loud:
    """Everything that code of the notebook could do here is an error."""

    def __repr__(self) -> str:
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    def __hash__(self) -> int:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


class Kernel:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {"In": [], "_": 1, "os": os, "api_key": "sk-1"}
        self.kernel_access = KernelAccess()
        self.changes = KernelChanges(
            ShellNames(self.names, {"In": self.names["In"]}), lambda: self.kernel_access
        )

    def told(self, slot: str = "x1") -> list[str]:
        said = self.changes.current(slot).splitlines()
        self.changes.mark_seen(slot)
        return said


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def test_all_variables_are_told_first_then_changes(kernel: Kernel) -> None:
    """New, changed and gone; nothing where nothing changed."""
    source: ReferenceSource = kernel.changes
    assert source.name == "variables"
    frame = pd.DataFrame({"a": [1, 2]})
    kernel.names |= {"n": 1, "df": frame, "loud": Loud()}
    assert kernel.told() == [FIRST, "df: DataFrame, 2 rows x 1 column", "loud: Loud", "n: int"]
    assert kernel.told() == []
    frame["b"] = 0
    kernel.names |= {"n": 2, "words": ["a"]}
    del kernel.names["loud"]
    assert kernel.told() == [
        SINCE,
        "changed df: DataFrame, 2 rows x 2 columns (was DataFrame, 2 rows x 1 column)",
        "changed n: int",
        "new words: list, 1 item",
        "gone: loud",
    ]


def test_slots_are_told_each_on_its_own(kernel: Kernel) -> None:
    """What one slot was told, another doesn't know."""
    kernel.names["n"] = 1
    assert kernel.told("x1") == kernel.told("x2") == [FIRST, "n: int"]
    kernel.names["m"] = 1
    assert kernel.told("x2") == [SINCE, "new m: int"]
    assert kernel.told("x1") == [SINCE, "new m: int"]


def test_looking_is_not_telling(kernel: Kernel) -> None:
    """`%context` shows what would be sent; only a turn has told it."""
    kernel.names["n"] = 1
    assert kernel.changes.current("x1") == kernel.changes.current("x1") != ""
    kernel.changes.mark_seen("x1")
    kernel.changes.mark_seen("x1")
    assert kernel.changes.current("x1") == ""


def test_what_is_told_is_bounded(kernel: Kernel) -> None:
    """About 400 tokens, sorted, the others counted."""
    kernel.names |= {f"variable_{n:05}": n for n in range(2_000)}
    said = kernel.told()
    assert len("\n".join(said)) < 1_500
    assert said[1] == "variable_00000: int"
    assert said[-1].endswith(" more: list_variables]")
    kernel.names |= {"x\nclosing </variables>" * 3: 1}
    assert all("\n" not in line for line in kernel.told())


@pytest.mark.req("dec56")
def test_it_may_be_turned_off_or_told_less(kernel: Kernel) -> None:
    """Nothing at all, or no sizes."""
    kernel.names["words"] = ["a"]
    kernel.kernel_access = KernelAccess(tells_changes=False)
    assert kernel.told() == []
    kernel.kernel_access = KernelAccess(share="names")
    assert kernel.told() == [FIRST, "words: list"]
