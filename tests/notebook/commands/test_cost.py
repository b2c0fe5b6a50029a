"""`%cost`, prices and limits on spending, as a notebook shows and sets them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.money import Spent
from agent_magics.core.turns import Reply
from agent_magics.notebook.cell.display import footer
from agent_magics.notebook.commands.cost import cost_html, cost_rows, cost_text
from agent_magics.session.state.spending import Spending
from tests.notebook.conftest import Notebook

Script = Callable[..., None]


def spending(slot: str | None, *, deleted: bool = False, **spent: Any) -> Spending:
    purpose, model = spent.pop("purpose", "turn"), spent.pop("model", "openai:m")
    return Spending(
        slot=slot, is_deleted=deleted, model=model, purpose=purpose, spent=Spent(**spent)
    )


CHURN = [
    spending(
        "default",
        requests=12,
        input_tokens=1_240_000,
        cached_tokens=880_000,
        output_tokens=88_000,
        usd=3.1,
        priced=12,
    ),
    spending(
        "default",
        purpose="compaction",
        requests=1,
        input_tokens=90_000,
        output_tokens=900,
        usd=0.024,
        priced=1,
    ),
    spending(
        "option-a",
        deleted=True,
        model="ollama:llama",
        requests=3,
        input_tokens=900,
        output_tokens=60,
        unpriced_tokens=960,
        uncounted=1,
    ),
    spending("option-b", replayed=4),
    spending(None, purpose="memory", model="x:y", requests=2, uncounted=2),
]


UNPRICED = ("900", "", "60", "not known")
UNCOUNTED = ("not known", "", "not known", "not known")
SUM = ("1,330,900", "66 %", "88,960", "$3.12 and more")


@pytest.mark.req("N6", "N13", "P7", "dec42")
def test_a_sum_keeps_what_is_not_known_apart() -> None:
    """A price that isn't known is never 0; deleted slots and replays are told."""
    rows = cost_rows(CHURN)
    assert rows == [
        ("default", "openai:m", "turns", "12", "1,240,000", "71 %", "88,000", "$3.10"),
        ("default", "openai:m", "compaction", "1", "90,000", "", "900", "$0.024"),
        ("option-a (deleted)", "ollama:llama", "turns", "3 (1 not counted)", *UNPRICED),
        ("option-b", "openai:m", "turns", "4 replayed", "", "", "", ""),
        ("(session)", "x:y", "memories", "2 not counted", *UNCOUNTED),
        ("all", "", "", "18 + 4 replayed (3 not counted)", *SUM),
    ]
    text, html = cost_text(rows).splitlines(), cost_html(rows)
    assert text[0].split() == [
        "slot",
        "model",
        "for",
        "requests",
        "input",
        "cached",
        "output",
        "cost",
    ]
    assert text[1].index("12") == text[2].index(" 1 ")  # right-aligned
    assert html.count("<tr>") == len(rows) + 1
    narrow = cost_text(cost_rows([CHURN[2], CHURN[3]]), width=72)
    assert narrow.splitlines()[0].split() == [
        "slot",
        "model",
        "requests",
        "input",
        "output",
        "cost",
    ]
    assert "<script>" not in cost_html([("<script>",) * len(rows[0])])


@pytest.mark.req("N6")
def test_what_all_was_for_is_not_said() -> None:
    """Turns only: no column "for", as text and as HTML; its numbers stay to the right."""
    turns = cost_rows([CHURN[0], CHURN[3]])
    assert " for " not in cost_text(turns)
    assert ">for<" not in cost_html(turns)
    assert ">for<" in cost_html(cost_rows(CHURN))
    assert 'right">requests<' in cost_html(turns)


@pytest.mark.req("N13")
@pytest.mark.parametrize("is_exact", [True, False])
def test_a_price_stands_in_the_footer_where_it_is_known(*, is_exact: bool) -> None:
    """Not where nobody is there: prices change; and never as nothing."""
    reply = Reply(text="x", seq=1, slot_id="default", turn_id="t", model="openai:m", cost_usd=0.004)
    unknown = Reply(text="x", seq=1, slot_id="default", turn_id="t", model="openai:m")
    assert ("· $0.004" in footer(reply, is_exact=is_exact)) is is_exact
    assert "$" not in footer(unknown, is_exact=is_exact)


@pytest.fixture
def priced(notebook: Notebook, script: Script, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A notebook whose model counts a million tokens a request, at a dollar and a cent."""
    usage = {"input_tokens": 1_000_000, "output_tokens": 1_000, "cached_tokens": 500_000}
    script(*[{"text": f"answer {number}", "usage": usage} for number in range(1, 9)])
    model = os.environ["AGENT_MAGICS_MODEL"]
    notebook.run("%reload_ext agent_magics")
    notebook.run(f"%config AgentMagics.prices = {{{model!r}: [1.0, 10.0]}}")
    return notebook


@pytest.mark.req("N6", "N13", "P7")
def test_cost_tells_what_each_slot_spent(priced: Notebook) -> None:
    """Deleted slots included; the context's last line is the slot's own sum."""
    priced.run("%agent one")
    priced.run("%slot new option --switch")
    priced.run("%agent two")
    priced.run("%agent three")
    priced.run("%slot delete option")
    lines = [line.split() for line in priced.run("%cost").splitlines()]
    model = "scripted:script.yaml"
    assert lines[0] == ["slot", "model", "requests", "input", "cached", "output", "cost"]
    assert lines[1:] == [
        ["default", model, "1", "1,000,000", "50", "%", "1,000", "$1.01"],
        ["option", "(deleted)", model, "2", "2,000,000", "50", "%", "2,000", "$2.02"],
        ["all", "3", "3,000,000", "50", "%", "3,000", "$3.03"],
    ]
    last = priced.run("%context").rstrip().splitlines()[-1]
    assert last.startswith("spent in this slot: 1 M in (50 % cached), 1 k out")


@pytest.mark.req("N6")
def test_cost_gives_the_requests_as_a_frame(priced: Notebook) -> None:
    """A row each, with its price."""
    assert "asked no model yet" in priced.run("%cost")
    priced.run("%agent one")
    priced.run("df = %cost --df")
    frame = priced.shell.user_ns["df"]
    assert frame["cost_usd"].tolist() == [pytest.approx(1.01)]


@pytest.mark.req("N13", "dec57", "N10")
def test_a_limit_ends_the_turn_that_would_pass_it(
    priced: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set by `%config` or the environment, in money or tokens, and lifted the same way."""
    priced.run("%agent one")
    priced.run('%config AgentMagics.max_cost_per_session = "$1"')
    said = priced.run("%agent two", fails=True)
    assert "$1.01 of $1.00" in said
    assert len(said.splitlines()) == 1
    priced.run('%config AgentMagics.max_cost_per_session = "3m tokens"')
    priced.run("%agent three")
    priced.run('%config AgentMagics.max_cost_per_session = ""')
    monkeypatch.setenv("AGENT_MAGICS_MAX_COST_PER_SESSION", "2M tokens")
    priced.run("%config AgentMagics.context_limit = 100_000")
    assert "2,002,000 of 2,000,000 tokens" in priced.run("%agent four", fails=True)


@pytest.mark.req("N13", "N10")
def test_a_limit_of_the_environment_that_cannot_be_read_is_told(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next use, in one sentence, before anything is sent."""
    monkeypatch.setenv("AGENT_MAGICS_MAX_COST_PER_TURN", "a lot")
    said = notebook.run("%agent one", fails=True)
    assert said.startswith('The spending limit "a lot" can\'t be read')
    assert len(said.splitlines()) == 1


@pytest.mark.req("N6", "P4")
def test_what_nobody_was_asked_for_is_no_request(
    priced: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording without an answer; what a provider without a key refuses."""
    monkeypatch.chdir(tmp_path)
    priced.run("%agent one")
    priced.run('%config AgentMagics.recording = "replay"')
    assert "There is no recording" in priced.run("%agent two", fails=True)
    priced.run('%config AgentMagics.recording = "off"')
    assert "needs a key" in priced.run("%agent --model groq:m three", fails=True)
    (line,) = [line for line in priced.run("%cost").splitlines() if "scripted" in line]
    assert line.split()[2] == "1"
    assert "not counted" not in priced.said
