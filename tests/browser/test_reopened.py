"""The views of a notebook that is opened again: live with its kernel, a static table without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import READY, RESTART, WAIT_MS, Lab, lab_page, wait_for

pytestmark = pytest.mark.browser

CURRENT = "import agent_magics; print(agent_magics.current().current_slot)"
WIDGET = "application/vnd.jupyter.widget-view+json"
TABS = ".am-tabs__tab >> visible=true"
BOTH_BARS = ":nth-match(.am-budget__bar, 2)"
CELL = ".jp-Cell:has-text('{}') .jp-OutputArea"
ROW = ".am-ledger__row--event >> visible=true >> nth=0"
KIND = ".am-ledger__filter--kind select >> visible=true"
FIND = ".am-ledger__filter--find input >> visible=true"
COUNT = ".am-ledger__count:has-text('{}') >> visible=true"
SAVE = "window.jupyterapp.commands.execute('docmanager:save')"
CLOSE = "window.jupyterapp.shell.currentWidget.context.save().then(() => \
window.jupyterapp.shell.currentWidget.dispose())"
CLOSE_WITH_KERNEL = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.save();
  await panel.sessionContext.shutdown();
  panel.dispose();
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reopened")


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[Lab]:
    """A notebook with two slots, its tabs, and the budgets of both."""
    script = folder / "answers.yaml"
    steps = [f"Answer {number}." for number in range(20)]
    script.write_text(json.dumps({"steps": steps, "context_window": 16_000}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ) as page:
        page.run("%load_ext agent_magics")
        page.run("%agent How did sales compare?")
        page.run("%slot derive option-a")
        page.run("%slot")
        page.run("%context")
        page.run("%context --slot option-a")
        wait_for(page, BOTH_BARS)
        yield page


# Lab takes the boxes of cells away that are out of sight, and then innerText is another text.
SAID = """output => { const copy = output.cloneNode(true);
  copy.querySelectorAll('style').forEach(style => style.remove());
  return copy.textContent.replace(/\\s+/g, ' ').trim(); }"""


def words_of(lab: Lab, source: str) -> str:
    """Read all words under the cell of a source, shown or not."""
    return str(lab.do(lab.page.locator(CELL.format(source)).first.evaluate(SAID)))


def text_of(lab: Lab, source: str) -> str:
    """Read what is shown under the cell of a source."""
    output = lab.page.locator(CELL.format(source)).first
    lab.do(output.scroll_into_view_if_needed())
    return lab.do(output.inner_text())


def saved(folder: Path) -> list[dict[str, Any]]:
    """Read the outputs that are in the file."""
    notebook = json.loads((folder / "work" / "session.ipynb").read_text())
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def shoot(lab: Lab, name: str) -> None:
    lab.shoot(name, CELL.format("%slot derive"))


def reopen(lab: Lab, how: str) -> None:
    lab.do(lab.page.evaluate(how))
    lab.do(lab.page.evaluate(READY, "session.ipynb"))


@pytest.mark.req("W2")
def test_a_budget_stays_its_slots(lab: Lab) -> None:
    """Going to another slot changes no old output; a turn of the slot itself does, live."""
    wait_for(lab, TABS)
    shoot(lab, "live")
    before = words_of(lab, "%context"), words_of(lab, "%context --slot")
    assert before[0].startswith("default · ")
    assert before[1].startswith("option-a · ")
    lab.do(lab.page.click('.am-tabs__tab[data-slot="option-a"]'))
    wait_for(lab, '.am-tabs__tab[data-slot="option-a"][aria-selected="true"]')
    lab.run("%agent And in April?")
    lab.do(lab.page.wait_for_function(_differs("%context --slot"), arg=before[1]))
    assert words_of(lab, "%context") == before[0]


def _differs(source: str) -> str:
    return f"""before => [...document.querySelectorAll('.jp-Cell')].some(cell =>
      cell.textContent.includes('{source}') && cell.querySelector('.jp-OutputArea')
      && ({SAID})(cell.querySelector('.jp-OutputArea')) !== before)"""


@pytest.mark.req("W1", "W2")
def test_the_file_holds_what_reads_anywhere(lab: Lab, folder: Path) -> None:
    """No widget is in the file, but tables that need no script."""
    lab.do(lab.page.evaluate(SAVE))
    outputs = saved(folder)
    assert not any(WIDGET in output.get("data", {}) for output in outputs)
    tables = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert sum("<table>" in table for table in tables) == 3
    assert "<script" not in "".join(tables)


@pytest.mark.req("W1")
def test_views_live_on_in_a_notebook_that_was_closed(lab: Lab) -> None:
    """The kernel is still there: the tabs are drawn again, and a click is heard."""
    reopen(lab, CLOSE)
    wait_for(lab, TABS)
    lab.do(lab.page.click('.am-tabs__tab[data-slot="default"]'))
    wait_for(lab, '.am-tabs__tab[data-slot="default"][aria-selected="true"]')
    assert lab.text(CURRENT) == "default\n"


@pytest.mark.req("W3")
def test_an_explorer_keeps_its_filter_when_the_page_is_reloaded(lab: Lab) -> None:
    """What the line said and what was chosen since; what comes then is followed."""
    lab.run("%ledger --kind user_message")
    wait_for(lab, ROW)
    lab.do(lab.page.fill(FIND, "april"))
    wait_for(lab, COUNT.format("1 of "))
    lab.do(lab.page.evaluate(SAVE))
    lab.reload()
    wait_for(lab, COUNT.format("1 of "))
    assert lab.do(lab.page.input_value(KIND)) == "user_message"
    assert lab.do(lab.page.input_value(FIND)) == "april"
    lab.do(lab.page.evaluate(READY, "session.ipynb"))
    lab.run("%agent And in April again?")
    wait_for(lab, COUNT.format("2 of "))


@pytest.mark.req("W1", "W2")
def test_a_restart_leaves_the_static_tables(lab: Lab) -> None:
    """Nothing that can be clicked, and nothing that says an error."""
    lab.do(lab.page.evaluate(RESTART))
    lab.do(lab.page.wait_for_selector(TABS, state="detached", timeout=WAIT_MS))
    shoot(lab, "restarted")
    _assert_static(lab)


@pytest.mark.req("W1", "W2")
def test_a_reopened_notebook_shows_the_static_tables(lab: Lab) -> None:
    """Its kernel is gone, another one has started and knows nothing of its views."""
    reopen(lab, CLOSE_WITH_KERNEL)
    shoot(lab, "reopened")
    _assert_static(lab)


def _assert_static(lab: Lab) -> None:
    page = lab.do(lab.page.inner_text(".jp-Notebook"))
    assert "Error displaying widget" not in page
    assert "from default at turn 1" in text_of(lab, "%slot")
    assert "before the threshold" in text_of(lab, "%context")
    assert lab.do(lab.page.locator(CELL.format("%slot") + " table >> visible=true").count()) > 0
