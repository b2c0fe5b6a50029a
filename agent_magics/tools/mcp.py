"""Tools of MCP servers: connected before a turn that could use them, closed with the agent.

Names are `server__tool`. A server that doesn't work is one sentence; the others work on.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import OnMain, ToolInput
from agent_magics.core.values import Value
from agent_magics.tools.mcp_config import McpConfig, ServerConfig
from agent_magics.tools.mcp_server import McpServer, ServerStatus

if TYPE_CHECKING:  # optional: the extra "mcp"
    import mcp_types

PATIENCE_S = 4.0
RETRY_PATIENCE_S = 0.5
MAX_NAME_CHARACTERS = 64  # what every model server takes
DIGEST_CHARACTERS = 8
INSTALL = 'MCP servers are named in a file here; they need pip install "agent-magics[mcp]".'
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")


class McpTool:
    """One tool of a server. Without a hint that it only reads, it is taken to change things."""

    def __init__(self, server: McpServer, listed: mcp_types.Tool) -> None:
        self._server = server
        self._listed_name = listed.name
        self.name = tool_name(server.config.name, listed.name)
        self.description: str = listed.description or listed.title or listed.name
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}}
        self.parameters.update(listed.input_schema or {})
        hints = listed.annotations
        # No hint is no promise: what isn't known to only look is asked about.
        self.is_mutating: bool = hints is None or hints.read_only_hint is not True
        self.source = f"mcp:{server.config.name}"

    async def execute(self, call: ToolInput, on_main: OnMain) -> ToolOutput:  # noqa: ARG002 - the port's
        """Call it on its server; a cancel is passed on."""
        return await self._server.call(self._listed_name, call.arguments)


class ServerState(Value):
    """How a server that was needed is, for `%tools`."""

    name: str
    status: ServerStatus
    trouble: str = ""


class McpTools:
    """The tools of the servers that `read` gives now; a `LiveTools` source.

    `read` is called before each turn: what is new in the files is started, what is gone is ended,
    what has died is started again. All methods but `states` belong to one loop.
    """

    def __init__(
        self,
        read: Callable[[], McpConfig],
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._read = read
        self._patience_s = patience_s
        self._servers: dict[str, McpServer] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._said: set[str] = set()
        self._is_closed = False

    def __call__(self) -> tuple[McpTool, ...]:
        """Return the tools of the servers that answer now, by name."""
        tools: dict[str, McpTool] = {}
        # By name, so that the tools of a request stand in the same order whichever server was ready
        # first, and the prefix stays cached.
        for server in sorted(self._servers.values(), key=lambda each: each.config.name):
            if server.status == "ready":
                for listed in server.listed:
                    tool = McpTool(server, listed)
                    tools.setdefault(tool.name, tool)
        return tuple(tools[name] for name in sorted(tools))

    async def ready(self, allowed: Sequence[str] | None) -> tuple[str, ...]:
        """Connect what a turn may use, and give what is to be said of it, each thing once.

        `allowed` None: every tool; else the names that the slot allows. A server that is slow
        to start goes on starting; its tools come with a later turn.
        """
        # Read anew before each turn: a person who edits the file expects it to hold for the next
        # question.
        config = await asyncio.to_thread(self._read)
        lines = [*config.troubles]
        if config.held:
            lines.append(held_line(config))
        wanted = [each for each in config.servers if _may_use(each, allowed)]
        if wanted and importlib.util.find_spec("mcp") is None:
            lines.append(INSTALL)
        elif not self._is_closed:
            self._drop_changed({each.name: each for each in config.servers})
            lines += await self._connect(wanted)
        fresh = [line for line in dict.fromkeys(lines) if line not in self._said]
        self._said.update(fresh)
        return tuple(fresh)

    def states(self) -> tuple[ServerState, ...]:
        """Return the state of each server that was needed."""
        servers = tuple(self._servers.values())
        return tuple(
            ServerState(name=each.config.name, status=each.status, trouble=each.trouble)
            for each in servers
        )

    async def aclose(self) -> None:
        """End every server, within 2 s."""
        self._is_closed = True
        for name in tuple(self._servers):
            self._drop(name)
        if self._closing:
            await asyncio.wait(set(self._closing))

    async def _connect(self, wanted: Sequence[ServerConfig]) -> list[str]:
        """Start and refresh; nobody waits for a server that has had its time already."""
        for config in wanted:
            server = self._servers.get(config.name)
            if server is None or server.status in ("ended", "failed"):
                is_retry = server is not None and server.status == "failed"
                patience_s = RETRY_PATIENCE_S if is_retry else self._patience_s
                server = self._servers[config.name] = McpServer(config, patience_s=patience_s)
                server.start()
            else:
                await server.refresh()
        found = (self._servers.get(config.name) for config in wanted)
        servers = [server for server in found if server]  # another turn may have dropped one
        await asyncio.gather(*(server.waited_for() for server in servers))
        for server in servers:
            if server.status == "ready":  # what fails after this is news again
                self._said = {line for line in self._said if f'"{server.config.name}"' not in line}
        return [line for line in map(_told, servers) if line]

    def _drop_changed(self, configs: dict[str, ServerConfig]) -> None:
        for name, server in tuple(self._servers.items()):
            if configs.get(name) != server.config:
                self._drop(name)

    def _drop(self, name: str) -> None:
        task = asyncio.ensure_future(self._servers.pop(name).aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def held_line(config: McpConfig) -> str:
    """Say that nothing of a folder's file was started, and what a person can do."""
    return (
        f"{config.held_file} in this folder names MCP servers ({', '.join(config.held)}); nothing"
        " of it was started. %tools shows what they run, %tools trust starts them."
    )


def tool_name(server: str, tool: str) -> str:
    """Name a tool for models: `server__tool`, the same always, and no other's.

    A name that has to be changed to fit ends with a digest of what it was, so that no two meet
    and an approval of one never holds for another.
    """
    name = f"{_NOT_ALLOWED.sub('_', server)}__{_NOT_ALLOWED.sub('_', tool)}"
    # `a__b` with tool `c` and `a` with tool `b__c` would be one name, and one approval for both.
    is_ambiguous = "__" in server or server.endswith("_")
    if name == f"{server}__{tool}" and len(name) <= MAX_NAME_CHARACTERS and not is_ambiguous:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()
    end = f"_{digest[:DIGEST_CHARACTERS]}"
    return name[: MAX_NAME_CHARACTERS - len(end)] + end


def _may_use(config: ServerConfig, allowed: Sequence[str] | None) -> bool:
    """Return whether a slot's tools may be among a server's."""
    if allowed is None:
        return True
    # Half of the length at most, as a long name ends with a digest; a server too many is started
    # rather than one too few.
    prefix = f"{_NOT_ALLOWED.sub('_', config.name)}__"[: MAX_NAME_CHARACTERS // 2]
    return any(name.startswith(prefix) for name in allowed)


def _told(server: McpServer) -> str:
    match server.status:
        case "failed":
            return server.trouble
        case "starting":
            return (
                f'The MCP server "{server.config.name}" is still starting;'
                " its tools come with a later question."
            )
        case _:
            return ""
