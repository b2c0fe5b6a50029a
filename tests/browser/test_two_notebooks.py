"""Two notebooks side by side in one page: each has its session, and its views are its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.asking import CAUSE, Notebook, asking_page, calls
from tests.browser.lab import READY

pytestmark = [pytest.mark.browser, pytest.mark.req("W1", "W2", "W3", "W4")]

LEFT = "session.ipynb"
RIGHT = "other.ipynb"
BESIDE = """path => window.jupyterapp.commands.execute(
  'docmanager:open', {path, options: {mode: 'split-right'}})"""
MARK = "path => { window.jupyterapp.shell.currentWidget.node.dataset.path = path; }"
NOW = "print(agent_magics.current().current_slot)"
SELECTED = '.am-tabs__tab[aria-selected="true"]'
EVENT = ".am-ledger__row--event:not([hidden])"
TWICE = """() => {
  const ids = [...document.querySelectorAll('.agent-magics-drawn [id]')].map(node => node.id);
  return [ids.length > 0, ids.filter((id, at) => ids.indexOf(id) !== at)];
}"""
POINTED = """grid => document.getElementById(
  grid.getAttribute('aria-activedescendant')).closest('[data-path]').dataset.path"""


class Beside:
    """Two notebooks; what is run or looked at says in which."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.lab = notebook.lab

    def go(self, path: str) -> Notebook:
        """Let what is run next run in a notebook."""
        self.lab.do(self.lab.page.evaluate(READY, path))
        self.lab.do(self.lab.page.evaluate(MARK, path))
        return self.notebook

    def run(self, path: str, source: str) -> str:
        return self.go(path).lab.text(source)

    def wait_for(self, path: str, selector: str, state: Any = "visible") -> None:
        self.notebook.wait_for(f"{within(path)} {selector}", state)

    def click(self, path: str, selector: str) -> None:
        self.notebook.click(f"{within(path)} {selector}")

    def texts(self, path: str, selector: str) -> list[str]:
        found = self.lab.page.locator(f"{within(path)} {selector}")
        return self.lab.do(found.all_inner_texts())


def within(path: str) -> str:
    return f'[data-path="{path}"]'


def tab(slot: str) -> str:
    return f'.am-tabs__tab[data-slot="{slot}"]'


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """Both with two slots of their own, their tabs shown."""
    folder = tmp_path_factory.mktemp("two")
    with asking_page(folder) as notebook:
        shutil.copy(folder / "work" / LEFT, folder / "work" / RIGHT)
        notebook.lab.do(notebook.lab.page.evaluate(BESIDE, RIGHT))
        beside = Beside(notebook)
        beside.run(RIGHT, "%load_ext agent_magics\nimport agent_magics, time")
        for path, side in ((LEFT, "left"), (RIGHT, "right")):
            beside.run(path, f"%slot new {side}-1 --switch\n%slot new {side}-2")
            beside.run(path, "%slot")
            beside.wait_for(path, tab(f"{side}-2"))
        yield beside


def test_each_shows_its_own_session(beside: Beside) -> None:
    """Its name, and its slots only."""
    for path, side in ((LEFT, "left"), (RIGHT, "right")):
        names = beside.texts(path, ".am-tabs__id")
        assert names == ["default", f"{side}-1", f"{side}-2"]
    assert beside.texts(LEFT, ".am-tabs__head")[0].startswith("session · ")
    assert beside.texts(RIGHT, ".am-tabs__head")[0].startswith("other · ")


def test_a_click_leaves_the_other_alone(beside: Beside) -> None:
    """In the view and in the kernel."""
    beside.click(RIGHT, tab("right-2"))
    beside.wait_for(RIGHT, tab("right-2") + '[aria-selected="true"]')
    assert beside.run(RIGHT, NOW) == "right-2\n"
    assert beside.run(LEFT, NOW) == "left-1\n"
    (shown,) = beside.texts(LEFT, f"{SELECTED} .am-tabs__id")
    assert shown == "left-1"


@pytest.mark.req("N7", "N8")
def test_buttons_answer_their_own_turn(beside: Beside) -> None:
    """Both ask; one is approved and ends while the other waits, and is stopped then."""
    running = {}
    for path, number in ((LEFT, 1), (RIGHT, 2)):
        beside.go(path).let_say(calls(f"n = {number}"), f"It is {number}.")
        running[path] = beside.lab.begin("%agent Set n.")
        beside.wait_for(path, ".am-turn__question")
    assert beside.texts(LEFT, ".am-turn__question pre") == ["n = 1"]
    assert beside.texts(RIGHT, ".am-turn__question pre") == ["n = 2"]
    beside.click(RIGHT, ".am-turn__button--yes")
    beside.lab.end(running[RIGHT])
    beside.wait_for(LEFT, ".am-turn__question")
    assert not running[LEFT].done()
    beside.click(LEFT, ".am-turn__bar button")
    beside.lab.end(running[LEFT])
    assert beside.run(LEFT, CAUSE) == "stopped\n"
    assert beside.run(RIGHT, f"{CAUSE}; print(n)") == "None\n2\n"


def test_each_budget_and_ledger_is_of_its_own(beside: Beside) -> None:
    """What one keyboard opens stands in the notebook that it was opened in."""
    for path, side in ((LEFT, "left"), (RIGHT, "right")):
        beside.run(path, f"%context --slot {side}-1")
        beside.run(path, "%ledger --kind slot_changed")
        beside.wait_for(path, EVENT)
        (head,) = beside.texts(path, ".am-budget__head")
        assert head.startswith(f"{side}-1 · ")
    grid = beside.lab.page.locator(f"{within(RIGHT)} .am-ledger__grid")
    beside.lab.do(grid.focus())
    for key in ("Home", "Enter"):
        beside.lab.do(beside.lab.page.keyboard.press(key))
    beside.wait_for(RIGHT, ".am-ledger__event")
    assert beside.texts(LEFT, ".am-ledger__event") == [""]
    assert beside.lab.do(grid.evaluate(POINTED)) == RIGHT


def test_no_id_is_given_twice(beside: Beside) -> None:
    """Or a screen reader would be sent to the other notebook."""
    has_ids, twice = beside.lab.do(beside.lab.page.evaluate(TWICE))
    assert has_ids
    assert twice == []


def test_the_page_asked_nothing_outside(beside: Beside) -> None:
    """In all of this."""
    assert beside.lab.asked == []
