"""MCP servers to talk to: a tiny program without the SDK, and one over HTTP made with it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_magics.tools.mcp_config import ServerConfig

# Speaks the older protocol. argv: seconds before it answers, then words:
# "deaf" ignores the end of stdin and SIGTERM, "pid=FILE" writes its pid there.
_TINY = """
import json, os, signal, sys, time
words = sys.argv[2:]
for word in words:
    if word.startswith("pid="):
        with open(word[4:], "w") as file:
            file.write(str(os.getpid()))
if "deaf" in words:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
time.sleep(float(sys.argv[1]))
names = ["echo", "add", "die", "tell pid"]
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, given = asked.get("method"), asked.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": given["protocolVersion"],
                  "capabilities": {"tools": {"listChanged": True}},
                  "serverInfo": {"name": "tiny", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    elif method == "tools/call":
        if given["name"] == "die":
            os._exit(3)
        if given["name"] == "add":
            names.append("added")
            say({"method": "notifications/tools/list_changed"})
        said = str(os.getpid()) if given["name"] == "tell pid" else json.dumps(given["arguments"])
        result = {"content": [{"type": "text", "text": said}]}
    elif "id" in asked:
        say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
        continue
    else:
        continue
    say({"id": asked["id"], "result": result})
"""


def tiny(name: str, folder: Path, *words: str, after_s: float = 0.0) -> ServerConfig:
    """Configure the tiny program as a server."""
    script = folder / "tiny_server.py"
    script.write_text(textwrap.dedent(_TINY), "utf-8")
    return ServerConfig(
        name=name,
        command=(sys.executable, "-I", "-S", str(script), str(after_s), *words),
        cwd=str(folder),
    )


@contextmanager
def http_server() -> Iterator[str]:
    """Serve MCP over streamable HTTP on the loopback interface; gives its address."""
    script = Path(__file__).with_name("served_mcp.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        port = served.stdout.readline().strip()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            served.kill()
