"""The compare view and the dashboard in a real JupyterLab, by themselves and in a layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.browser.lab import Lab, lab_page, press

pytestmark = [pytest.mark.browser, pytest.mark.req("W5")]

WAIT_MS = 20_000
HOSTILE = '<img src=x onerror="window.pwned = 1"><script>window.pwned = 1</script>'
TENURE = "Use the **tenure** column: long customers stay.\n\n```python\ndf.groupby('tenure')\n```"
PRICE = "Use the **price** column: cheap plans stay.\n\n```python\ndf.groupby('price')\n```"
STEPS = ["Yes, three columns.", TENURE, PRICE, f"First {HOSTILE}", f"Second {HOSTILE}"]
IMPORT = "import agent_magics\nsession = agent_magics.current()\n"
LAST_TEXT = "[...document.querySelectorAll('.am-compare__text')].at(-1)"
CELLS = "window.jupyterapp.shell.currentWidget.content.model.cells.length"
OPENED = "document.activeElement.closest('details').open"
LAST_CELL = ".jp-Cell:last-child"
# What JupyterLab's sanitiser does, and then the page draws the output anew.
STRIPPED = """() => {
  for (const fold of document.querySelectorAll('.am-dashboard summary')) {
    fold.removeAttribute('data-lm-suppress-shortcuts');
  }
  for (const root of document.querySelectorAll('.am-dashboard .agent-magics-drawn')) root.remove();
}"""
WIDTHS = """selector => [...document.querySelectorAll(selector)].map(
  node => node.scrollWidth - node.clientWidth)"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two slots that were asked the same, answered each in its own way."""
    folder = tmp_path_factory.mktemp("dashboard")
    script = folder / "answers.yaml"
    script.write_text(json.dumps({"steps": STEPS, "context_window": 32_000}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ) as page:
        page.run("%load_ext agent_magics")
        page.run("%agent Is there a table?")
        for slot in ("option-a", "option-b"):
            page.run(f"%slot derive {slot}")
            page.run(f"%agent --slot {slot} Which column predicts churn?")
        yield page


def marked(lab: Lab, selector: str) -> list[str]:
    """The texts that are marked in what a selector finds first."""
    lab.do(lab.page.wait_for_selector(f"{selector} .am-compare__column", timeout=WAIT_MS))
    found: list[str] = lab.do(
        lab.page.eval_on_selector_all(
            f"{selector} .am-compare__differs", "nodes => nodes.map(n => n.textContent)"
        )
    )
    return found


def test_answers_stand_side_by_side_with_their_differences(lab: Lab) -> None:
    """The words that the other hasn't got are marked; text of a model is text."""
    lab.run("%slot compare option-a option-b")
    texts = marked(lab, ".jp-OutputArea")
    assert "tenure" in texts
    assert "price" in texts
    assert "column" not in "".join(texts)
    lab.shoot("compare", ".am-compare")


def test_a_base_is_chosen_by_keyboard(lab: Lab) -> None:
    """The kernel compares anew; the list keeps the focus."""
    field = lab.page.locator(".am-compare select").last
    lab.do(field.focus())
    lab.do(lab.page.keyboard.press("ArrowDown"))
    base = ".am-compare__column--base .am-compare__slot:text-is('option-b')"
    lab.do(lab.page.wait_for_selector(base, timeout=WAIT_MS))
    focused = lab.do(lab.page.evaluate("document.activeElement.tagName"))
    assert focused == "SELECT"
    spoken = lab.do(lab.page.locator(".am-compare [role=status]").last.inner_text())
    assert re.fullmatch(r"compared with option-b, \d+ % in common", spoken)


def test_where_an_answer_differs_is_its_description(lab: Lab) -> None:
    """As the browser tells it to a screen reader."""
    protocol = lab.do(lab.page.context.new_cdp_session(lab.page))
    found = lab.do(protocol.send("Runtime.evaluate", {"expression": LAST_TEXT}))
    asked = {"objectId": found["result"]["objectId"], "fetchRelatives": False}
    (node,) = lab.do(protocol.send("Accessibility.getPartialAXTree", asked))["nodes"]
    assert node["name"]["value"] == "What option-b answered"
    assert re.match(r"differs in \d+ places: .*price", node["description"]["value"])


def test_a_comparison_follows_what_is_asked(lab: Lab) -> None:
    """The next prompt that both are asked is shown as it comes; nothing in it runs."""
    lab.run("%%agent --slots option-a,option-b\nAnd what is hostile?")
    asked = ".am-compare__prompt:has-text('And what is hostile?')"
    lab.do(lab.page.wait_for_selector(asked, timeout=WAIT_MS))
    lab.do(lab.page.wait_for_selector(".am-compare__text:has-text('<img')", timeout=WAIT_MS))
    assert lab.do(lab.page.evaluate("window.pwned")) is None
    assert lab.do(lab.page.locator(".am-compare img").count()) == 0
    assert lab.asked == []


def test_the_dashboard_puts_the_views_together(lab: Lab) -> None:
    """Tabs beside the current slot's budget, the ledger below: each is live."""
    lab.run(f"{IMPORT}agent_magics.Dashboard(session)")
    for part in (".am-tabs__tab", ".am-budget__bar", ".am-grid__row, [role=row]"):
        lab.do(lab.page.wait_for_selector(f".am-dashboard {part}", timeout=WAIT_MS))
    lab.do(lab.page.click(".am-dashboard .am-tabs__tab:has-text('option-b')"))
    head = ".am-dashboard .am-budget__head:has-text('option-b')"
    lab.do(lab.page.wait_for_selector(head, timeout=WAIT_MS))
    assert lab.text("%slot list").count("option-b *") == 1
    lab.do(lab.page.click(".am-dashboard summary:has-text('Compare')"))
    assert marked(lab, ".am-dashboard")
    lab.shoot("dashboard", ".am-dashboard")


def test_a_fold_has_its_keys(lab: Lab) -> None:
    """Also in a notebook that isn't trusted: the page cuts no cell, Enter opens and closes."""
    before = lab.do(lab.page.evaluate(CELLS))
    for strips in ("", STRIPPED):
        if strips:
            lab.do(lab.page.evaluate(strips))
        fold = lab.page.locator(".am-dashboard summary:has-text('Compare')")
        lab.do(fold.focus())
        is_open = lab.do(lab.page.evaluate(OPENED))
        press(lab, "x", "d", "d", "b")
        assert lab.do(lab.page.evaluate(CELLS)) == before
        press(lab, "Enter")
        assert lab.do(lab.page.evaluate(OPENED)) is not is_open


def test_views_stand_in_a_layout_of_ipywidgets(lab: Lab) -> None:
    """Widgets among others: live, clickable, closed one by one."""
    lab.run(
        f"{IMPORT}import ipywidgets\n"
        "tabs = agent_magics.SlotTabs(session)\n"
        "budget = agent_magics.TokenBudget(session, 'option-a')\n"
        "ledger = agent_magics.LedgerExplorer(session, kinds=['user_message'])\n"
        "compared = agent_magics.CompareView(session, 'option-a', 'option-b')\n"
        "box = ipywidgets.VBox([tabs, budget, ledger, compared])\nbox"
    )
    for part in (".am-tabs__tab", ".am-budget__bar", ".am-compare__column"):
        lab.do(lab.page.wait_for_selector(f".widget-vbox {part}", timeout=WAIT_MS))
    row = ".widget-vbox [role=row]:has-text('user_message')"
    lab.do(lab.page.wait_for_selector(row, timeout=WAIT_MS))
    lab.do(lab.page.click(".widget-vbox .am-tabs__tab:has-text('default')"))
    current = ".widget-vbox .am-tabs__tab[aria-selected='true']:has-text('default')"
    lab.do(lab.page.wait_for_selector(current, timeout=WAIT_MS))
    head = lab.do(lab.page.inner_text(".widget-vbox .am-budget__head"))
    assert head.startswith("option-a")
    lab.run("compared.close()")
    gone = "() => !document.querySelector('.widget-vbox .am-compare__column')"
    lab.do(lab.page.wait_for_function(gone, timeout=WAIT_MS))
    lab.shoot("layout", ".widget-vbox")


def test_views_share_a_row(lab: Lab) -> None:
    """Side by side each has its part of the width, also those that take it from their place."""
    lab.run(
        f"{IMPORT}import ipywidgets\n"
        "ipywidgets.HBox([agent_magics.SlotTabs(session), agent_magics.TokenBudget(session),"
        " agent_magics.LedgerExplorer(session)], layout={'grid_gap': '24px'})"
    )
    widths = []
    for part in (".am-tabs", ".am-budget", ".am-ledger"):
        shown = f".widget-hbox {part} >> visible=true >> nth=-1"
        lab.do(lab.page.wait_for_selector(shown, timeout=WAIT_MS))
        widths.append(lab.do(lab.page.locator(shown).evaluate("node => node.clientWidth")))
    lab.shoot("row", ".widget-hbox >> visible=true >> nth=-1")
    assert min(widths) > 200


def test_nothing_is_wider_than_a_narrow_cell(lab: Lab) -> None:
    """At 400 px the columns stand one above the other, and nothing sticks out."""
    lab.run("%slot compare option-a option-b")
    lab.do(lab.page.set_viewport_size({"width": 560, "height": 900}))
    try:
        lab.do(lab.page.locator(".am-compare").last.scroll_into_view_if_needed())
        assert set(lab.do(lab.page.evaluate(WIDTHS, ".am-compare__columns"))) == {0}
        lab.shoot("compare narrow", ".am-compare >> nth=-1")
    finally:
        lab.do(lab.page.set_viewport_size({"width": 1200, "height": 900}))


@pytest.mark.req("W1")
def test_a_session_that_is_left_leaves_static_views(lab: Lab) -> None:
    """Of magics and of Python: their tables are seen again, nothing is left that can be clicked."""
    lab.run("%slot")
    lab.do(lab.page.wait_for_selector(f"{LAST_CELL} .am-tabs__tab", timeout=WAIT_MS))
    lab.run("agent_magics.run(agent_magics.current().close())")
    gone = "() => !document.querySelector('.am-tabs__tab, .am-ledger, .am-compare, .am-budget')"
    lab.do(lab.page.wait_for_function(gone, timeout=WAIT_MS))
    assert lab.do(lab.page.locator(".am-dashboard table >> visible=true").count()) >= 3
    lab.run("%slot")
    lab.do(lab.page.wait_for_selector(f"{LAST_CELL} .am-tabs__tab", timeout=WAIT_MS))
