"""A page played by a client: it draws turns and presses buttons over a subshell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.notebook.kernels import PATIENCE_S, Kernel, say

CONTROL = "jupyter.widget.control"
PLACE = re.compile(r"am-turn--(\w+)")


class Page:
    """A front end with subshells: it sees what is published, and presses buttons.

    `seen`: what was read since the cell began, but for what is read by `ended`.
    """

    def __init__(self, one: Kernel, folder: Path) -> None:
        self.one = one
        self._folder = folder
        self.widget = ""
        self.place = ""
        self.said: list[dict[str, Any]] = []
        self.seen: list[dict[str, Any]] = []
        self._subshell = self._created()

    @classmethod
    def found(cls, one: Kernel, folder: Path) -> Page:
        """Make a page that knows the widget which draws turns: one has been told."""
        made = cls(one, folder)
        made.let_say("ready")
        message_id = one.start("%agent hi")
        made.until(lambda _: bool(made.widget))
        made.ended(message_id)
        return made

    def let_say(self, *steps: Any) -> None:
        """Let the model say this next, in a slot of its own."""
        say(self.one, self._folder, *steps)

    def start(self, code: str) -> str:
        """Begin a cell and find the place that its turn grows in."""
        self.said.clear()
        self.seen.clear()
        message_id = self.one.start(code)
        self.until(lambda message: bool(PLACE.search(str(message["content"].get("data")))))
        self.press("here", places=[self.place])
        return message_id

    def press(self, kind: str, **said: Any) -> None:
        content = {"kind": kind, "place": self.place, **said}
        self.send("comm_msg", comm_id=self.widget, data={"method": "custom", "content": content})

    def send(self, kind: str, *, subshell: bool = True, **content: Any) -> dict[str, Any]:
        message = self.one.client.session.msg(kind, content)
        message["metadata"] = {"version": "1.0.0"}  # of the widgets' protocol
        if subshell:
            message["header"]["subshell_id"] = self._subshell
        self.one.client.shell_channel.send(message)
        return dict(message)

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read what is published until something holds of a message."""
        while True:
            message: dict[str, Any] = self.one.client.get_iopub_msg(timeout=PATIENCE_S)
            self._read(message)
            if holds(message):
                return message

    def told(self, word: str) -> None:
        """Wait until something that is told has a word in it."""
        self.until(lambda _: word in json.dumps(self.said[-1:]))

    def ended(self, message_id: str) -> str:
        return str(self.one.finish(message_id).status)

    def _read(self, message: dict[str, Any]) -> None:
        self.seen.append(message)
        content = message["content"]
        match message["msg_type"]:
            case "comm_open" if "liveTurns" in str(content["data"]["state"].get("_esm", "")):
                self.widget = content["comm_id"]
            case "comm_msg" if content["comm_id"] == self.widget:
                self.said.append(content["data"].get("content", {}))
            case "display_data" | "update_display_data":
                found = PLACE.search(content["data"].get("text/markdown", ""))
                self.place = found.group(1) if found else self.place

    def _created(self) -> str:
        client = self.one.client
        message = client.session.msg("create_subshell_request", {})
        client.control_channel.send(message)
        reply = client.get_control_msg(timeout=PATIENCE_S)
        return str(reply["content"]["subshell_id"])
