"""The slot tabs in a real JupyterLab: each action by hand, and its effect in the kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.browser.lab import Lab, lab_page, press, wait_for

pytestmark = pytest.mark.browser

SLOW_S = 5
NAMES = (
    "import agent_magics\nprint([s.slot_id for s in agent_magics.current().list_slots()],"
    " agent_magics.current().current_slot)"
)
LONG = "n" * 128
RTL = "שלום-עולם"
FIELD = ".am-tabs__field >> visible=true"
NOTICE = ".am-tabs__notice"
OVERFLOWS = """() => [...document.querySelectorAll('.am-tabs')].filter(box => box.offsetParent)
  .map(box => Math.max(...[...box.querySelectorAll('*')].map(
    node => node.getBoundingClientRect().right)) - box.parentElement.getBoundingClientRect().right)
  .filter(over => over > 1)"""
NARROW = """width => document.querySelectorAll('.jp-OutputArea-output').forEach(
  output => output.style.maxWidth = width)"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One page with the tabs of a session of one turn."""
    folder = tmp_path_factory.mktemp("tabs")
    script = folder / "answers.yaml"
    script.write_text(json.dumps({"steps": [f"Answer {number}." for number in range(9)]}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ) as page:
        page.run("%load_ext agent_magics")
        page.run("%agent How did sales compare?")
        page.run("%slot")
        wait_for(page, tab("default"))
        yield page


def tab(slot: str) -> str:
    return f'.am-tabs__tab[data-slot="{slot}"]'


def button(lab: Lab, label: str) -> None:
    lab.do(lab.page.click(f".am-tabs__button:text-is('{label}') >> visible=true"))


def said(lab: Lab, words: str) -> None:
    """Wait for a sentence in the live region."""
    wait_for(lab, f"{NOTICE}:has-text('{words}')")


def shoot(lab: Lab, name: str) -> None:
    lab.shoot(name, ".am-tabs")


@pytest.mark.req("W1")
def test_a_slot_is_derived_by_button(lab: Lab) -> None:
    """The name is asked for in the view; the kernel has the slot."""
    button(lab, "Derive here…")
    lab.do(lab.page.fill(FIELD, "option-a"))
    press(lab, "Enter")
    wait_for(lab, tab("option-a"))
    said(lab, "option-a is new, from default")
    assert lab.text(NAMES) == "['default', 'option-a'] default\n"


@pytest.mark.req("W1")
def test_everything_is_done_by_keyboard(lab: Lab) -> None:
    """Arrows, F2, Enter, Delete with its question, and Undo; the focus is never lost."""
    lab.do(lab.page.focus(tab("default")))
    press(lab, "ArrowDown", "F2")
    lab.do(lab.page.keyboard.type("option-b"))
    press(lab, "Enter")
    said(lab, "option-a is now called option-b")
    focused = "document.activeElement.getAttribute('data-slot')"
    assert lab.do(lab.page.evaluate(focused)) == "option-b"
    press(lab, "Enter")
    said(lab, "now in option-b")
    press(lab, "Delete")
    shoot(lab, "tabs ask")
    press(lab, "Enter")
    said(lab, "option-b is deleted, its log is kept; now in default")
    assert lab.do(lab.page.evaluate(focused)) == "default"
    assert lab.text(NAMES) == "['default'] default\n"
    button(lab, "Undo")
    said(lab, "option-b is back")
    assert lab.text(NAMES) == "['default', 'option-b'] default\n"


@pytest.mark.req("W1")
def test_keys_pressed_in_the_view_are_no_commands_of_the_notebook(lab: Lab) -> None:
    """With the focus on a tab or a button, neither x nor d d takes a cell away."""
    count = "document.querySelectorAll('.jp-Cell').length"
    before = lab.do(lab.page.evaluate(count))
    for place in (tab("default"), ".am-tabs__button:text-is('Mode…') >> visible=true"):
        lab.do(lab.page.focus(place))
        press(lab, "x", "d", "d")
        lab.do(lab.page.wait_for_timeout(300))
        assert lab.do(lab.page.evaluate(count)) == before


@pytest.mark.req("W1")
def test_a_mode_is_set_in_the_view(lab: Lab) -> None:
    """The choice is sent with its number, and the kernel has it."""
    lab.do(lab.page.focus(tab("option-b")))
    button(lab, "Mode…")
    lab.do(lab.page.select_option("select.am-tabs__field >> visible=true", "focused"))
    lab.do(lab.page.fill("input[type=number] >> visible=true", "4"))
    button(lab, "Set")
    said(lab, "option-b is focused 4")
    assert "focused 4" in lab.do(lab.page.inner_text(tab("option-b")))
    mode = "print(agent_magics.current().slot_config('option-b').mode.recent_messages)"
    assert lab.text(mode) == "4\n"


@pytest.mark.req("W1", "dec7")
def test_what_is_refused_is_one_sentence(lab: Lab) -> None:
    """The session's own sentence stands in the live region."""
    lab.do(lab.page.focus(tab("default")))
    press(lab, "Delete", "Enter")
    said(lab, "anchor")
    shoot(lab, "tabs refuse")
    assert lab.text(NAMES) == "['default', 'option-b'] default\n"


@pytest.mark.req("W1")
def test_slots_change_while_a_cell_runs(lab: Lab) -> None:
    """A slot is derived before the busy cell ends."""
    began = time.monotonic()
    running = lab.begin(f"import time\nfor _ in range({SLOW_S * 10}): time.sleep(0.1)")
    time.sleep(1)
    button(lab, "Derive here…")
    lab.do(lab.page.fill(FIELD, "meanwhile"))
    press(lab, "Enter")
    wait_for(lab, tab("meanwhile"))
    assert time.monotonic() - began < SLOW_S
    lab.end(running)


@pytest.mark.req("W1")
def test_names_of_all_kinds_stay_in_their_box(lab: Lab) -> None:
    """128 characters, right-to-left, deep branches, 400 pixels wide: nothing sticks out."""
    lab.run(
        f"%slot derive {LONG}\n%slot derive {RTL} --from {LONG}\n%slot derive deep --from {RTL}"
    )
    wait_for(lab, tab("deep"))
    lab.do(lab.page.evaluate(NARROW, "400px"))
    shoot(lab, "tabs narrow")
    assert lab.do(lab.page.evaluate(OVERFLOWS)) == []
    lab.do(lab.page.evaluate(NARROW, ""))
    shoot(lab, "tabs wide")
    assert lab.do(lab.page.evaluate(OVERFLOWS)) == []


@pytest.mark.req("W1")
def test_two_hundred_slots_scroll(lab: Lab) -> None:
    """All are there, the list stays low, and End goes to the last one."""
    lab.run(
        "async def many(session):\n"
        "    for n in range(200):\n"
        "        await session.derive_slot(f'many-{n}', 'default')\n"
        "agent_magics.run(many(agent_magics.current()))"
    )
    wait_for(lab, tab("many-199"))
    height = "document.querySelector('.am-tabs__list').clientHeight"
    assert lab.do(lab.page.evaluate(height)) < 400
    lab.do(lab.page.focus(tab("default")))
    press(lab, "End", "Enter")
    wait_for(lab, tab("many-199") + '[aria-selected="true"]')
    shoot(lab, "tabs many")
    assert lab.text(NAMES).endswith("many-199\n")
