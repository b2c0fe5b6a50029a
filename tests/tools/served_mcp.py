"""An MCP server over streamable HTTP, made with the SDK; run as a script, it prints its port."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("loop", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(what: str) -> dict[str, Any]:
    """Look at something."""
    return {"seen": what}


@server.tool(structured_output=False)
def paint() -> list[Any]:
    """Paint a dot."""
    return ["a dot", Image(data=b"\x89PNG", format="png")]


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("the paint is dry")


@server.tool()
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
async def learn(context: Context) -> str:
    """Learn another tool, and tell of it."""
    server.add_tool(paint, name="paint again")
    await context.notify_tools_changed()
    return "learnt"


def main() -> None:
    """Serve until stdin ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)  # noqa: T201 - it is what the test waits for
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
