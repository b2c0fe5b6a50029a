"""What a streamed turn sends to the page, watched live and not, and how large the scripts are.

Bytes are those of the messages that a kernel publishes while the cell runs, as a server passes them
on; the answer itself is the least that could be sent.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import anywidget
from jupyter_client.blocking.client import BlockingKernelClient

from agent_magics.notebook.views import widgets
from agent_magics.notebook.views.ledger import ledger_view
from agent_magics.notebook.views.turn import turn_view
from benchmarks.streaming import PATIENCE_S, kernel

ANSWER = "\n\n".join(" ".join(["words"] * 50) for _ in range(70))  # some 20 KB in paragraphs
DELAY_S = 0.005
VIEWS = (turn_view, widgets, ledger_view)
_PARTS = ("header", "parent_header", "metadata", "content")
_PLACE = re.compile(r"am-turn--(\w+)")


def table() -> str:
    """Write both tables."""
    with tempfile.TemporaryDirectory(prefix="agent-magics-bench-") as folder:
        sent = _sent(Path(folder))
    lines = ["| an answer of 20 KB | bytes to the page | messages | times the answer |"]
    lines.append("|---|--:|--:|--:|")
    for name, (size, count) in sent.items():
        lines.append(f"| {name} | {size:,} | {count:,} | {size / len(ANSWER):.1f} |")
    lines += ["", "| script | bytes | compressed |", "|---|--:|--:|"]
    for name, script in sorted(_scripts().items()):
        lines.append(f"| {name} | {len(script):,} | {len(gzip.compress(script)):,} |")
    return "\n".join(lines)


def _scripts() -> dict[str, bytes]:
    made = [each for module in VIEWS for each in vars(module).values() if isinstance(each, type)]
    return {
        each.__name__: str(vars(each)["_esm"]).encode()
        for each in made
        if issubclass(each, anywidget.AnyWidget) and "_esm" in vars(each)
    }


def _sent(folder: Path) -> dict[str, tuple[int, int]]:
    script = folder / "answer.yaml"
    step = {"text": ANSWER, "chunk_delay_s": DELAY_S}
    script.write_text(json.dumps({"steps": ["ready", step, step]}), encoding="utf-8")
    with kernel(folder) as client:
        page = _Page(client)
        page.ask("%load_ext agent_magics")
        page.ask(f"%config AgentMagics.model = {f'scripted:{script}'!r}")
        page.ask("%agent the first turn sends the script")
        return {
            "watched live": page.ask("%agent tell me all", is_watched=True),
            "not watched": page.ask("%agent tell me all"),
        }


class _Page:
    """A front end with a subshell, which may draw a turn; it counts what it is sent."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client
        client.control_channel.send(client.session.msg("create_subshell_request", {}))
        reply = client.get_control_msg(timeout=PATIENCE_S)
        self._subshell = str(reply["content"]["subshell_id"])
        self._widget = ""

    def ask(self, code: str, *, is_watched: bool = False) -> tuple[int, int]:
        """Run a cell to its end; give the bytes and the number of messages that came of it."""
        size = count = 0
        asked = self._client.execute(code, allow_stdin=True)
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE_S)
            content, kind = message["content"], message["msg_type"]
            size += len(json.dumps({part: message[part] for part in _PARTS}, default=str))
            count += 1
            if kind == "comm_open" and "_esm" in content["data"]["state"]:
                self._widget = content["comm_id"]
            place = _PLACE.search(str(content.get("data", "")))
            if place and is_watched:
                is_watched = False
                self._find(place.group(1))
            if content.get("execution_state") == "idle" and _answers(message, asked):
                self._client.get_shell_msg(timeout=PATIENCE_S)
                return size, count

    def _find(self, place: str) -> None:
        data = {"method": "custom", "content": {"kind": "here", "places": [place]}}
        message = self._client.session.msg("comm_msg", {"comm_id": self._widget, "data": data})
        message["header"]["subshell_id"] = self._subshell
        self._client.shell_channel.send(message)


def _answers(message: dict[str, Any], asked: str) -> bool:
    return bool(message["parent_header"].get("msg_id") == asked)
