"""A page played by a client: asked, stopped and answered over subshells, in a real kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.notebook.kernels import IPYKERNEL, PATIENCE_S, loaded
from tests.notebook.subshell_page import CONTROL, Page

pytestmark = [pytest.mark.inside, pytest.mark.slow, pytest.mark.req("W4")]

CAUSE = "print(agent_magics.current().history()[-1].payload.cause)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A kernel with the extension and a model that can be slow."""
    if IPYKERNEL < 7:
        pytest.skip("this ipykernel has no subshells")
    folder = tmp_path_factory.mktemp("buttons")
    with loaded(folder) as one:
        yield Page.found(one, folder)


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
    known = "agent_magics.notebook.views.reloading"
    code = f"import {known}\nprint({known}.NewPages(get_ipython().kernel)._is_known)"
    assert page.one.ok(code) == "True\n"
