"""What tools show in a cell stands in order with the words of the answer."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher

from agent_magics.core.messages import ToolOutput
from agent_magics.core.turns import ToolEnded
from agent_magics.notebook.cell.outputs import making_way, named_by_slot
from agent_magics.notebook.text.page import Page, PageLine, Terminal
from agent_magics.session.state.running_turn import ANSWERING
from agent_magics.threads.loop import background_loop

pytestmark = [pytest.mark.inside, pytest.mark.req("N8", "N2")]


class Cell:
    """A page on the session's loop, and what the front end got, updates applied, in order."""

    def __init__(self, shell: Any) -> None:
        self.publisher: Any = CapturingDisplayPublisher()  # type: ignore[no-untyped-call]
        self.publisher.outputs = []
        shell.display_pub = self.publisher
        self.shell = shell
        self.loop = background_loop()

    def page(self, *, is_live: bool) -> Page:
        self._page = Page(is_live=is_live)
        return self._page

    def on_loop(self, what: Callable[[], None]) -> None:
        async def do() -> None:
            what()

        self.loop.run(do())

    def say(self, text: str) -> None:
        self.on_loop(lambda: self._page.add_text(text))

    def call(self, name: str) -> None:
        self.on_loop(lambda: self._page.add_line(PageLine("", code=f"{name}()", key=name)))

    def ended(self, name: str, *, fails: str = "") -> None:
        output = ToolOutput(content=fails, is_error=bool(fails))
        end = ToolEnded(call_id=name, tool_name=name, output=output, duration_ms=12)
        self.on_loop(lambda: self._page.end_call(end))

    def plot(self) -> None:
        self.shell.display_pub.publish({"text/plain": "<Figure>"}, {})

    def end(self) -> None:
        self.on_loop(lambda: self._page.end("gpt-x", {"seq": 7}))

    def shown(self) -> list[str]:
        shown: dict[str, str] = {}
        for number, output in enumerate(self.publisher.outputs):
            key = (output.get("transient") or {}).get("display_id") or str(number)
            shown[key] = output["data"]["text/plain"]
        return list(shown.values())


@pytest.fixture
def cell(shell: Any) -> Cell:
    return Cell(shell)


def run_turn(cell: Cell, page: Page) -> None:
    """Words, a tool that plots twice, words, a tool that shows nothing, words."""
    with making_way(cell.shell, page, cell.loop):
        cell.say("Let me look.")
        cell.call("run_python")
        cell.plot()
        cell.plot()
        cell.ended("run_python")
        cell.say("As you see.")
        cell.call("list_files")
        cell.ended("list_files")
        cell.say("Done.")
        cell.end()


def test_plots_stand_where_they_happened(cell: Cell) -> None:
    """The line of the call above them, what is said afterwards below; the call is marked above."""
    run_turn(cell, cell.page(is_live=True))
    assert cell.shown() == [
        "Let me look.\n\nrun_python() ✓ 12 ms",
        "<Figure>",
        "<Figure>",
        "As you see.\n\nlist_files() ✓ 12 ms\n\nDone.\n\ngpt-x",
    ]
    assert cell.publisher.outputs[-1]["metadata"]["agent_magics"] == {"seq": 7}


@pytest.mark.req("dec51")
def test_with_nobody_there_nothing_is_updated(cell: Cell) -> None:
    """nbval ignores updates: each output is shown once, whole; the call stands below its plots."""
    run_turn(cell, cell.page(is_live=False))
    assert cell.shown() == [
        "Let me look.",
        "<Figure>",
        "<Figure>",
        "run_python() ✓\n\nAs you see.\n\nlist_files() ✓\n\nDone.\n\ngpt-x",
    ]
    assert not any(output.get("update") for output in cell.publisher.outputs)


def test_an_answer_that_ends_with_a_plot_keeps_its_facts(cell: Cell) -> None:
    """Where nothing is said after it, they stand with what was said before."""
    page = cell.page(is_live=True)
    with making_way(cell.shell, page, cell.loop):
        cell.say("Look:")
        cell.plot()
        cell.on_loop(lambda: page.end("", {"seq": 7}))
    assert cell.shown() == ["Look:", "<Figure>"]
    assert cell.publisher.outputs[-1]["metadata"] == {"agent_magics": {"seq": 7}}


def test_prints_make_way_from_any_thread(cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    """The streams are the person's again afterwards."""
    before = sys.stdout
    page = cell.page(is_live=True)
    with making_way(cell.shell, page, cell.loop):
        cell.say("one")
        printing = threading.Thread(target=lambda: print("printed"))  # noqa: T201
        printing.start()
        printing.join()
        cell.say("two")
        cell.end()
    assert sys.stdout is before
    assert cell.shown() == ["one", "two\n\ngpt-x"]
    assert capsys.readouterr().out == "printed\n"


def test_a_page_that_is_over_makes_no_way(cell: Cell) -> None:
    """Late prints change nothing of it."""
    page = cell.page(is_live=True)
    with making_way(cell.shell, page, cell.loop):
        cell.say("one")
        cell.end()
        cell.plot()
    assert cell.shown() == ["one\n\ngpt-x", "<Figure>"]


def test_a_failed_call_says_why(cell: Cell) -> None:
    """In a line; what a tool wrote can't look like anything else."""
    page = cell.page(is_live=True)
    cell.call("f")
    cell.ended("f", fails="[Tool not run: <b>no</b> *way*]\nmore")
    cell.on_loop(lambda: page.end("", {}))
    assert cell.shown() == ["f() ✗ 12 ms Tool not run: <b>no</b> *way*"]
    markdown = cell.publisher.outputs[-1]["data"]["text/markdown"]
    assert markdown == "`f()` ✗ 12 ms Tool not run: &lt;b\\>no&lt;/b\\> \\*way\\*"


def test_a_terminal_ends_its_line(cell: Cell) -> None:
    """What a tool prints begins on a line of its own."""
    stream = StringIO()
    page = Terminal(stream)
    page.add_text("Let me look.")
    with making_way(cell.shell, page, cell.loop):
        print("printed", file=sys.stderr)  # noqa: T201 - what tools do
    assert stream.getvalue() == "Let me look.\n"


@pytest.mark.req("B5")
def test_outputs_of_several_slots_are_named(cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    """The answers are shown first; each slot's name once a row, on a line of its own."""
    began: list[str] = []

    def begin() -> None:
        began.append(capsys.readouterr().out)

    def show(slot: str) -> None:
        ANSWERING.set(slot)
        sys.stdout.write("seen")
        cell.plot()

    with named_by_slot(cell.shell, cell.loop, begin):
        for slot in ("a", "a", "b", "a", ""):
            contextvars.copy_context().run(show, slot)
        cell.on_loop(lambda: contextvars.copy_context().run(show, "b"))
    assert began == [""]
    out = capsys.readouterr().out
    assert out == "a:\nseenseen\nb:\nseen\na:\nseenseenseen"
