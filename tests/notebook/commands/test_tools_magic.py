"""`%tools`: what it lists, allows, and trusts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics import tool
from agent_magics.core.events import ToolAnswered
from agent_magics.notebook.commands.tools import ToolState, tools_html, tools_text
from tests.notebook.conftest import Notebook
from tests.tools.mcp_servers import tiny

LOOK = ToolState(name="look", source="notebook", when="runs at once")
WIPE = ToolState(name="wipe<b>", source="mcp:files", when="asks first")


@pytest.fixture
def here(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Any], Path]:
    """Let files that name MCP servers count, in folders of this test; writes this folder's."""
    monkeypatch.delenv("AGENT_MAGICS_MCP")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    notebook.run("%reload_ext agent_magics")

    def write(*servers: Any) -> Path:
        path = tmp_path / ".mcp.json"
        entries = {
            each.name: {"command": each.command[0], "args": each.command[1:]} for each in servers
        }
        path.write_text(json.dumps({"mcpServers": entries}))
        return path

    return write


def test_the_list_as_text() -> None:
    """One tool a line: where it is from, what happens to a call; then notes."""
    assert tools_text("default", [LOOK, WIPE], ["MCP servers: files ready"]).splitlines() == [
        "default · 2 tools",
        "  tool     from       a call",
        "  look     notebook   runs at once",
        "  wipe<b>  mcp:files  asks first",
        "MCP servers: files ready",
    ]
    assert tools_text("default", []) == "default · 0 tools"


def test_the_list_as_html_escapes_what_servers_say() -> None:
    """A name of a server's making is text."""
    made = tools_html("default", [LOOK, WIPE], ["<i>note</i>"])
    for cell in ("look", "notebook", "runs at once", "asks first"):
        assert f">{cell}</td>" in made
    assert "wipe&lt;b&gt;" in made
    assert "&lt;i&gt;note&lt;/i&gt;" in made


@pytest.mark.req("N6")
def test_the_tools_of_a_slot_are_listed_and_chosen(notebook: Notebook) -> None:
    """`only`, `none` and `all` hold for the slot, and the model is sent those."""
    notebook.shell.user_ns["look"] = tool(name="look")(lambda: "seen")
    said = notebook.run("%tools")
    assert "  look                notebook  runs at once\n" in said
    assert "  run_python          kernel    asks first\n" in said
    assert "default offers look" in notebook.run("%tools only look look")
    said = notebook.run("%tools")
    assert "  session_memory_set  session   not offered here\n" in said
    notebook.run("%agent hello")
    assert [each.name for each in notebook.session.next_request().request.tools] == ["look"]
    notebook.run("%slot new other")
    assert "other offers no tool" in notebook.run("%tools none --slot other")
    assert notebook.session.slot_config("other").tools == ()
    assert "default offers every tool" in notebook.run("%tools all")
    assert notebook.session.slot_config("default").tools is None


@pytest.mark.req("N6")
def test_a_wrong_name_is_one_line(notebook: Notebook) -> None:
    """It names what is near; a tool that never asks has nothing to approve."""
    notebook.shell.user_ns["look"] = tool(name="look")(lambda: "seen")
    said = notebook.run("%tools only loook", fails=True)
    assert said.startswith("UsageError: There is no tool 'loook'. Did you mean look?")
    said = notebook.run("%tools never look", fails=True)
    assert said.startswith("UsageError: look runs at once and never asks: it isn't marked as")
    assert "needs more: %tools only NAME…" in notebook.run("%tools only", fails=True)


@pytest.mark.req("N6")
@pytest.mark.slow
def test_a_folders_servers_start_when_they_are_trusted(
    notebook: Notebook, here: Callable[[Any], Path], tmp_path: Path, script: Callable[..., None]
) -> None:
    """Before it nothing runs and one line says so; after it its tools are offered and approved."""
    mark = tmp_path / "pid"
    use = {"calls": [{"name": "tiny__echo", "arguments": {"a": 1}}]}
    script("one", "two", use, "refused", use, "done")
    here(tiny("tiny", tmp_path, f"pid={mark}"))
    said = notebook.run("%agent hello")
    assert ".mcp.json in this folder names MCP servers (tiny); nothing of it was started." in said
    assert ".mcp.json" not in notebook.run("%agent retry")
    assert f"  tiny: {sys.executable} -I -S" in notebook.run("%tools")
    assert not mark.exists()

    assert ".mcp.json is trusted as it stands" in notebook.run("%tools trust")
    assert "was trusted already" in notebook.run("%tools trust")
    said = notebook.run("%tools")
    assert re.search(r"tiny__echo +mcp:tiny +asks first\n", said)
    assert "MCP servers: tiny ready" in said
    assert mark.exists()

    notebook.run("%agent try it")  # nobody is here to be asked
    refused = [e.payload for e in notebook.session.history() if isinstance(e.payload, ToolAnswered)]
    assert "needs a person's approval" in refused[0].output.content
    assert "tiny__echo runs at once in default" in notebook.run("%tools allow tiny__echo")
    assert notebook.session.approval("tiny__echo") == "auto"
    assert "tiny__echo(1) ✓" in notebook.run("%agent use it")
    assert "is refused" in notebook.run("%tools never *")
    assert notebook.session.approval("tiny__echo") == "never"
    assert "starts nothing from the next question on" in notebook.run("%tools trust --undo")


@pytest.mark.req("N10")
def test_the_setting_turns_servers_off(
    notebook: Notebook, here: Callable[[Any], Path], tmp_path: Path
) -> None:
    """An empty one reads no file; a path reads that one, which is trusted."""
    path = here(tiny("tiny", tmp_path))
    notebook.run("%config AgentMagics.mcp = ''")
    assert "MCP" not in notebook.run("%tools")
    assert "AgentMagics.mcp is off" in notebook.run("%tools trust", fails=True)
    notebook.run(f"%config AgentMagics.mcp = {path.name!r}")
    assert "MCP servers: tiny ready" in notebook.run("%tools")
