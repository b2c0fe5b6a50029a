"""A turn in a real JupyterLab while it runs: seen, stopped, approved, reloaded, and looked at."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.browser.asking import (
    BUSY,
    CAUSE,
    IDLE,
    STOP,
    VIEW,
    Notebook,
    asking_page,
    calls,
)
from tests.browser.lab import RESTART, SHOTS

pytestmark = [pytest.mark.browser, pytest.mark.req("W4")]

SAVE = "window.jupyterapp.commands.execute('docmanager:save')"
LEFT = "window.jupyterapp.commands.execute('application:toggle-left-area')"
PAUSE_S = 15 if SHOTS else 3  # four pictures take a while
WORDS = " ".join(f"word{number}" for number in range(600))
ANSWER = (
    "## Sales\n\nSales grew by **12 %** in March.\n\n- north\n- south\n\n"
    "```python\nsales.groupby('month').sum()\n```\n\nThat is all, and it was said slowly."
)
SLOW = {"text": f"{ANSWER}\n\n{WORDS}", "chunk_delay_s": 0.05}
EVIL = (
    "<script>window.ran = 1</script> <img src=x onerror='window.ran = 2'>"
    " [click](javascript:window.ran=3) ![out](http://evil.invalid/a.png)"
    " <style>body {display: none}</style> <iframe src='http://evil.invalid/f'></iframe>\n\n"
    "</div></details><button onclick='window.ran = 4'>Stop</button> \u202ereversed\u202c\n\n"
    "[ref]: http://evil.invalid/r\n\n" + "x" * 20_000
)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """One page with the extension loaded, its side bar out of the way."""
    with asking_page(tmp_path_factory.mktemp("turns")) as notebook:
        notebook.lab.do(notebook.lab.page.evaluate(LEFT))
        yield notebook


@pytest.mark.req("N2")
def test_an_answer_is_seen_as_it_grows(notebook: Notebook) -> None:
    """As Markdown, with a stop button; what is saved in the end is Markdown and nothing else."""
    notebook.let_say({"text": ANSWER, "chunk_delay_s": 0.2})
    running = notebook.lab.begin("%%agent\nHow did sales do?")
    notebook.until_said("in March")
    notebook.wait_for(f"{VIEW} >> h2")
    notebook.until_said("groupby")
    assert "slowly" not in notebook.text(VIEW)
    assert not running.done()
    notebook.lab.end(running)
    notebook.wait_for(".am-turn", "detached")
    (output,) = running.result()["outputs"]
    markdown = "".join(output["data"]["text/markdown"])
    assert markdown.startswith(ANSWER)
    assert "<div" not in markdown


def test_a_long_wait_says_what_is_waited_for(notebook: Notebook) -> None:
    """After two seconds, and then how long."""
    notebook.let_say({"text": "Late.", "delay_s": PAUSE_S})
    running = notebook.lab.begin("%agent Are you there?")
    notebook.until_said("waiting for scripted:")
    notebook.shoot("waiting")
    notebook.lab.end(running)


@pytest.mark.req("N7")
def test_the_stop_button_stops_the_turn(notebook: Notebook) -> None:
    """While the cell runs: it ends with an error, what was said stays, the ledger says stopped."""
    notebook.let_say(SLOW)
    running = notebook.lab.begin("%agent go on and on")
    notebook.until_said("word3")
    notebook.until(BUSY)
    notebook.shoot("answer")
    notebook.click(STOP)
    notebook.lab.end(running)
    said, error = running.result()["outputs"]
    assert "word3" in "".join(said["data"]["text/plain"])
    assert error["output_type"] == "error"
    assert "stopped after" in "".join(error["traceback"])
    assert notebook.lab.text(CAUSE) == "stopped\n"


def test_the_stop_button_is_pressed_by_keyboard(notebook: Notebook) -> None:
    """Tab reaches it, its focus can be seen, and it stays when the output is rendered anew."""
    notebook.let_say(SLOW)
    running = notebook.lab.begin("%agent go on and on")
    notebook.until_said("word3")
    notebook.lab.do(notebook.lab.page.locator(STOP).focus())
    anew = (
        "document.querySelector('.am-turn').closest('.jp-RenderedMarkdown').innerHTML ="
        " document.querySelector('.am-turn').parentElement.parentElement.cloneNode().outerHTML"
    )
    notebook.lab.do(notebook.lab.page.evaluate(anew))
    notebook.until("() => document.activeElement.innerText === 'Stop'")
    notebook.lab.do(notebook.lab.page.keyboard.press("Shift+Tab"))
    notebook.lab.do(notebook.lab.page.keyboard.press("Tab"))
    notebook.until("() => getComputedStyle(document.activeElement).outlineStyle === 'solid'")
    notebook.lab.do(notebook.lab.page.keyboard.press("Enter"))
    notebook.lab.end(running)
    assert notebook.lab.text(CAUSE) == "stopped\n"


@pytest.mark.req("N8", "dec55")
def test_a_tool_is_approved_by_a_button(notebook: Notebook) -> None:
    """What will run is read before; then the call, folded, has its arguments and its result."""
    notebook.let_say(calls("n = 41\nn + 1"), "It is **42**.")
    running = notebook.lab.begin("%agent What is next?")
    notebook.wait_for(".am-turn__question")
    assert notebook.text(".am-turn__question pre") == "n = 41\nn + 1"
    assert not running.done()
    notebook.shoot("question")
    notebook.click(".am-turn__button--yes")
    notebook.lab.end(running)
    notebook.wait_for(".am-turn__question", "detached")
    assert notebook.lab.text("print(n)") == "41\n"
    notebook.click(".am-turn__line:has-text('run_python') >> visible=true >> nth=-1")
    notebook.click(".am-turn__line:has-text('Reasoning') >> visible=true >> nth=-1")
    shown = [notebook.text(f".am-turn__pre >> visible=true >> nth={number}") for number in (-2, -1)]
    assert shown == ["n = 41\nn + 1", "42"]
    notebook.shoot("tool")


@pytest.mark.req("N8", "dec55")
def test_a_tool_is_refused_by_a_button(notebook: Notebook) -> None:
    """It doesn't run, and the turn goes on."""
    notebook.lab.run("n = 1")
    notebook.let_say(calls("n = 2"), "Then not.")
    running = notebook.lab.begin("%agent Set n.")
    notebook.click(".am-turn__button--no")
    notebook.lab.end(running)
    assert notebook.lab.text("print(n)") == "1\n"
    assert "Then not." in str(running.result()["outputs"])


@pytest.mark.req("N8", "dec55")
def test_a_refusal_may_say_why(notebook: Notebook) -> None:
    """By keyboard; the model is told, and the keys stay out of the notebook."""
    notebook.lab.run("n = 1")
    notebook.let_say(calls("n = 2"), "Then on a copy.")
    running = notebook.lab.begin("%agent Set n.")
    notebook.click(".am-turn__button--because")
    notebook.lab.do(notebook.lab.page.keyboard.type("dd x: work on a copy"))
    notebook.shoot("refusing")
    notebook.lab.do(notebook.lab.page.keyboard.press("Enter"))
    notebook.lab.end(running)
    told = "print(agent_magics.current().messages()[-2].content)"
    assert "dd x: work on a copy" in notebook.lab.text(told)
    assert notebook.lab.text("print(n)") == "1\n"


@pytest.mark.req("N8", "dec55")
def test_a_tool_runs_as_it_was_edited(notebook: Notebook) -> None:
    """Typed in the cell; keys of the notebook's own stay out of it."""
    notebook.let_say(calls("n = 2"), "Done.")
    running = notebook.lab.begin("%agent Set n.")
    notebook.click(".am-turn__button--edit")
    notebook.lab.do(notebook.lab.page.keyboard.press("Control+A"))
    notebook.lab.do(notebook.lab.page.keyboard.type("n = 5\ndd = 6"))
    notebook.shoot("edit")
    notebook.click(".am-turn__button--yes")
    notebook.lab.end(running)
    assert notebook.lab.text("print(n, dd)") == "5 6\n"


@pytest.mark.req("N8", "dec55")
def test_always_asks_no_more(notebook: Notebook) -> None:
    """This tool, in this session."""
    notebook.let_say(calls("n = 7"), calls("n = 8"), "Done.")
    running = notebook.lab.begin("%agent Set n twice.")
    notebook.click(".am-turn__button--always")
    notebook.lab.end(running)
    assert notebook.lab.text("print(n)") == "8\n"


def test_the_stop_button_reaches_code_that_runs(notebook: Notebook) -> None:
    """It gets KeyboardInterrupt, as by the kernel's own button."""
    notebook.let_say(calls("print('on')\ntime.sleep(60)"), "never")
    running = notebook.lab.begin("%agent wait")
    notebook.until_said("run_python(")
    notebook.wait_for(".jp-OutputArea-output:has-text('on') >> nth=-1")
    notebook.shoot("running")
    notebook.click(STOP)
    began = time.monotonic()
    notebook.lab.end(running)
    assert time.monotonic() - began < 10


@pytest.mark.req("inv18")
def test_hostile_text_is_only_text(notebook: Notebook) -> None:
    """Of the model and of a tool: no script ran, nothing was asked, nothing left its box."""
    evil = calls(f"print({EVIL!r})")
    notebook.let_say({**evil, "reasoning": EVIL, "text": EVIL}, {"text": EVIL, "delay_s": PAUSE_S})
    running = notebook.lab.begin("%agent do your worst")
    notebook.until_said("reversed")
    notebook.until("() => document.querySelector('.am-turn__said--done')")
    for line in ("run_python", "Reasoning"):
        notebook.click(f".am-turn__line:has-text('{line}') >> visible=true >> nth=-1")
    _assert_inert(notebook)
    notebook.shoot("hostile")
    notebook.lab.end(running)
    _assert_inert(notebook)


INERT = """() => {
  const views = [...document.querySelectorAll('.am-turn')];
  const foreign = views.flatMap(view => [...view.querySelectorAll(
    'script, img, iframe, style, [onclick], [onerror], a[href^="javascript:"]')]);
  const panel = document.querySelector('.jp-Notebook').getBoundingClientRect();
  const outside = views.filter(view => view.getBoundingClientRect().right > panel.right + 1);
  return [window.ran ?? null, foreign.map(node => node.outerHTML.slice(0, 80)), outside.length,
    getComputedStyle(document.body).display === 'none'];
}"""


def _assert_inert(notebook: Notebook) -> None:
    assert notebook.lab.do(notebook.lab.page.evaluate(INERT)) == [None, [], 0, False]
    assert notebook.lab.asked == []


def test_a_page_that_is_reloaded_goes_on(notebook: Notebook) -> None:
    """In the middle of the busy cell: the whole text so far, what comes, and the buttons."""
    notebook.let_say(SLOW)
    notebook.lab.begin("%agent go on and on")
    notebook.until_said("word9")
    notebook.lab.do(notebook.lab.page.evaluate(SAVE))
    notebook.lab.reload()
    notebook.until_said("word60")
    shown = notebook.text(VIEW)
    assert all(f"word{number} " in shown for number in range(60))
    notebook.shoot("reloaded")
    notebook.click(STOP)
    notebook.until(
        "() => !document.querySelector('.am-turn__bar:not([hidden]) button:not([hidden])')"
    )
    assert "word60" in notebook.text(VIEW)
    notebook.until(IDLE)
    assert notebook.lab.text(CAUSE) == "stopped\n"


def test_a_restart_leaves_what_is_saved(notebook: Notebook) -> None:
    """The Markdown of all turns, with their calls' lines; no view and no button."""
    notebook.lab.do(notebook.lab.page.evaluate(RESTART))
    notebook.wait_for(".am-turn", "detached")
    page = notebook.text(".jp-Notebook")
    assert "reversed" in page
    assert "run_python(" in page


def test_the_page_asked_nothing_outside(notebook: Notebook) -> None:
    """In all of this."""
    assert notebook.lab.asked == []
