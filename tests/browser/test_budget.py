"""The token budget in a real JupyterLab: it grows while a turn streams."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.browser.lab import Lab, lab_page

pytestmark = pytest.mark.browser

WAIT_MS = 20_000
ANSWER = "Sales grew in March, and again in April. " * 30
GROWS = """before => {
  const part = document.querySelector('.am-budget__part--answer');
  return part && part.getBoundingClientRect().width > before;
}"""
HEIGHT = """part => document.querySelector(`.am-budget__${part}`)
  .getBoundingClientRect().height"""
WIDTH = "document.querySelector('.am-budget__part--answer').getBoundingClientRect().width"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A slot of some turns in a small window, its budget shown; what comes then is slow."""
    folder = tmp_path_factory.mktemp("budget")
    script = folder / "answers.yaml"
    slow = {"text": ANSWER, "chunks": 60, "chunk_delay_s": 0.07}
    steps = [*[ANSWER] * 5, *[slow] * 3]  # a summary may come first
    script.write_text(json.dumps({"steps": steps, "context_window": 4_000}))
    environ = {
        "AGENT_MAGICS_MODEL": f"scripted:{script}",
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
    }
    with lab_page(folder, environ) as page:
        page.run("%load_ext agent_magics")
        for _ in range(5):
            page.run("%agent How did sales compare?")
        page.run("%context")
        page.do(page.page.wait_for_selector(".am-budget__bar", timeout=WAIT_MS))
        yield page


@pytest.mark.req("W2", "C18")
def test_what_a_compaction_would_free_is_shown(lab: Lab) -> None:
    """The strip under the bar and the legend say about as much as the dry run."""
    lab.do(lab.page.wait_for_selector(".am-budget__frees", timeout=WAIT_MS, state="attached"))
    legend = lab.do(lab.page.inner_text(".am-budget__item:has-text('would free about')"))
    plan = "import agent_magics\np = agent_magics.current().foreseen_compaction()\n"
    frees = lab.text(f"{plan}print(f'{{p.tokens_before - p.tokens_after:,}}')").strip()
    assert legend.split()[-1] == frees
    heights = [lab.do(lab.page.evaluate(HEIGHT, part)) for part in ("frees", "swatch--frees")]
    assert heights == [3, 3]


@pytest.mark.req("W2")
def test_the_budget_grows_while_an_answer_streams(lab: Lab) -> None:
    """The answer is a part that gets wider before the cell ends, and is history afterwards."""
    running = lab.begin("%agent And in May?")
    lab.do(lab.page.wait_for_function(GROWS, arg=0, timeout=WAIT_MS))
    width = lab.do(lab.page.evaluate(WIDTH))
    lab.do(lab.page.wait_for_function(GROWS, arg=width, timeout=WAIT_MS))
    assert not running.done()
    lab.end(running)
    gone = "() => !document.querySelector('.am-budget__part--answer')"
    lab.do(lab.page.wait_for_function(gone, timeout=WAIT_MS))
    lab.shoot("budget grown", ".am-budget")
