"""Which rows of the requirements the tests hold: `pytest --req-report`.

`@pytest.mark.req("S4", "dec51")` names the rows that a test holds. A row counts as held when a test
that names it passed and none that names it failed; the ids stand in `tests/data/requirements.txt`,
and with them which rows are built in part only: those are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parent / "data" / "requirements.txt"
PART = "[part]"
_GROUP = re.compile(r"[A-Za-z]+")


def read_requirements(text: str) -> dict[str, str]:
    """Read lines of `id words`; blank lines and lines that begin with # are left out."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return {row: about for row, _, about in pairs}


def rows_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the ids that a test's marks name, or its notebook's metadata (`"req": ["S17"]`)."""
    notebook = getattr(item.parent, "nb", None)
    told = notebook.metadata.get("req", ()) if notebook is not None else ()
    return (*(str(row) for mark in item.iter_markers("req") for row in mark.args), *told)


def group_of(row: str) -> str:
    """Return the letters that a row's id begins with."""
    found = _GROUP.match(row)
    return found.group() if found else row


def held_rows(outcomes: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the rows whose tests passed at least once and never failed."""
    return {row for row, seen in outcomes.items() if "passed" in seen and "failed" not in seen}


def report_lines(known: Mapping[str, str], held: set[str]) -> list[str]:
    """Render one line a group: how many rows are held, and which are not."""
    groups: dict[str, list[str]] = {}
    for row in known:
        groups.setdefault(group_of(row), []).append(row)
    begun = {row for row, about in known.items() if about.startswith(PART) and row in held}
    whole = (held & known.keys()) - begun
    lines = [_group_line(group, rows, whole, begun) for group, rows in groups.items()]
    return [*lines, f"{len(whole)} of {len(known)} rows held, {len(begun)} in part"]


def _group_line(group: str, rows: list[str], whole: set[str], begun: set[str]) -> str:
    in_part = [row for row in rows if row in begun]
    missing = [row for row in rows if row not in whole and row not in begun]
    head = f"{group:<4}{len(rows) - len(missing) - len(in_part):>3} of {len(rows):<3}"
    if in_part:
        head += f" in part: {' '.join(in_part)}"
    if missing:
        return f"{head} not held: {' '.join(missing)}"
    return head if in_part else f"{head} all held"


class RequirementReport:
    """The pytest plugin: collects outcomes by row and prints them at the end."""

    def __init__(self, known: Mapping[str, str], *, verbose: bool) -> None:
        self._known = known
        self._verbose = verbose
        self._rows: dict[str, tuple[str, ...]] = {}
        self._outcomes: dict[str, set[str]] = {}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test that names a row which isn't one."""
        rows = rows_of(item)
        unknown = [row for row in rows if row not in self._known]
        if unknown:
            pytest.fail(
                f"no such requirement: {', '.join(unknown)}; ids stand in {REQUIREMENTS.name}"
                " (decision 44 is dec44, invariant 3 is inv3)",
                pytrace=False,
            )
        self._rows[item.nodeid] = rows

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's outcome for each row it names; a skip holds nothing."""
        if report.when != "call" and not report.failed:
            return
        for row in self._rows.get(report.nodeid, ()):
            self._outcomes.setdefault(row, set()).add(report.outcome)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table when `--req-report` asks for it."""
        if not self._verbose:
            return
        terminalreporter.section("requirements")
        for line in report_lines(self._known, held_rows(self._outcomes)):
            terminalreporter.write_line(line)


def report_of(config: pytest.Config) -> RequirementReport:
    """Make the plugin for one run of pytest."""
    known = read_requirements(REQUIREMENTS.read_text(encoding="utf-8"))
    return RequirementReport(known, verbose=bool(config.getoption("--req-report")))
