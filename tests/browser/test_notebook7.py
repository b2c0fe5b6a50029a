"""The views in Notebook 7, which has one notebook a page and commands of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.browser.asking import BUSY, CAUSE, STOP, VIEW, Notebook, asking_page, calls
from tests.browser.lab import NOTEBOOK_7

pytestmark = [pytest.mark.browser, pytest.mark.req("N12")]

WORDS = " ".join(f"word{number}" for number in range(600))
SLOW = {"text": f"## Sales\n\nThey **grew**.\n\n{WORDS}", "chunk_delay_s": 0.05}
NOW = "print(agent_magics.current().current_slot)"
BUSY_S = 6
TAB = '.am-tabs__tab[data-slot="{}"]'
IS_ON = '[aria-selected="true"]'
EVENT = ".am-ledger__row--event:not([hidden])"
ADD = """source => {
  const model = window.jupyterapp.shell.currentWidget.content.model.sharedModel;
  model.insertCell(model.cells.length, {cell_type: 'code', source});
}"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One page of Notebook 7 with the extension loaded."""
    with asking_page(tmp_path_factory.mktemp("notebook7"), NOTEBOOK_7) as notebook:
        yield notebook


def test_this_is_notebook_7(notebook: Notebook) -> None:
    """No JupyterLab answers in its place."""
    page = notebook.lab.do(notebook.lab.page.evaluate("[jupyterapp.name, jupyterapp.version]"))
    assert page[0] == "Jupyter Notebook"
    assert page[1].startswith("7.")


@pytest.mark.req("W4", "N7")
def test_a_turn_is_seen_as_it_grows_and_is_stopped(notebook: Notebook) -> None:
    """As Markdown while the cell runs; the button ends it, what was said stays."""
    notebook.let_say(SLOW)
    running = notebook.lab.begin("%agent go on and on")
    notebook.until_said("word3")
    notebook.wait_for(f"{VIEW} >> h2")
    notebook.until(BUSY)
    notebook.click(STOP)
    notebook.lab.end(running)
    said, error = running.result()["outputs"]
    assert "word3" in "".join(said["data"]["text/plain"])
    assert "stopped after" in "".join(error["traceback"])
    assert notebook.lab.text(CAUSE) == "stopped\n"


@pytest.mark.req("W4", "N8", "dec55")
def test_a_tool_is_approved_by_a_button(notebook: Notebook) -> None:
    """While the cell runs; the kernel has what the tool made."""
    notebook.let_say(calls("n = 41\nn + 1"), "It is **42**.")
    running = notebook.lab.begin("%agent What is next?")
    notebook.wait_for(".am-turn__question")
    assert notebook.text(".am-turn__question pre") == "n = 41\nn + 1"
    assert not running.done()
    notebook.click(".am-turn__button--yes")
    notebook.lab.end(running)
    assert notebook.lab.text("print(n)") == "41\n"


@pytest.mark.req("W1", "N4")
def test_a_click_on_a_tab_switches_the_slot_in_the_kernel(notebook: Notebook) -> None:
    """Also before a busy cell ends."""
    notebook.lab.run("%slot new here --switch")
    notebook.lab.run("%slot new there")
    notebook.lab.run("%slot")
    notebook.click(TAB.format("there"))
    notebook.wait_for(TAB.format("there") + IS_ON)
    assert notebook.lab.text(NOW) == "there\n"
    began = time.monotonic()
    running = notebook.lab.begin(f"for _ in range({BUSY_S}): time.sleep(1)")
    notebook.until(BUSY)
    notebook.click(TAB.format("here"))
    notebook.wait_for(TAB.format("here") + IS_ON)
    assert time.monotonic() - began < BUSY_S
    notebook.lab.end(running)
    assert notebook.lab.text(NOW) == "here\n"


@pytest.mark.req("W2")
def test_the_token_budget_is_drawn(notebook: Notebook) -> None:
    """Its parts have a width, and its figures stand beside them."""
    notebook.let_say("Sales grew.")
    notebook.lab.run("%agent How did sales do?")
    notebook.lab.run("%context")
    notebook.wait_for(".am-budget__part >> nth=0")
    assert "context now" in notebook.text(".am-budget__figures")


@pytest.mark.req("W3")
def test_the_ledger_explorer_opens_an_event(notebook: Notebook) -> None:
    """By a click on its row; what it says stands below."""
    notebook.let_say("They were counted.")
    notebook.lab.run("%agent How many rivers?")
    notebook.lab.run("%ledger")
    notebook.click(f"{EVENT}:has-text('How many rivers?')")
    assert notebook.text(".am-ledger__event pre >> nth=0") == "How many rivers?"


@pytest.mark.req("L2")
def test_a_prompt_reads_as_markdown(notebook: Notebook) -> None:
    """Its header as a magic, its value marked."""
    notebook.lab.do(notebook.lab.page.evaluate(ADD, "%%agent --slot a\nWhich of {{df.columns}}?"))
    editor = ".jp-Cell:has-text('Which of') .cm-content"
    marked = {"Header": "%%agent --slot a", "Value": "{{df.columns}}"}
    for name, text in marked.items():  # the cell may be out of sight
        notebook.wait_for(f"{editor} .cm-agentMagics{name}:text-is('{text}')", "attached")


def test_the_page_asked_nothing_outside(notebook: Notebook) -> None:
    """No view, answer or font comes from another machine."""
    assert notebook.lab.asked == []
