"""A page played by a client: asked, stopped and answered over subshells, in a real kernel."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.kernels import IPYKERNEL, PATIENCE_S, Kernel, loaded, say

pytestmark = [pytest.mark.inside, pytest.mark.slow, pytest.mark.req("W4")]

CAUSE = "print(agent_magics.current().history()[-1].payload.cause)"
PLACE = re.compile(r"am-turn--(\w+)")
CONTROL = "jupyter.widget.control"


class Page:
    """A front end with subshells: it sees what is published, and presses buttons."""

    def __init__(self, one: Kernel, folder: Path) -> None:
        self.one = one
        self._folder = folder
        self.widget = ""
        self.place = ""
        self.said: list[dict[str, Any]] = []
        self.seen: list[dict[str, Any]] = []
        self._subshell = self._created()

    def let_say(self, *steps: Any) -> None:
        """Let the model say this next, in a slot of its own."""
        say(self.one, self._folder, *steps)

    def start(self, code: str) -> str:
        """Begin a cell and find the place that its turn grows in."""
        self.said.clear()
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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A kernel with the extension and a model that can be slow."""
    if IPYKERNEL < 7:
        pytest.skip("this ipykernel has no subshells")
    folder = tmp_path_factory.mktemp("buttons")
    with loaded(folder) as one:
        made = Page(one, folder)
        made.let_say("ready")
        message_id = one.start("%agent hi")
        made.until(lambda _: bool(made.widget))
        made.ended(message_id)
        yield made


SLOW = {"text": "word " * 2_000, "chunk_delay_s": 0.02}


@pytest.mark.req("N7")
def test_the_stop_button_stops_the_cell(page: Page) -> None:
    """While it runs, and as the interrupt does: error, and what was said is kept."""
    page.let_say(SLOW)
    message_id = page.start("%agent go on and on")
    page.told("answering")
    page.press("stop")
    began = time.monotonic()
    assert page.ended(message_id) == "error"
    assert time.monotonic() - began < 5
    assert page.one.ok(CAUSE) == "stopped\n"


@pytest.mark.req("N7", "N8")
def test_the_stop_button_reaches_code_that_runs(page: Page) -> None:
    """The agent's code in the kernel gets KeyboardInterrupt, as it does by the interrupt."""
    call = {"name": "run_python", "arguments": {"code": "print('on')\ntime.sleep(60)"}}
    page.let_say({"text": "I wait.", "calls": [call]}, "never")
    message_id = page.start("%agent wait")
    page.told("Run it")
    question = page.said[-1]["places"][page.place]["items"][-1]["id"]
    page.press("shown", id=question)
    page.press("answer", id=question, word="yes")
    page.until(lambda message: message["content"].get("text") == "on\n")
    page.press("stop")
    began = time.monotonic()
    assert page.ended(message_id) == "error"
    assert time.monotonic() - began < 10


def test_a_turn_behind_is_stopped_by_its_button(page: Page) -> None:
    """Its cell has ended, and others may run."""
    page.let_say(SLOW)
    page.start("%agent --background go on and on")
    page.told("answering")
    page.press("stop")
    page.told("ended")
    assert page.one.ok(CAUSE) == "stopped\n"


@pytest.mark.req("N8", "dec55")
@pytest.mark.parametrize(("word", "value"), [("yes", "2\n"), ("no", "1\n")])
def test_a_question_is_answered_by_a_button(page: Page, word: str, value: str) -> None:
    """Nothing is asked by stdin, where the client would fail to answer."""
    page.one.ok("n = 1")
    call = {"name": "run_python", "arguments": {"code": "n = 2"}}
    page.let_say({"text": "I set it.", "calls": [call]}, "Done.")
    message_id = page.start("%agent set n")
    page.told("Run it")
    question = page.said[-1]["places"][page.place]["items"][-1]["id"]
    page.press("shown", id=question)
    page.press("answer", id=question, word=word)
    assert page.ended(message_id) == "ok"
    assert page.one.ok("print(n)") == value


@pytest.mark.req("N8", "dec55")
def test_a_page_that_shows_no_buttons_is_asked_by_stdin(page: Page) -> None:
    """It draws the turn, but the question's output isn't in sight of its script."""
    page.one.ok("n = 1")
    call = {"name": "run_python", "arguments": {"code": "n = 3"}}
    page.let_say({"text": "I set it.", "calls": [call]}, "Done.")
    message_id = page.start("%agent set n")
    page.told("Run it")
    page.one.answer("y")
    assert page.ended(message_id) == "ok"
    assert page.one.ok("print(n)") == "3\n"


def test_a_page_that_comes_while_a_cell_runs_is_answered(page: Page) -> None:
    """The kernel's facts and its widgets, outside any subshell; the cell goes on."""
    page.let_say(SLOW)
    message_id = page.start("%agent go on and on")
    page.told("answering")
    asked = page.send("kernel_info_request", subshell=False)
    reply = page.one.client.get_shell_msg(timeout=PATIENCE_S)
    assert reply["parent_header"]["msg_id"] == asked["header"]["msg_id"]
    assert reply["msg_type"] == "kernel_info_reply"
    page.send("comm_open", subshell=False, comm_id="ours", target_name=CONTROL, data={})
    page.send("comm_msg", subshell=False, comm_id="ours", data={"method": "request_states"})
    states = page.until(lambda message: "states" in message["content"].get("data", ()))
    assert page.widget in states["content"]["data"]["states"]
    page.press("here", places=[page.place])
    page.until(lambda _: bool(page.said[-1]["places"][page.place].get("whole")))
    page.press("stop")
    assert page.ended(message_id) == "error"


def test_ipykernel_is_as_we_know_it(page: Page) -> None:
    """Capability: if this fails, a page that is loaded again waits for the busy cell."""
    known = "agent_magics.notebook.reloading"
    code = f"import {known}\nprint({known}.NewPages(get_ipython().kernel)._is_known)"
    assert page.one.ok(code) == "True\n"
