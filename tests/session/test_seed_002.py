"""Budgets, storage and restoring, as far as they need a session."""

from __future__ import annotations

import ast
import asyncio
import logging
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.tokens import FRAME_TOKENS
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import FixedContextExceedsBudget
from agent_magics.core.messages import Assistant
from agent_magics.core.turns import Completed
from agent_magics.core.values import TokenUsage
from agent_magics.notebook.views.session_state import state_of
from tests.session.filling import (
    LONG,
    SMALL,
    SUMMARY,
    asked_for_summaries,
    filled,
    sql,
    summary,
    texts,
)

if TYPE_CHECKING:
    from tests.session.conftest import Bench

# Budget


@pytest.mark.req("C5")
def test_enabled_false_stops_the_automatic_one_and_neither_of_the_others(bench: Bench) -> None:
    """By hand and after an overflow it works as before."""

    async def scene() -> None:
        off = CompactionConfig(enabled=False, reserve_tokens=2_000, keep_recent_tokens=300)
        overflow = {"error": {"kind": "overflow"}}
        steps = ["still", overflow, summary(), "after", LONG, summary(SUMMARY + "\nagain")]
        session = await filled(bench, *steps, compaction=off)
        assert (await session.submit_turn(LONG)).text == "still"
        assert session.context_info().used > session.context_info().limits.threshold
        assert asked_for_summaries(bench) == 0
        assert (await session.submit_turn(LONG)).text == "after"
        assert (session.context_info().reason, asked_for_summaries(bench)) == ("overflow", 1)
        await session.submit_turn(LONG)
        assert (await session.compact()).checkpoint_id is not None
        assert (session.context_info().reason, asked_for_summaries(bench)) == ("manual", 2)

    asyncio.run(scene())


@pytest.mark.req("C6")
def test_a_count_of_another_request_falls_back_to_the_estimate(bench: Bench) -> None:
    """A server's count holds for exactly the request that it counted, for nothing else."""

    async def scene() -> None:
        counted = {"text": "fine", "usage": TokenUsage(input_tokens=777, output_tokens=1)}
        session = await bench.session(counted, counted, "other")
        await session.submit_turn("q")
        info = session.context_info()
        assert (info.source, info.last_measured) == ("estimated", 777)
        assert info.used == sum(info.parts.values()) != 777
        await session.submit_turn("q")
        await session.configure_slot("default", system_prompt="You are short.")
        assert session.context_info().source == "estimated"

    asyncio.run(scene())


@pytest.mark.req("C7", "dec34")
def test_fixed_parts_over_the_budget_are_a_clear_error(bench: Bench) -> None:
    """Each part with its tokens; no request, no history dropped."""

    async def scene() -> None:
        session = await filled(bench, system_instructions=("word " * 2_100,))
        before = session.messages()
        with pytest.raises(FixedContextExceedsBudget, match=r"system 2,\d{3} tokens"):
            await session.compact()
        assert asked_for_summaries(bench) == 0
        assert session.messages() == before

    asyncio.run(scene())


# Storage


@pytest.mark.req("C1", "E2", "C20.3")
def test_seqs_go_on_rising_after_a_compaction(bench: Bench) -> None:
    """No number is given twice, and what was there keeps its id, seq and words."""

    async def scene() -> None:
        session = await filled(bench, summary(), "one", "two")
        rows = sql(bench, "SELECT * FROM events WHERE session_id='s' ORDER BY seq")
        await session.compact()
        await session.submit_turn("next")
        await session.submit_turn("and next")
        after = sql(bench, "SELECT * FROM events WHERE session_id='s' ORDER BY seq")
        assert after[: len(rows)] == rows
        seqs = [row[0] for row in sql(bench, "SELECT seq FROM events ORDER BY seq")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert texts(session.messages())[-4:] == ["next", "one", "and next", "two"]

    asyncio.run(scene())


# Restoring


@pytest.mark.req("C3", "C17", "E18", "inv16", "C20.4")
def test_the_projection_is_the_same_field_by_field_after_a_restart(bench: Bench) -> None:
    """Messages, the request that would be sent, and what it weighs."""

    async def scene() -> None:
        session = await filled(bench, summary(), "tail")
        await session.compact()
        await session.submit_turn("more")
        before, info = session.next_request(), session.context_info()
        await session.close()
        again = await bench.resumed("s", **SMALL)
        assert again.next_request().request == before.request
        assert again.next_request().projection == before.projection
        assert again.context_info() == info

    asyncio.run(scene())


@pytest.mark.req("C3", "inv1", "C20.5")
def test_the_summary_and_the_raw_tail_do_not_repeat_each_other(bench: Bench) -> None:
    """What a summary stands for is not in the tail; there is one summary after two compactions."""

    async def scene() -> None:
        second = SUMMARY + "\nthe second"
        session = await filled(bench, summary(), f"{LONG} late", summary(second))
        await session.compact()
        await session.submit_turn(f"{LONG} prompt 3")
        await session.compact()
        await session.close()
        again = await bench.resumed("s", **SMALL)
        first, *tail = texts(again.messages())
        assert first.count("## Objective") == 1
        assert "the second" in first
        assert tail == [f"{LONG} prompt 3", f"{LONG} late"]

    asyncio.run(scene())


@pytest.mark.req("C13", "C20.7")
def test_what_was_added_during_the_summary_is_in_the_restored_tail(bench: Bench) -> None:
    """A message that came while the model summarised is there after a restart, as itself."""

    asked = threading.Event()

    def summed_up(_request: ChatRequest) -> dict[str, Any]:
        asked.set()
        return {"text": SUMMARY, "delay_s": 0.2}

    async def scene() -> None:
        session = await filled(bench, summed_up, "fine")
        turn = await session.send_message(LONG)
        await asyncio.to_thread(asked.wait, 5)
        await turn.steer("in euros, please")
        assert isinstance(await turn.join(), Completed)
        assert session.context_info().reason == "auto"
        await session.close()
        again = await bench.resumed("s", **SMALL)
        assert texts(again.messages())[-2:] == ["in euros, please", "fine"]

    asyncio.run(scene())


@pytest.mark.req("C17")
@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM checkpoints",
        "UPDATE checkpoints SET summary='', rendered=''",
        "UPDATE checkpoints SET first_retained_seq=99999",
        "UPDATE checkpoints SET reason='whim'",
    ],
    ids=["missing", "blank", "no such boundary", "unreadable"],
)
def test_a_missing_or_broken_checkpoint_gives_the_whole_raw_history(
    bench: Bench, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    """Everything is shown, no model is asked, and the log says why."""

    async def scene() -> None:
        session = await filled(bench, summary(), "fine")
        raw = session.messages()
        await session.compact()
        await session.close()
        sql(bench, harm)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            again = await bench.resumed("s", "fine", **SMALL)
        assert again.messages() == raw
        assert bench.provider.requests == []
        assert "the whole history is shown" in caplog.text
        assert "trains" not in caplog.text
        assert (await again.submit_turn("q")).text == "fine"

    asyncio.run(scene())


@pytest.mark.req("C17", "dec43", "C20.4")
def test_restoring_asks_no_provider_and_writes_nothing(bench: Bench) -> None:
    """Not a row is added, changed or gone; no timeline is built."""
    tables = ("events", "slots", "checkpoints", "drafts")

    async def scene() -> None:
        session = await filled(bench, summary())
        await session.compact()
        await session.close()
        before = [sql(bench, f"SELECT * FROM {table}") for table in tables]
        again = await bench.resumed("s", **SMALL)
        again.messages()
        again.context_info()
        assert bench.provider.requests == []
        assert [sql(bench, f"SELECT * FROM {table}") for table in tables] == before

    asyncio.run(scene())


@pytest.mark.req("dec5", "C3")
def test_private_state_goes_back_only_to_the_model_that_made_it(bench: Bench) -> None:
    """After a compaction and a restart as before; in no summary's source at all."""

    async def scene() -> None:
        thinking = {"text": LONG, "reasoning": "secretly, seven"}
        session = await filled(bench, thinking, thinking, summary(), turns=1)
        await session.submit_turn("old")
        await session.submit_turn("new")
        await session.compact()
        asked = next(r for r in bench.provider.requests if r.purpose == "compaction")
        assert not any("secretly" in str(message) for message in asked.messages)
        await session.close()
        again = await bench.resumed("s", "a", "b", **SMALL)
        await again.submit_turn("same model")
        await (await again.send_message("another", model="scripted:other")).join()
        same, other = bench.provider.requests
        for request, kept in ((same, ["secretly, seven"]), (other, [])):
            private = [m.reasoning for m in request.messages if isinstance(m, Assistant)]
            assert [reasoning.text for reasoning in private if reasoning] == kept

    asyncio.run(scene())


# What no test above names


@pytest.mark.req("C18", "C20.10")
def test_the_trigger_and_all_that_shows_numbers_use_one_budget(bench: Bench) -> None:
    """What `%context` and the views show is what the trigger compares, to the token."""

    async def scene() -> None:
        session = await filled(bench, summary(), "fine")
        info = session.context_info()
        budget = state_of(session).budget
        assert budget is not None
        assert (budget.used, budget.threshold) == (info.used, info.limits.threshold)
        weighing = {name: tokens for name, tokens in info.parts.items() if tokens}
        assert {part.name: part.tokens for part in budget.parts} == weighing
        prompt = "word " * (info.limits.threshold - info.used)
        await session.submit_turn(prompt)
        added = session.history()[-2].tokens + FRAME_TOKENS
        made = session.context_info()
        assert made.tokens_before == info.used + added > made.limits.threshold

    asyncio.run(scene())


@pytest.mark.req("C4", "C20.2", "C20.12")
def test_no_share_of_the_window_compacts_or_trims_anything(bench: Bench) -> None:
    """At 70 and at 90 percent nothing happens: one formula, reserve and window, and no other."""
    reserve = CompactionConfig(reserve_tokens=60, keep_recent_tokens=300)

    async def scene() -> None:
        settings: dict[str, Any] = {"compaction": reserve, "context_limit": 4_000}
        session = await filled(bench, *["ok"] * 40, summary(), turns=4, **settings)
        shares: list[float] = []
        while session.context_info().used + 60 < 3_940:
            await session.submit_turn("word " * 40)
            info = session.context_info()
            shares.append(info.used / info.limits.window)
            assert len(session.messages()) == 2 * len(session.turns())
        assert asked_for_summaries(bench) == 0
        assert info.checkpoint_id is None
        assert {round(share, 1) for share in shares} >= {0.7, 0.8, 0.9, 1.0}
        await session.submit_turn("word " * 100)
        assert asked_for_summaries(bench) == 1

    asyncio.run(scene())


@pytest.mark.req("C20.12")
def test_one_function_decides_and_one_way_compacts(root: Path) -> None:
    """The trigger's question is asked in one place, and only two places begin a compaction."""
    asking: dict[str, set[str]] = {"should_compact": set(), "compactor.compact": set()}
    for path in (root / "agent_magics").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                for name, places in asking.items():
                    if ast.unparse(node.func).endswith(name):
                        places.add(path.relative_to(root / "agent_magics").as_posix())
    assert asking == {
        "should_compact": {"session/compaction/trigger.py"},
        "compactor.compact": {
            "session/compaction/turn_compaction.py",
            "session/open/compaction_actions.py",
        },
    }


@pytest.mark.req("C20")
def test_every_acceptance_statement_is_named_by_a_test(root: Path) -> None:
    """All fourteen, in marks of tests that run everywhere: none only in a slow or skipped one."""
    named: set[str] = set()
    for path in (root / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(each) for each in node.decorator_list]
                if "pytest.mark.slow" not in marks:
                    named.update(re.findall(r"'(C20\.\d+)'", " ".join(marks)))
    assert named == {f"C20.{number}" for number in range(1, 15)}
