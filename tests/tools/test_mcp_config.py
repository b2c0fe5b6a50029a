"""The files that name MCP servers: what is read, filled in, refused, and trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.tools.mcp_config import McpFiles, ServerConfig

Entries = dict[str, Any]


def write(path: Path, servers: Entries) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def files(tmp_path: Path, setting: str = "auto", **environ: str) -> McpFiles:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    return McpFiles(
        setting,
        folder=folder,
        user_file=tmp_path / "config" / "mcp.json",
        trust_file=tmp_path / "data" / "trusted.json",
        environ=environ,
    )


def test_entries_are_read_as_other_clients_read_them(tmp_path: Path) -> None:
    """Programs and addresses, variables filled in, what is switched off left out."""
    write(
        tmp_path / "config" / "mcp.json",
        {
            "db": {
                "command": "${BIN:-uvx}",
                "args": ["server", "--at=${DATA}", "${env:DATA}", "$DATA", "${EMPTY:-}"],
                "env": {"TOKEN": "${TOKEN}"},
            },
            "web": {
                "type": "http",
                "url": "https://${HOST:-mcp.example.org}/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"},
            },
            "old": {"type": "streamable-http", "url": "http://localhost:1/mcp"},
            "off": {"command": "x", "disabled": True},
        },
    )
    config = files(tmp_path, DATA="/d", TOKEN="t0p").read()
    assert config.troubles == ()
    assert config.servers == (
        ServerConfig(
            name="db",
            command=("uvx", "server", "--at=/d", "/d", "$DATA", ""),
            env={"TOKEN": "t0p"},
            cwd=str(tmp_path / "work"),
        ),
        ServerConfig(
            name="web",
            url="https://mcp.example.org/mcp",
            headers={"Authorization": "Bearer t0p"},
        ),
        ServerConfig(name="old", url="http://localhost:1/mcp"),
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "x", "args": ["${NOT_THERE}"]}, "needs the variable NOT_THERE"),
        ({"type": "sse", "url": "http://localhost/sse"}, "its type is 'sse'"),
        ({"args": ["x"]}, 'needs a "command", or a "url"'),
        ({"command": ["x"]}, 'needs a "command", or a "url"'),
        ({"command": "x", "args": "y"}, '"args" of the MCP server "odd" is no list'),
        ({"command": "x", "env": ["y"]}, '"env" of the MCP server "odd" is no object'),
        ("x", "is no JSON object"),
    ],
    ids=["variable", "sse", "nothing", "command", "args", "env", "text"],
)
def test_what_is_wrong_with_a_server_is_said(tmp_path: Path, entry: Any, said: str) -> None:
    """One sentence names the server; the others are read."""
    write(tmp_path / "config" / "mcp.json", {"odd": entry, "good": {"command": "x"}})
    config = files(tmp_path).read()
    (trouble,) = config.troubles
    assert said in trouble
    assert '"odd"' in trouble
    assert [server.name for server in config.servers] == ["good"]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "\xff"])
def test_a_file_that_can_not_be_read_is_said(tmp_path: Path, text: str) -> None:
    """One sentence names the file."""
    path = write(tmp_path / "config" / "mcp.json", {})
    path.write_text(text, "latin-1")
    config = files(tmp_path).read()
    assert len(config.troubles) == 1
    assert config.troubles[0].startswith("mcp.json ")
    assert config.servers == ()


def test_a_folders_file_starts_nothing_until_it_is_trusted(tmp_path: Path) -> None:
    """What it would run is told, its keys left out; a person's word holds for this content."""
    mine = {"clock": {"command": "clock", "args": ["mine"]}}
    write(tmp_path / "config" / "mcp.json", mine)
    theirs = {"clock": {"command": "theirs", "args": ["--key", "sk-12345678901234"]}}
    found = write(tmp_path / "work" / ".mcp.json", theirs)
    made = files(tmp_path)
    config = made.read()
    assert [server.command for server in config.servers] == [("clock", "mine")]
    assert config.held == {"clock": "theirs --key …234"}
    assert config.held_file == ".mcp.json"

    assert made.trust() == found
    (server,) = files(tmp_path).read().servers  # in another kernel, too
    assert server.command[0] == "theirs"

    write(found, {"clock": {"command": "something else"}})
    assert "clock" in made.read().held

    made.trust()
    made.trust(undo=True)
    assert "clock" in made.read().held


def test_trust_needs_a_file(tmp_path: Path) -> None:
    """Where there is none, the sentence says where it would be."""
    with pytest.raises(InputValidation, match=r"no .mcp.json or mcp.json in .*work"):
        files(tmp_path).trust()


def test_a_damaged_list_of_trust_trusts_nothing(tmp_path: Path) -> None:
    """What can't be read is no word."""
    write(tmp_path / "work" / "mcp.json", {"one": {"command": "x"}})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trusted.json").write_text("[1]")
    assert "one" in files(tmp_path).read().held


def test_a_named_file_is_the_only_one_and_trusted(tmp_path: Path) -> None:
    """A person named it; relative to the folder, `~` is their home."""
    write(tmp_path / "config" / "mcp.json", {"mine": {"command": "x"}})
    write(tmp_path / "work" / ".mcp.json", {"theirs": {"command": "y"}})
    config = files(tmp_path, ".mcp.json").read()
    assert [server.name for server in config.servers] == ["theirs"]
    assert not config.held
    missing = files(tmp_path, "elsewhere.json").read()
    assert missing.troubles == ('There is no file "elsewhere.json", which AgentMagics.mcp names.',)


def test_nothing_is_read_where_it_is_off(tmp_path: Path) -> None:
    """With an empty setting no file counts."""
    write(tmp_path / "config" / "mcp.json", {"mine": {"command": "x"}})
    write(tmp_path / "work" / ".mcp.json", {"theirs": {"command": "y"}})
    config = files(tmp_path, "").read()
    assert config.servers == ()
    assert not config.held
