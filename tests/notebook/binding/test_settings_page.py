"""docs/settings.md tells every setting as it is, and what it shows can be used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from agent_magics.notebook.magics import AgentMagics
from agent_magics.settings import SETTINGS
from scripts.settings_page import settings_table
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.req("N10")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^\| `(\w+)` \|(.+) \|$", re.MULTILINE)
EXAMPLE = re.compile(r"`(\{[^`]+\})`")
TRAITS = AgentMagics.class_traits(config=True)


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[3] / "docs" / "settings.md").read_text("utf-8")


def test_the_page_has_the_rows_of_the_table(page: str) -> None:
    """Written by `python -m scripts.settings_page`; nothing is missing, and all is as it is."""
    assert settings_table() in page


@pytest.mark.req("N17")
def test_a_setting_is_spelled_in_one_row(root: Path) -> None:
    """Its variable is made of its name, and its trait of its row: nobody else writes them."""
    package = root / "agent_magics"
    elsewhere = {
        f"{path.relative_to(package).as_posix()}: {row.variable}"
        for path in package.rglob("*.py")
        for row in SETTINGS
        if row.variable and f'"{row.variable}"' in path.read_text("utf-8")
    }
    assert elsewhere == set()
    assert set(TRAITS) == {row.name for row in SETTINGS}
    assert all(row.help and row.page for row in SETTINGS)
    assert all(row.read is not None for row in SETTINGS if row.in_environment)


def test_the_page_can_be_an_ipython_config(page: str, shell: Any) -> None:
    """Its `ipython_config.py` sets what it names."""
    (source,) = PYTHON.findall(page)
    config = Config()
    exec(compile(source, "ipython_config.py", "exec"), {"c": config})
    shell.update_config(config)
    magics = AgentMagics(shell)
    assert config.InteractiveShellApp.extensions == ["agent_magics"]
    assert magics.value_of("model") == "openai:my-model"
    assert magics.value_of("approval") == {"run_python": "auto", "*": "ask"}
    assert magics.value_of("max_cost_per_session") == "$5"
    magics.bridge.close()


def test_what_the_page_shows_runs(page: str, notebook: Notebook, nothing_found: None) -> None:
    """Each line of its cells, and each value that its table gives as an example."""
    (cell,) = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = cell.splitlines()
    shown = {name: EXAMPLE.findall(row) for name, row in NAMED.findall(page)}
    assert [name for name, examples in shown.items() if examples] == ["prices", "models"]
    lines += [f"%config AgentMagics.{name} = {each}" for name in shown for each in shown[name]]
    for line in lines:
        said = notebook.run(line)
        assert "stays as it was" not in said
        assert "There is no setting" not in said
    said = notebook.run(lines[1])
    assert "Current: 'openai:my-model'" in said
    assert "'ollama:*': [0, 0]" in said
