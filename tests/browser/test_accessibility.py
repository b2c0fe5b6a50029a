"""All views in one page, for everybody: checked by axe-core, narrow, by keyboard, and inert.

What a machine can tell of WCAG 2.1 A and AA is here; focus, order and words are tested beside each
view.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import ViewportSize

from tests.browser.asking import Notebook, asking_page, calls
from tests.browser.lab import THEMES

pytestmark = [pytest.mark.browser, pytest.mark.req("W1", "W2", "W3", "W4", "W5")]

ROOT = ".agent-magics-drawn"
VIEWS = {"am-tabs": 6, "am-budget": 4, "am-ledger": 2, "am-compare": 2, "am-turn": 1}
CHECKED = f"{ROOT}, .am-dashboard summary"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RULES = {
    "runOnly": {"type": "tag", "values": LEVELS},
    "resultTypes": ["violations", "incomplete"],
}
TALL = ViewportSize(width=1200, height=12_000)  # JupyterLab takes away what is out of sight
CORPUS = (
    "<img src=x onerror='window.ran=1'><script>window.ran=2</script>",
    "<svg onload=window.ran=3><a xlink:href='javascript:window.ran=4'>a</a></svg>",
    "</div></details></style><style>*{display:none}</style><base href='http://evil.invalid/'>",
    "<iframe srcdoc='<script>parent.ran=5</script>'></iframe><object data='http://evil.invalid'>",
    "[a](javascript:window.ran=6) [b](data:text/html,<script>window.ran=7</script>)",
    "![out](http://evil.invalid/a.png) ![css](x \"' style='background:url(//evil.invalid)\")",
    r"$\href{javascript:window.ran=8}{x}$ $$\unicode{<img src=x onerror=window.ran=9>}$$",
    "&lt;script&gt;window.ran=10&lt;/script&gt; ${window.ran=11}",
    "\u202ereversed\u202c \u2028 \x1b[31m",
)
EVIL = " ".join(CORPUS)
EVIL_NAME = "<img src=x onerror=window.ran=3>"
UNBROKEN = "unbroken" * 40
LONG = "n" * 128
RTL = "שלום-עולם"
QUESTION = ".am-turn__question"
TABS = ":nth-match(.am-tabs, {}) >> button:text-is('{}') >> visible=true"
ACTIONS = ("Derive here…", "Rename…", "Mode…", "Delete…")
LAYOUT = """import ipywidgets
session = agent_magics.current()
ipywidgets.HBox([agent_magics.SlotTabs(session), agent_magics.TokenBudget(session)])"""
DASHBOARD = "agent_magics.Dashboard(agent_magics.current())"
FOLDED = ".am-dashboard summary:has-text('Compare')"
UNFOLD = "document.querySelectorAll('.am-turn details').forEach(each => { each.open = true; })"
DRAWN = f"""() => {[*VIEWS]}.map(
  view => document.querySelectorAll(`{ROOT} > .${{view}}`).length)"""
SPOIL = f"""() => document.querySelectorAll('{ROOT} > div').forEach(view => {{
  const [field, faint] = [document.createElement('input'), document.createElement('p')];
  field.className = faint.className = 'spoilt';
  faint.textContent = `faint ${{view.className}}`;
  faint.style.cssText = 'color: #888; background: #999';
  view.append(field, faint);
}})"""
MEND = "document.querySelectorAll('.spoilt').forEach(each => each.remove())"
# To axe-core nothing in a box without a height can be seen, and JupyterLab's body is one.
SEEN = "document.body.style.height = '100vh'"
NARROW = """width => document.querySelectorAll('.jp-OutputArea-output').forEach(
  output => { output.style.maxWidth = width; })"""
OUTSIDE = f"""() => [...document.querySelectorAll('{ROOT}')].flatMap(root => {{
  const {{left, right}} = root.getBoundingClientRect();
  return [...root.querySelectorAll('*')].filter(node => node.getClientRects().length).filter(
    node => node.getBoundingClientRect().right > right + 1
      || node.getBoundingClientRect().left < left - 1).map(node => node.className);
}})"""
FOREIGN = f"""() => [window.ran ?? null, ...[...document.querySelectorAll(
  `{ROOT} :is(img, script, iframe, object, base, [onerror], [onload], [srcdoc]), {ROOT} > * style,
  {ROOT} :is([href^="javascript:" i], [href^="data:" i], [style*="evil"]),
  .jp-RenderedHTML mjx-container:not(.am-turn__text--rendered *)`
)].map(node => node.outerHTML.slice(0, 80))]"""
# As JupyterLab does with an output sooner or later, formulas or not.
TYPESET = """async () => {
  const {latexTypesetter} = window.jupyterapp.shell.currentWidget.content.rendermime;
  const outputs = document.querySelectorAll('.jp-OutputArea-output');
  await Promise.all([...outputs].map(output => latexTypesetter.typeset(output)));
}"""
MOVES = f"""() => [...document.querySelectorAll('{ROOT}, {ROOT} *')].filter(node => {{
  const style = getComputedStyle(node);
  return style.animationName !== 'none' || style.scrollBehavior !== 'auto'
    || style.transitionDuration.split(', ').some(each => each !== '0s');
}}).map(node => node.className)"""

# Text against what stands behind it, as WCAG 2 counts it; translucent colours are blended. axe-core
# can't tell it of short texts, nor in the ledger's grid.
CONTRAST = """() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], back) => [r, g, b].map((v, i) => v * a + back[i] * (1 - a));
  const colorOf = (node, name) => numbers(getComputedStyle(node)[name]);
  const behind = node => node === null ? [255, 255, 255]
    : over(colorOf(node, 'backgroundColor'), behind(node.parentElement));
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const weights = [.2126, .7152, .0722];
  const light = rgb => rgb.reduce((sum, v, i) => sum + linear(v / 255) * weights[i], 0);
  const isSeen = node => node.getClientRects().length > 0 && !node.disabled;
  const isOurs = node => node.closest('.am-turn__text--rendered') === null;
  const says = node => [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim());
  const texts = [...document.querySelectorAll('.agent-magics-drawn *')].filter(
    node => isOurs(node) && isSeen(node) && says(node));
  const ratio = node => {
    const back = behind(node);
    const [low, high] = [light(over(colorOf(node, 'color'), back)), light(back)]
      .sort((x, y) => x - y);
    return (high + .05) / (low + .05);
  };
  const faint = texts.filter(node => ratio(node) < 4.5);
  return [texts.length, faint.map(node => [node.className, node.innerText.slice(0, 30)])];
}"""
UNTOLD = "color-contrast"
HOVERED = (".am-tabs__tab >> nth=0", ".am-ledger__row--event:not([hidden]) >> nth=0")


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """Every view with all of it opened, and texts and names of all kinds in it."""
    with asking_page(tmp_path_factory.mktemp("everyone")) as notebook:
        notebook.lab.do(notebook.lab.page.set_viewport_size(TALL))
        page_says(notebook, SEEN)
        _converse(notebook)
        _show(notebook)
        running = _ask(notebook)
        yield notebook
        if not running.done():
            notebook.click(".am-turn__button--no")
            notebook.lab.end(running)


def _converse(notebook: Notebook) -> None:
    """Have a conversation of hostile texts, in slots and a session of awkward names."""
    notebook.let_say(EVIL, EVIL, name=EVIL_NAME)
    title = f"agent_magics.current().set_title({EVIL_NAME + UNBROKEN!r})"
    notebook.lab.run(f"agent_magics.run({title})")
    notebook.lab.run(f"%slot derive {LONG} --switch --focused 6")
    notebook.lab.run(f"%%agent\n{EVIL} {UNBROKEN}")
    notebook.lab.run(f"%slot derive {RTL} --switch")
    notebook.lab.run(f"%%agent\n{EVIL} {UNBROKEN}")


def _show(notebook: Notebook) -> None:
    """Show each view, with each form, a sentence that refuses, an event and its request opened."""
    for number, action in enumerate(ACTIONS, start=1):
        notebook.lab.run("%slot")
        if number == 1:
            notebook.lab.do(notebook.lab.page.focus('[data-slot="default"]'))
            notebook.click(TABS.format(1, "Delete…"))
            notebook.click(TABS.format(1, "Delete"))
            notebook.wait_for(".am-tabs__notice--refused")
        notebook.click(TABS.format(number, action))
    notebook.lab.run(f"%context --slot {LONG}")
    notebook.lab.run(f"%context --slot {RTL}")
    notebook.lab.run("%ledger")
    notebook.click(".am-ledger__row--event:has-text('user_message') >> nth=-1")
    notebook.click(".am-ledger__event button:text-is('request')")
    notebook.wait_for(".am-ledger__request")
    notebook.lab.run(f"%slot compare {LONG} {RTL}")
    notebook.wait_for(".am-compare__column >> nth=1")
    notebook.lab.run(LAYOUT)
    notebook.wait_for(".widget-hbox .am-tabs")
    notebook.lab.run(DASHBOARD)
    notebook.click(FOLDED)
    notebook.wait_for(".am-dashboard .am-compare__column >> nth=1")


def _ask(notebook: Notebook) -> Any:
    """Have a turn wait for an answer, behind a call that failed; what is folded is opened."""
    first = {
        **calls(f"raise ValueError({EVIL + UNBROKEN!r})"),
        "text": f"{EVIL} {UNBROKEN}",
        "reasoning": EVIL,
    }
    notebook.let_say(first, calls(f"n = {EVIL + UNBROKEN!r}"), "Done.", name=EVIL_NAME)
    running = notebook.lab.begin("%agent Set n.")
    notebook.click(".am-turn__button--yes")
    notebook.until("() => document.querySelector('.am-turn__said--failed')")
    notebook.wait_for(QUESTION)
    notebook.lab.do(notebook.lab.page.evaluate(UNFOLD))
    return running


def page_says(notebook: Notebook, script: str, *given: Any) -> Any:
    return notebook.lab.do(notebook.lab.page.evaluate(script, *given))


def broken(notebook: Notebook) -> list[tuple[str, str]]:
    """Run axe-core in our roots; give each rule that doesn't hold or can't be told, and where."""
    found = notebook.lab.do(Axe().run(notebook.lab.page, CHECKED, RULES)).response
    untold = [rule for rule in found["incomplete"] if rule["id"] != UNTOLD]
    rules = [*found["violations"], *untold]
    return [(rule["id"], node["html"]) for rule in rules for node in rule["nodes"]]


def faint(notebook: Notebook) -> list[Any]:
    """Give the texts of less than 4.5 to 1."""
    count, found = page_says(notebook, CONTRAST)
    assert count > 200
    return list(found)


def test_every_view_is_drawn(notebook: Notebook) -> None:
    """Or the rest of this file would look at nothing."""
    assert page_says(notebook, DRAWN) == [*VIEWS.values()]


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing(notebook: Notebook, theme: str) -> None:
    """Names, roles, contrast and the rest of WCAG 2.1 A and AA."""
    notebook.lab.wear(theme)
    assert broken(notebook) == []
    assert faint(notebook) == []
    for selector in HOVERED:
        notebook.lab.do(notebook.lab.page.hover(selector))
        assert faint(notebook) == []


def test_axe_looks_into_each_view(notebook: Notebook) -> None:
    """It finds a field without a name, and a text that is too faint, in all of them."""
    page_says(notebook, SPOIL)
    found = sorted(rule for rule, _ in broken(notebook))
    page_says(notebook, MEND)
    count = sum(VIEWS.values())
    assert found == ["color-contrast"] * count + ["label"] * count


@pytest.mark.parametrize("width", ["400px", ""])
def test_nothing_stands_outside_its_view(notebook: Notebook, width: str) -> None:
    """Names of 128 characters, from right to left, and lines without a break."""
    page_says(notebook, NARROW, width)
    notebook.lab.shoot(f"everything {width}", ROOT)
    assert page_says(notebook, OUTSIDE) == []


@pytest.mark.req("inv18")
def test_hostile_texts_are_only_text(notebook: Notebook) -> None:
    """Of a person, a model and a tool, in the title and in the model's name, in each view."""
    page_says(notebook, TYPESET)
    assert page_says(notebook, FOREIGN) == [None]
    notebook.wait_for(".am-turn__text--rendered mjx-container >> nth=0")  # where Markdown is meant
    for view in VIEWS:
        assert "<img src=x onerror=" in notebook.text(f".{view} >> nth=-1"), view


def test_nothing_moves_by_itself(notebook: Notebook) -> None:
    """Where people asked for reduced motion."""
    notebook.lab.do(notebook.lab.page.emulate_media(reduced_motion="reduce"))
    assert page_says(notebook, MOVES) == []


@pytest.mark.req("N8", "dec55")
def test_a_question_is_answered_by_keyboard(notebook: Notebook) -> None:
    """Tab goes from what will run to its buttons; what is edited there runs."""
    notebook.lab.do(notebook.lab.page.focus(f"{QUESTION} pre"))
    press = notebook.lab.page.keyboard.press
    for key in (*["Tab"] * 4, "Enter", "Control+A"):
        notebook.lab.do(press(key))
    assert broken(notebook) == []
    notebook.lab.do(notebook.lab.page.keyboard.type("n = 7"))
    for key in ("Tab", "Enter"):
        notebook.lab.do(press(key))
    notebook.wait_for(QUESTION, "detached")
    assert notebook.lab.text("print(n)") == "7\n"


def test_the_page_asked_nothing_outside(notebook: Notebook) -> None:
    """In all of this."""
    assert notebook.lab.asked == []
