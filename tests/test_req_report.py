"""The report of held requirements tells the truth."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.req_report import (
    REQUIREMENTS,
    group_of,
    held_rows,
    read_requirements,
    report_lines,
)

KNOWN = {"S1": "a", "S2": "b", "dec44": "c"}


def test_every_row_has_an_id_once_and_words() -> None:
    """The list names each row once and says what it is about."""
    lines = [line for line in REQUIREMENTS.read_text("utf-8").splitlines() if line[:1] != "#"]
    known = read_requirements("\n".join(lines))
    assert len(known) == len(lines)
    assert all(known.values())
    assert {"S17", "C20.14", "E20.29", "D1", "dec67", "inv18"} <= known.keys()


@pytest.mark.parametrize(
    ("seen", "held"),
    [
        pytest.param({"passed"}, {"S1"}, id="passed"),
        pytest.param({"passed", "failed"}, set(), id="one of two failed"),
        pytest.param({"skipped"}, set(), id="only skipped"),
        pytest.param({"passed", "skipped"}, {"S1"}, id="passed and skipped"),
    ],
)
def test_a_row_is_held_by_a_pass_and_no_failure(seen: set[str], held: set[str]) -> None:
    """A skip neither holds a row nor takes it away."""
    assert held_rows({"S1": seen}) == held


def test_the_report_names_what_is_not_held() -> None:
    """One line a group, and the sum."""
    lines = report_lines(KNOWN, {"S1", "dec44"})
    assert lines[0].split() == ["S", "1", "of", "2", "not", "held:", "S2"]
    assert lines[1].split() == ["dec", "1", "of", "1", "all", "held"]
    assert lines[2] == "2 of 3 rows held, 0 in part"


def test_a_row_that_is_built_in_part_is_counted_apart() -> None:
    """Its tests pass, and the report doesn't claim the whole row."""
    known = {"P1": "[part] servers", "P2": "[part] more", "P3": "embedded"}
    lines = report_lines(known, {"P1", "P3"})
    assert lines == ["P     1 of 3   in part: P1 not held: P2", "1 of 3 rows held, 1 in part"]


@pytest.mark.parametrize(("row", "group"), [("C20.3", "C"), ("inv7", "inv"), ("dec1", "dec")])
def test_groups_are_the_letters_of_an_id(row: str, group: str) -> None:
    """Decisions and invariants are groups of their own."""
    assert group_of(row) == group


@pytest.mark.slow
def test_a_mark_with_an_unknown_row_fails_its_test(root: Path, tmp_path: Path) -> None:
    """A typing error in a mark is no silent gap."""
    case = tmp_path / "test_case.py"
    case.write_text(
        "import pytest\n"
        "@pytest.mark.req('S1')\ndef test_good(): pass\n"
        "@pytest.mark.req('S99')\ndef test_typo(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    options = ["-c", str(root / "pyproject.toml"), "--rootdir", str(root), "--req-report"]
    done = subprocess.run(
        [*command, *options, str(case)], cwd=root, capture_output=True, text=True, check=False
    )
    assert "no such requirement: S99" in done.stdout
    rows = len(read_requirements(REQUIREMENTS.read_text("utf-8")))
    assert f"1 of {rows} rows held" in done.stdout
    assert done.returncode == 1


@pytest.mark.req("E20")
def test_each_acceptance_point_is_named_by_a_test(root: Path) -> None:
    """All 29; the report then tells which of them passed."""
    tests = "".join(path.read_text("utf-8") for path in (root / "tests").rglob("test_*.py"))
    marked = set(re.findall(r'"(E20\.\d+)"', tests))
    assert {f"E20.{number}" for number in range(1, 30)} - marked == set()
