"""docs/settings.md tells every setting as it is, and what it shows can be used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import traitlets
from traitlets.config import Config

from agent_magics import settings
from agent_magics.notebook.magics import AgentMagics
from tests.notebook.conftest import Notebook

pytestmark = pytest.mark.req("N10")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| `(.+?)` \| (.*?) ?\| .+ \|$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^\| `(\w+)` \|(.+) \|$", re.MULTILINE)
EXAMPLE = re.compile(r"`(\{[^`]+\})`")
TRAITS = AgentMagics.class_traits(config=True)
KINDS: dict[type[Any], str] = {
    traitlets.Bool: "yes or no",
    traitlets.Integer: "number",
    traitlets.List: "list of texts",
    traitlets.Dict: "dict",
    traitlets.Unicode: "text",
}


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[2] / "docs" / "settings.md").read_text("utf-8")


def test_every_setting_has_a_row_with_its_type_and_default(page: str) -> None:
    """No setting is missing, none is told that isn't there."""
    told = {name: (kind, default) for name, kind, default, _ in ROW.findall(page)}
    assert told == {
        name: (kind_of(trait), typed(trait.default())) for name, trait in TRAITS.items()
    }


def test_every_setting_names_its_variable(page: str) -> None:
    """The variables are those that `agent_magics.settings` says it reads."""
    known = set(re.findall(r"`(AGENT_MAGICS_[A-Z_]+)`", settings.__doc__ or ""))
    of_traits = {name: f"AGENT_MAGICS_{name.upper()}" for name in TRAITS}
    assert {name: variable.strip("`") for name, *_, variable in ROW.findall(page)} == {
        name: variable if variable in known else "" for name, variable in of_traits.items()
    }


def test_the_page_can_be_an_ipython_config(page: str, shell: Any) -> None:
    """Its `ipython_config.py` sets what it names."""
    (source,) = PYTHON.findall(page)
    config = Config()
    exec(compile(source, "ipython_config.py", "exec"), {"c": config})
    shell.update_config(config)
    magics = AgentMagics(shell)
    assert config.InteractiveShellApp.extensions == ["agent_magics"]
    assert magics.model == "openai:my-model"
    assert magics.approval == {"run_python": "auto", "*": "ask"}
    assert magics.max_cost_per_session == "$5"
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


def kind_of(trait: Any) -> str:
    """Say what a setting takes, as the page does."""
    if isinstance(trait, traitlets.Union):
        return f"{kind_of(trait.trait_types[0])}, or a dict of them by tool"
    if isinstance(trait, traitlets.Enum):
        *first, last = [typed(each) for each in trait.values or ()]
        return f"{', '.join(f'`{each}`' for each in first)} or `{last}`"
    kind = KINDS[type(trait)]
    if not trait.allow_none:
        return kind
    return f"{kind}, or None" if " or " in kind else f"{kind} or None"


def typed(value: object) -> str:
    """Write a value as it is typed in Python, a text in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)
