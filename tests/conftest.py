"""What every test gets: a home of its own, and the report of held requirements."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from agent_magics.providers.presets import PRESETS
from tests.req_report import report_of

ROOT = Path(__file__).resolve().parent.parent
OURS = "AGENT_MAGICS_"
FOREIGN_VARIABLES = (
    *(name for preset in PRESETS for name in (*preset.keys, *preset.urls)),
    "OPENAI_API_VERSION",
    "JPY_SESSION_NAME",
)


# A busy machine is no failure; `--hypothesis-profile=fast` is for the daily loop.
settings.register_profile("patient", deadline=None)
settings.register_profile("fast", parent=settings.get_profile("patient"), max_examples=20)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--req-report",
        action="store_true",
        help="print which rows of the requirements are held by tests that passed",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(report_of(config), "requirement-report")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that don't exist yet, one a test; pytest's own would be searched for each time."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> None:
    """No key, model, store or profile of the person who runs the tests reaches a test."""
    for name in (*FOREIGN_VARIABLES, *(name for name in os.environ if name.startswith(OURS))):
        monkeypatch.delenv(name, raising=False)
    folder = next(homes)
    folder.mkdir()
    monkeypatch.setenv("AGENT_MAGICS_STORE", str(folder / "ledger.db"))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("AGENT_MAGICS_MCP", "off")
    monkeypatch.setenv("AGENT_MAGICS_SKILLS", "off")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of design data that lies beside a checkout in CI; skips where there is none."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder `shared` beside the project, which a plain clone has not")
    return folder
