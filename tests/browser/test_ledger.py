"""The ledger explorer in a real JupyterLab, on a session of 100,000 events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from agent_magics.core.events import LedgerEvent, UserMessage
from agent_magics.core.messages import Text
from agent_magics.ledger.sqlite.store import SqlStore
from benchmarks.many import BEGAN, many_events
from tests.browser.lab import RESTART, THEMES, WAIT_MS, Lab, lab_page, press, until, wait_for

pytestmark = pytest.mark.browser

EVENTS = 100_000
HUGE = 50_000
SLOW_S = 6.0
HOSTILE = (
    "<img src=x onerror='window.wasHacked=1'><script>window.wasHacked=1</script>"
    " \u202eevil\u202c שלום " + "unbroken" * 300
)
TOTAL = "print(f'{len(agent_magics.current().frames.states()[0].events):,}')"
EXPLORER = ".am-ledger"
GRID = ".am-ledger__grid"
ROW = ".am-ledger__row--event:not([hidden])"
COUNT = ".am-ledger__count"
HEIGHT = f"document.querySelector('{GRID}')?.getBoundingClientRect().height ?? 1"
IN_SIGHT = """async () => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const sources = notebook.widgets.map(cell => cell.model.sharedModel.source);
  await notebook.scrollToItem(sources.indexOf('%ledger'), 'start');
}"""
OPENED = ".am-ledger__event:not([hidden])"


async def _fill(path: Path) -> None:
    state = many_events(EVENTS - 1)
    content = (Text(text=HOSTILE), Text(text="row of a table\n" * HUGE))
    last = LedgerEvent(
        seq=EVENTS, payload=UserMessage(content=content), created_at=BEGAN, slot_uid="u0",
        turn_id="hostile",
    )  # fmt: skip
    store = SqlStore(path)
    await store.restore(structs.replace(state, events=(*state.events, last)))
    await store.aclose()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A notebook on that session, with its ledger shown."""
    folder = tmp_path_factory.mktemp("ledger")
    asyncio.run(_fill(folder / "ledger.db"))
    script = folder / "answers.yaml"
    steps = [f"Answer {number}." for number in range(20)]
    script.write_text(json.dumps({"steps": steps, "context_window": 10**9}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
        "AGENT_MAGICS_SESSION": "many",
    }
    with lab_page(folder, environ) as page:
        page.run("%load_ext agent_magics\nimport agent_magics")
        page.first_line = page.text(TOTAL).strip()  # opening it writes an event
        page.run("%ledger")
        wait_for(page, ROW)
        yield page


@pytest.fixture(autouse=True)
def _in_sight(lab: Lab) -> None:
    """Bring the explorer into sight: JupyterLab draws no cell that is far out of it."""
    page_says(lab, IN_SIGHT)
    assert until(lambda: page_says(lab, HEIGHT) > 0)


def text(lab: Lab, selector: str) -> str:
    return lab.do(lab.page.locator(selector).first.inner_text())


def page_says(lab: Lab, script: str) -> Any:
    return lab.do(lab.page.evaluate(script))


def rows(lab: Lab) -> list[str]:
    """The rows in sight, as text."""
    script = f"""() => {{
      const grid = document.querySelector('{GRID}');
      const box = grid.getBoundingClientRect();
      const [top, end] = [box.top + 27, box.bottom];
      return [...grid.querySelectorAll('{ROW}')]
        .map(row => [row.getBoundingClientRect().top, row])
        .filter(([at]) => at >= top - 1 && at < end - 1).sort(([a], [b]) => a - b)
        .map(([, row]) => row.innerText.replace(/\\s+/g, ' '));
    }}"""
    found: list[str] = page_says(lab, script)
    return found


def last_row(lab: Lab) -> str:
    """The last row in sight; none is while rows are asked for."""
    return next(reversed(rows(lab)), "")


def choose(lab: Lab, label: str, value: str) -> None:
    lab.do(lab.page.select_option(f".am-ledger__filter--{label} select", value))


def write(lab: Lab, label: str, value: str) -> None:
    lab.do(lab.page.fill(f".am-ledger__filter--{label} input", value))


@pytest.mark.req("W3")
def test_the_newest_events_are_seen_first(lab: Lab) -> None:
    """The end of 100,000, and no more of it in the page than can be seen."""
    assert until(lambda: text(lab, COUNT) == f"{lab.first_line} events")
    assert until(lambda: last_row(lab).startswith(lab.first_line.replace(",", "")))
    assert len(rows(lab)) == 16
    assert page_says(lab, f"document.querySelectorAll('{ROW}').length") < 60
    count = page_says(lab, f"document.querySelector('{GRID}').getAttribute('aria-rowcount')")
    assert int(count) == int(lab.first_line.replace(",", "")) + 1 > EVENTS
    lab.shoot("ledger", EXPLORER)


@pytest.mark.req("W3")
def test_any_place_is_reached_at_once(lab: Lab) -> None:
    """The middle is asked for when it is seen; the page holds no more rows than before."""
    page_says(lab, f"document.querySelector('{GRID}').scrollTop = 1_200_000")
    assert until(lambda: "50002 " in " ".join(rows(lab)))
    assert page_says(lab, f"document.querySelectorAll('{ROW}').length") < 60
    for theme in THEMES:  # which takes all boxes away for a moment
        lab.wear(theme)
    time.sleep(1)
    assert rows(lab)[1].startswith("50002 ")


@pytest.mark.req("W3")
def test_filters_work_together(lab: Lab) -> None:
    """By slot, kind, turn and words; the count says how many are left of how many."""
    choose(lab, "kind", "tool_call")
    assert until(lambda: f" of {lab.first_line} events" in text(lab, COUNT))
    assert all(" tool_call " in row for row in rows(lab))
    choose(lab, "slot", "option-a")
    assert until(lambda: all(" option-a " in row for row in rows(lab)))
    write(lab, "find", "RUN_python rainfall")
    assert until(lambda: all('run_python {"name":"rainfall"}' in row for row in rows(lab)))
    write(lab, "find", "nowhere to be found")
    assert until(lambda: text(lab, COUNT) == f"no event matches, of {lab.first_line}")
    for label in ("slot", "kind"):
        choose(lab, label, "")
    write(lab, "find", "")
    write(lab, "turn", "7")
    assert until(lambda: f" of {lab.first_line} events" in text(lab, COUNT))
    assert until(lambda: all(" 7 " in row for row in rows(lab)))
    write(lab, "turn", "")
    assert until(lambda: text(lab, COUNT) == f"{lab.first_line} events")


@pytest.mark.req("W3")
def test_it_is_used_by_keyboard(lab: Lab) -> None:
    """Arrows, pages, ends, Enter to open, Escape to close; a screen reader is told where it is."""
    lab.do(lab.page.focus(GRID))
    press(lab, "End", "ArrowUp", "ArrowUp")
    active = f"""() => document.getElementById(
      document.querySelector('{GRID}').getAttribute('aria-activedescendant'))?.innerText ?? ''"""
    assert until(lambda: page_says(lab, active).startswith("99999"))
    press(lab, "Home", "ArrowDown")
    assert until(lambda: page_says(lab, active).startswith("2"))
    press(lab, "PageDown")
    assert until(lambda: page_says(lab, active).startswith("17"))
    press(lab, "Enter")
    wait_for(lab, OPENED)
    assert text(lab, f"{OPENED} .am-ledger__facts").startswith("seq 17 · ")
    press(lab, "Escape")
    lab.do(lab.page.wait_for_selector(OPENED, state="detached", timeout=WAIT_MS))
    assert page_says(lab, "document.activeElement.className") == "am-ledger__grid"
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    before = page_says(lab, cells)
    press(lab, "x", "b", "d", "d")  # which cut, add and delete cells elsewhere
    assert page_says(lab, cells) == before


@pytest.mark.req("W3", "inv18")
def test_what_an_event_says_is_text(lab: Lab) -> None:
    """No tag of it is one, no script ran, nothing was asked for; long texts open on demand."""
    write(lab, "find", "wasHacked")
    assert until(lambda: text(lab, COUNT).startswith("1 of "))
    lab.do(lab.page.click(ROW))
    wait_for(lab, OPENED)
    lab.shoot("ledger event", OPENED)
    assert HOSTILE[:40] in text(lab, f"{OPENED} pre")
    assert page_says(lab, "window.wasHacked") is None
    assert page_says(lab, f"document.querySelectorAll('{EXPLORER} :is(img, script)').length") == 0
    box = f"document.querySelector('{EXPLORER}')"
    assert page_says(lab, f"{box}.scrollWidth <= {box}.clientWidth")
    more = f"{OPENED} button:has-text('show all')"
    assert text(lab, more) == "show all 750,000 characters"
    lab.do(lab.page.click(more))
    length = f"document.querySelectorAll('{OPENED} pre')[1].textContent.length"
    assert until(lambda: page_says(lab, length) == HUGE * 15)
    lab.do(lab.page.click(f"{OPENED} button:has-text('only this turn')"))
    assert until(lambda: text(lab, COUNT).startswith("1 of "))
    assert lab.do(lab.page.input_value(".am-ledger__filter--turn input")).isdigit()
    lab.do(lab.page.click(f"{OPENED} button:has-text('close')"))
    for label in ("turn", "find"):
        write(lab, label, "")
    choose(lab, "slot", "")
    assert until(lambda: text(lab, COUNT) == f"{lab.first_line} events")


@pytest.mark.req("W3")
def test_it_answers_while_a_cell_runs(lab: Lab) -> None:
    """A filter and an opened event come before the busy cell ends."""
    running = lab.begin(f"import time\nfor _ in range({SLOW_S:.0f}): time.sleep(1)")
    time.sleep(1)
    began = time.monotonic()
    choose(lab, "kind", "slot_changed")
    assert until(lambda: text(lab, COUNT) == f"6 of {lab.first_line} events", SLOW_S - 2)
    lab.do(lab.page.click(ROW))
    lab.do(lab.page.wait_for_selector(OPENED, timeout=(SLOW_S - 2) * 1000))
    assert time.monotonic() - began < SLOW_S - 1
    lab.end(running)
    lab.do(lab.page.click(f"{OPENED} button:has-text('close')"))
    choose(lab, "kind", "")


@pytest.mark.req("W3")
def test_it_follows_the_ledger(lab: Lab) -> None:
    """A turn of a later cell is at its end, also where a filter lets it through."""
    assert until(lambda: last_row(lab).startswith(lab.first_line.replace(",", "")))
    lab.run("%agent What of May?")
    assert until(lambda: "Answer 0." in " ".join(rows(lab)))
    total = text(lab, COUNT)
    choose(lab, "kind", "user_message")
    assert until(lambda: "What of May?" in last_row(lab))
    lab.run("%agent And of June?")
    assert until(lambda: "And of June?" in last_row(lab))
    choose(lab, "kind", "")
    assert until(lambda: text(lab, COUNT) not in ("", total))


@pytest.mark.req("W3")
def test_a_turn_shows_its_request(lab: Lab) -> None:
    """As it was sent, made again from the ledger."""
    lab.run("%slot new fresh --switch")
    lab.run("%agent How many columns?")
    assert until(lambda: "Answer 2." in " ".join(rows(lab)))
    lab.do(lab.page.click(f"{ROW}:has-text('How many columns?')"))
    wait_for(lab, OPENED)
    lab.do(lab.page.click(f"{OPENED} button:has-text('request')"))
    wait_for(lab, ".am-ledger__request pre")
    assert text(lab, ".am-ledger__request .am-ledger__label") == "request as sent"
    assert "── user ──\nHow many columns?" in text(lab, ".am-ledger__request pre")
    lab.shoot("ledger request", OPENED)
    lab.do(lab.page.click(f"{OPENED} button:has-text('close')"))
    lab.run("%slot switch default")


@pytest.mark.req("W3")
def test_each_explorer_has_its_own_filter(lab: Lab) -> None:
    """A second cell begins with what its line says and leaves the first alone."""
    lab.run("%ledger --kind slot_changed --find created")
    second = ":nth-match(.am-ledger, 2)"
    wait_for(lab, f"{second} {ROW}")
    assert until(lambda: text(lab, f"{second} {COUNT}").startswith("7 of "))
    assert lab.do(lab.page.input_value(f"{second} input[type=search]")) == "created"
    assert " of " not in text(lab, f".am-ledger >> nth=0 >> {COUNT}")


@pytest.mark.req("W3")
@pytest.mark.parametrize("width", [400, 1600])
def test_it_fits_narrow_and_wide_cells(lab: Lab, width: int) -> None:
    """Nothing stands outside its box; what an event says stays readable."""
    page_says(lab, f"document.querySelector('{EXPLORER}').parentElement.style.width = '{width}px'")
    lab.shoot(f"ledger {width}", EXPLORER)
    outside = f"""() => {{
      const explorer = document.querySelector('{EXPLORER}');
      const box = explorer.getBoundingClientRect();
      return [...explorer.querySelectorAll('*')]
        .filter(node => node.getBoundingClientRect().right > box.right + 1)
        .map(node => node.className);
    }}"""
    assert page_says(lab, outside) == []
    what = "document.querySelector('.am-ledger__cell--what').getBoundingClientRect().width"
    assert page_says(lab, what) > 150
    page_says(lab, f"document.querySelector('{EXPLORER}').parentElement.style.width = ''")


@pytest.mark.req("W3")
def test_the_file_holds_a_table_that_a_restart_leaves(lab: Lab) -> None:
    """No widget and no script is saved, and without its kernel nothing can be clicked."""
    cells = page_says(
        lab, "window.jupyterapp.shell.currentWidget.content.model.sharedModel.toJSON().cells"
    )
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert "jupyter.widget-view" not in json.dumps(outputs)
    saved = json.dumps([output.get("data", {}).get("text/html", "") for output in outputs])
    assert "<script" not in saved
    assert f"the last 20 of {lab.first_line} events" in saved
    lab.do(lab.page.evaluate(RESTART))
    lab.do(lab.page.wait_for_selector(EXPLORER, state="detached", timeout=WAIT_MS))
    assert f"the last 20 of {lab.first_line} events" in lab.do(lab.page.inner_text(".jp-Notebook"))


def test_the_page_asks_nothing_outside(lab: Lab) -> None:
    """Whatever an event says."""
    assert lab.asked == []
