"""Several slots asked in one cell, in a real JupyterLab: each column is a turn view of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.asking import Notebook, asking_page, calls

pytestmark = [pytest.mark.browser, pytest.mark.req("W4", "B5")]

SLOW = {"text": " ".join(f"word{number}" for number in range(400)), "chunk_delay_s": 0.05}
ASK = "%%agent --slots a,b --keep-going\nWhich one?"
STOPS = ".am-turn__bar button >> visible=true"
COLUMNS = """() => [...document.querySelectorAll('.am-turn')].slice(-2).map(
  node => node.getBoundingClientRect()).map(({left, top}) => [Math.round(left), Math.round(top)])"""
TEXTS = """() => [...document.querySelectorAll('.am-turn')].slice(-2).map(
  node => node.innerText)"""
CAUSES = "print([agent_magics.current().history(slot)[-1].payload.cause for slot in ('a', 'b')])"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One page, with two slots to ask."""
    with asking_page(tmp_path_factory.mktemp("columns")) as notebook:
        notebook.lab.run("%slot new a\n%slot new b")
        yield notebook


def test_each_column_streams_and_stops_alone(notebook: Notebook) -> None:
    """Side by side; the button of one leaves the other to go on, and what both said stays."""
    notebook.let_say(SLOW, SLOW)
    running = notebook.lab.begin(ASK)
    notebook.until("() => document.querySelectorAll('.am-turn').length >= 2")
    notebook.until(f"() => ({TEXTS})().filter(text => text.includes('word20')).length === 2")
    (left, top), (right, other_top) = notebook.lab.do(notebook.lab.page.evaluate(COLUMNS))
    assert right > left + 200
    assert top == other_top
    notebook.shoot("columns streaming")
    notebook.click(f"{STOPS} >> nth=0")
    notebook.wait_for(".jp-RenderedMarkdown :text('stopped after')")
    assert not running.done()
    notebook.click(f"{STOPS} >> nth=-1")
    notebook.lab.end(running)
    assert notebook.lab.text(CAUSES).strip() == "['stopped', 'stopped']"


def test_a_question_stands_in_the_column_that_asks(notebook: Notebook) -> None:
    """It names its slot, is answered by a button while the cell runs, and has its effect."""
    step = calls("seen = globals().get('seen', 0) + 1")
    notebook.let_say(step, step, "Done.", "Done.")
    running = notebook.lab.begin(ASK)
    for slot in ("a", "b"):
        question = f".am-turn__question:has-text('The agent in {slot} wants') >> visible=true"
        notebook.wait_for(question)
        if slot == "a":
            notebook.shoot("columns asking")
        notebook.click(f"{question} >> .am-turn__button--yes")
    notebook.lab.end(running)
    assert notebook.lab.text("print(seen)").strip() == "2"


def test_what_is_saved_stands_side_by_side_without_a_view(notebook: Notebook) -> None:
    """Answers of text alone are the saved Markdown, each under its slot."""
    notebook.let_say("It is **this**.", "It is **that**.")
    found = notebook.lab.run(ASK)
    (saved,) = [each for each in found["outputs"] if "text/markdown" in each.get("data", {})]
    text = "".join(saved["data"]["text/markdown"])
    assert "am-turn" not in text
    one, other = (notebook.lab.text(f"print(agent_last[{slot!r}].text)").strip() for slot in "ab")
    assert {one, other} == {"It is **this**.", "It is **that**."}  # whoever asked first
    assert text.index("**a**") < text.index(one) < text.index("**b**") < text.index(other)
    assert "flex" in text


def test_a_turn_that_python_started_is_a_turn_view(notebook: Notebook) -> None:
    """It streams after its cell has ended, and its button stops it."""
    notebook.let_say(SLOW)
    notebook.lab.run(
        "turn = await agent_magics.current().send_message('Go on.')\nagent_magics.TurnView(turn)"
    )
    notebook.until_said("word9")
    notebook.click(f"{STOPS} >> nth=-1")
    notebook.wait_for(".jp-RenderedMarkdown :text('stopped after') >> nth=-1")
    assert notebook.lab.text("print(type(await turn.join()).__name__)").strip() == "Cancelled"
