"""The views in a real JupyterLab: asked, derived, clicked, and looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.browser.lab import RESTART, Lab, lab_page, until, wait_for

pytestmark = pytest.mark.browser

ANSWER = "Sales grew by **12 %** in March.\n\n```python\nsales.groupby('month').sum()\n```"
SLOW_S = 6.0
NOW = "import agent_magics; print(agent_magics.current().current_slot)"
SEEN = (
    "print([''.join(b.text for b in m.content)[:20] for m in agent_magics.current().messages({})])"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One server, one browser, one page, with the extension loaded and a first question asked."""
    folder = tmp_path_factory.mktemp("lab")
    script = folder / "answers.yaml"
    usage = {"input_tokens": 1_412, "output_tokens": 230}
    steps = [{"text": text, "usage": usage} for text in (ANSWER, *_answers())]
    script.write_text(json.dumps({"steps": steps, "context_window": 16_000}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ) as page:
        page.first_line = page.text("%load_ext agent_magics")
        page.first = page.run("%%agent\nHow did sales in {{['Jan', 'Mar']}} compare?")
        yield page


def _answers() -> list[str]:
    return [f"Answer {number}. {'More of it. ' * 40}" for number in range(2, 30)]


def tab(slot: str) -> str:
    return f'.am-tabs__tab[data-slot="{slot}"]'


def content(lab: Lab, selector: str) -> str:
    return lab.do(lab.page.inner_text(selector))


@pytest.mark.req("N1", "N9")
def test_the_session_is_called_like_the_notebook(lab: Lab) -> None:
    """The server tells the notebook's path; the load line shows its stem."""
    assert 'session "session" new' in lab.first_line


@pytest.mark.req("N2")
def test_the_answer_is_one_markdown_output(lab: Lab) -> None:
    """What is saved reads without us: Markdown, plain text, and where it comes from."""
    (output,) = lab.first["outputs"]
    assert output["output_type"] == "display_data"
    assert "".join(output["data"]["text/markdown"]).startswith(ANSWER.split("\n", 1)[0])
    assert output["metadata"]["agent_magics"]["slot"] == "default"
    assert "groupby" in content(lab, ".jp-RenderedMarkdown >> nth=0")


FOOTER_STYLE = """() => {
  const footer = document.querySelector('.jp-RenderedMarkdown small');
  const size = (node) => parseFloat(getComputedStyle(node).fontSize);
  const answer = footer.closest('.jp-RenderedMarkdown');
  return [size(footer) < size(answer), getComputedStyle(footer).opacity, footer.innerText];
}"""


@pytest.mark.req("N2")
def test_the_footer_is_quieter_than_the_answer(lab: Lab) -> None:
    """JupyterLab's sanitiser leaves it small and grey."""
    is_smaller, opacity, line = lab.do(lab.page.evaluate(FOOTER_STYLE))
    assert is_smaller
    assert opacity == "0.7"
    assert " · default · 1,412 → 230 tokens · " in line


@pytest.mark.req("N2")
def test_the_sentence_of_a_failed_cell_stands_once(lab: Lab) -> None:
    """JupyterLab shows an exception's name and text where it has no traceback of its own."""
    lab.run("%slot switch nope")
    shown = content(lab, ".jp-Cell:has-text('%slot switch nope') .jp-OutputArea")
    assert shown.strip() == 'Nothing called "nope". Slots here: default.'


@pytest.mark.req("W1", "N4")
def test_a_click_on_a_tab_switches_the_slot_in_the_kernel(lab: Lab) -> None:
    """Derive twice, show the tabs, click one: Python is in that slot, and the tab is selected."""
    lab.run("%slot derive option-a --switch\n%agent And in April?")
    lab.run("%slot derive option-b --from default --focused 6\n%slot switch default")
    lab.run("%slot")
    wait_for(lab, tab("option-a"))
    lab.shoot("tabs", ".am-tabs")
    assert lab.text(NOW) == "default\n"
    lab.do(lab.page.click(tab("option-a")))
    wait_for(lab, tab("option-a") + '[aria-selected="true"]')
    assert lab.text(NOW) == "option-a\n"
    assert content(lab, tab("option-a")).splitlines()[0] == "└ option-a"


@pytest.mark.req("W1")
def test_the_tabs_are_used_by_keyboard(lab: Lab) -> None:
    """Arrows move the focus, Enter goes there; the focus stays when the view is drawn again."""
    lab.do(lab.page.focus(tab("option-a")))
    lab.do(lab.page.keyboard.press("ArrowDown"))
    lab.do(lab.page.keyboard.press("Enter"))
    wait_for(lab, tab("option-b") + '[aria-selected="true"]')
    focused = lab.do(lab.page.evaluate("document.activeElement.getAttribute('data-slot')"))
    assert focused == "option-b"
    assert lab.text(NOW) == "option-b\n"


@pytest.mark.req("W1", "W2")
def test_views_follow_what_cells_do(lab: Lab) -> None:
    """An old cell's tabs and budget are live: a later cell's turn shows in them."""
    lab.run("%slot switch default")
    wait_for(lab, tab("default") + '[aria-selected="true"]')
    lab.run("%context")
    wait_for(lab, ".am-budget__bar")
    before = content(lab, tab("default")), content(lab, ".am-budget__legend")
    lab.run("%agent What of May?")
    assert until(lambda: "2 turns" in content(lab, tab("default")))
    assert until(lambda: content(lab, ".am-budget__legend") != before[1])
    lab.shoot("budget", ".am-budget")


@pytest.mark.req("W1")
def test_a_click_is_heard_while_a_cell_runs(lab: Lab) -> None:
    """The tab is selected before the busy cell ends."""
    began = time.monotonic()
    running = lab.begin(f"import time\nfor _ in range({SLOW_S:.0f}): time.sleep(1)")
    time.sleep(1)
    lab.do(lab.page.click(tab("option-a")))
    wait_for(lab, tab("option-a") + '[aria-selected="true"]')
    assert time.monotonic() - began < SLOW_S
    lab.end(running)
    assert time.monotonic() - began >= SLOW_S
    assert lab.text(NOW) == "option-a\n"


@pytest.mark.req("N9", "dec51")
def test_a_cell_that_runs_again_takes_its_turns_place(lab: Lab) -> None:
    """JupyterLab tells the cell's id: the earlier turn leaves the view."""
    lab.run("%slot new again --switch")
    asked = lab.run("%agent one question")
    seen = SEEN.format("'again'")
    assert lab.text(seen).count("one question") == 1
    lab.run(again=asked["index"])
    assert lab.text(seen).count("one question") == 1
    assert lab.text("print(len(agent_magics.current().turns('again')))") == "1\n"


@pytest.mark.req("N9", "dec46")
def test_the_session_is_found_again_after_a_restart(lab: Lab) -> None:
    """The kernel's id stays, and with it the session; the view is the same."""
    seen = SEEN.format("'default'")
    before = lab.text(seen)
    lab.do(lab.page.evaluate(RESTART))
    said = lab.text("%load_ext agent_magics")
    assert 'session "session" resumed: 4 slots, ' in said
    assert ", in again" in said
    assert lab.text(f"import agent_magics\n{seen}") == before


def test_the_page_asks_nothing_outside(lab: Lab) -> None:
    """No view, answer or font comes from another machine."""
    assert lab.asked == []
