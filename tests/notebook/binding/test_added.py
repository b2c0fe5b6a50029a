"""Skills of folders and extensions of installed packages, in a notebook."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

from tests.notebook.conftest import Notebook
from tests.providers.own_provider import block, installed

SKILL = "---\nname: {name}\ndescription: Draws.\n{more}---\nDraw it in {name}."
PACKAGE = """
from agent_magics import tool
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.providers.scripted import ScriptedProvider


@tool
def rain(city: str) -> str:
    "Tell how much it rains."
    return f"a lot in {city}"


class Bad(PluginBase):
    async def initialize(self, config):
        raise ValueError("no licence")


class Heard(PluginBase):
    heard = []

    def turn_start(self, payload):
        self.heard.append(payload.slot_id)


class Acme(ScriptedProvider):
    provider_id = "acme"

    def __init__(self):
        super().__init__(["acme says so"])


class Second(ScriptedProvider):
    provider_id = "openai"
"""
POINTS = """
[agent_magics.tools]
gone = acme_added:missing
rain = acme_added:rain
[agent_magics.plugins]
bad = acme_added:Bad
heard = acme_added:Heard
[agent_magics.providers]
acme = acme_added:Acme
openai = acme_added:Second
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notebook's folder, with a home beside it; skills are read."""
    monkeypatch.setenv("AGENT_MAGICS_SKILLS", "auto")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = tmp_path / "work"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def write(folder: Path) -> Callable[..., None]:
    """Write a skill into the notebook's folder."""

    def written(name: str, text: str | None = None, more: str = "") -> None:
        file = folder / ".agents" / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(text or SKILL.format(name=name, more=more))

    return written


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with extensions, some of them broken."""
    info = tmp_path / "acme_added-3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-added\nVersion: 3\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "acme_added.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("acme_added", None)


@pytest.mark.req("E15")
def test_a_skill_of_the_notebooks_folder_is_called_by_name(
    write: Callable[..., None], notebook: Notebook
) -> None:
    """Its text goes before the prompt, which stays as it was typed."""
    write("plot")
    notebook.run("%%agent\n/plot the prices")
    called, prompt, _ = notebook.view()
    assert called.endswith("\nDraw it in plot.")
    assert prompt == "/plot the prices"
    notebook.run("%agent /tmp/x.csv is what?")
    assert notebook.view()[-2] == "/tmp/x.csv is what?"


@pytest.mark.req("E15", "N6")
def test_the_notebooks_folder_counts_wherever_python_is(
    write: Callable[..., None],
    folder: Path,
    tmp_path: Path,
    notebook: Notebook,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its skills, and its file of MCP servers, though the kernel was started elsewhere."""
    write("plot")
    (folder / ".mcp.json").write_text('{"mcpServers": {"near": {"command": "near"}}}')
    monkeypatch.delenv("AGENT_MAGICS_MCP")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "prices.ipynb"))
    monkeypatch.chdir(tmp_path)
    notebook.run("%reload_ext agent_magics")
    assert "names MCP servers (near)" in notebook.run("%%agent\n/plot the prices")
    assert notebook.view()[0].endswith("\nDraw it in plot.")


@pytest.mark.req("E15", "E19")
def test_an_unknown_skill_is_one_sentence(write: Callable[..., None], notebook: Notebook) -> None:
    """Near names are named, and nothing is recorded."""
    write("plot")
    said = notebook.run("%%agent\n/plt the prices", fails=True)
    assert 'There is no skill "/plt". Did you mean plot? Skills here: plot.' in said
    assert "Traceback" not in said
    assert notebook.view() == []


@pytest.mark.req("E15")
def test_a_bad_file_and_a_missing_tool_are_told_once(
    write: Callable[..., None], notebook: Notebook
) -> None:
    """One line each, at the first use; the other skills work, that one too."""
    write("bad", "no front matter")
    write("plot", more="required-tools: paint\n")
    said = notebook.run("%agent hello")
    assert ".agents/skills/bad/SKILL.md has no front matter between two lines ---" in said
    assert "skill /plot needs tools that aren't here: paint" in said
    assert "SKILL.md" not in notebook.run("%%agent\n/plot it")


@pytest.mark.req("E15", "N10")
def test_skills_complete_before_and_after_the_first_use(
    write: Callable[..., None], notebook: Notebook
) -> None:
    """In the body of a `%%agent` cell, by IPython's own completer."""
    write("plot")
    write("tidy")
    cell = "%%agent\n/pl"

    def offered() -> list[str]:
        with provisionalcompleter():
            found = notebook.shell.Completer.completions(cell, len(cell))
            return [completion.text for completion in found]

    assert offered() == ["/plot"]
    notebook.run("%agent hello")
    assert offered() == ["/plot"]


@pytest.mark.req("E15")
def test_skills_of_folders_can_be_turned_off(
    write: Callable[..., None], notebook: Notebook
) -> None:
    """By a setting, from the next use on."""
    write("plot")
    notebook.run("%config AgentMagics.skills = 'off'")
    assert "Skills here: none" in notebook.run("%%agent\n/plot it", fails=True)
    notebook.run("%config AgentMagics.skills = 'auto'")
    notebook.run("%%agent\n/plot it")


@pytest.mark.req("P8", "E14")
def test_what_packages_add_is_there_and_the_broken_is_named(
    folder: Path, acme: None, script: Any, notebook: Notebook
) -> None:
    """Tools, plugins and providers of installed packages; one line for each that is broken."""
    script({"calls": [{"name": "rain", "arguments": {"city": "Oslo"}}]}, "wet")
    said = notebook.run("%agent how wet is it?")
    assert 'tool "gone" of acme-added 3 is left out: AttributeError' in said
    assert (
        'plugin "bad" of acme-added 3 is left out: Plugin "bad" could not start: ValueError: no'
        " licence" in said
    )
    assert 'provider "openai" is left out: there is one so called' in said
    assert "wet" in said
    assert "a lot in Oslo" in str(notebook.session.history())
    assert sys.modules["acme_added"].Heard.heard == ["default"]
    assert "acme says so" in notebook.run("%agent --model acme:any what do you say?")


@pytest.mark.req("P8")
def test_a_tool_of_the_notebook_stands_before_a_packages(
    folder: Path, acme: None, script: Any, notebook: Notebook
) -> None:
    """A name that somebody installed can't take the place of the notebook's own function."""
    script({"calls": [{"name": "rain", "arguments": {"city": "Oslo"}}]}, "dry")
    notebook.run(
        "from agent_magics import tool\n@tool\ndef rain(city: str) -> str:\n"
        "    'Tell how much it rains.'\n    return 'nothing'\n"
    )
    notebook.run("%agent how wet is it?")
    assert "'nothing'" in str(notebook.session.history())


@pytest.mark.req("P8")
def test_the_provider_of_the_docs_answers_in_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Notebook
) -> None:
    """Once its package is installed; it takes thirty lines."""
    with installed(tmp_path, monkeypatch):
        notebook.run("%reload_ext agent_magics")
        notebook.run("%agent model acme:loud")
        assert "HOW ARE YOU?" in notebook.run("%agent how are you?")
    assert len([line for line in block("python").splitlines() if line.strip()]) <= 30
