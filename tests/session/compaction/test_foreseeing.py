"""A dry run's estimate, beside what the compaction then says that it did."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.config import CompactionConfig
from agent_magics.core.slots import Focused
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from tests.session.conftest import Bench

WORDS = "They talked about the price of trains in May, at length. "
LONG = WORDS * 22  # about 290 tokens
ROWS = "a row of the table " * 300  # about 1,500 tokens: one result is a whole share
KEEP_LITTLE: dict[str, Any] = {"compaction": CompactionConfig(keep_recent_tokens=50)}
BRIEF = "\n".join(f"## {heading}\nShort." for heading in SUMMARY_HEADINGS)


@tool
def dump(n: int) -> str:
    """Dump."""
    return f"{n} {ROWS}"


def dumps(n: int) -> tuple[dict[str, Any], str]:
    return {"calls": [{"name": "dump", "arguments": {"n": n}}]}, f"answer {n}"


def summary(text: str) -> dict[str, Any]:
    return {"text": text, "purpose": "compaction"}


async def planned_and_done(session: Session) -> tuple[CompactionOutcome, CompactionOutcome]:
    plan = await session.compact(dry_run=True)
    assert plan.checkpoint_id is None
    return plan, await session.compact()


def assert_foreseen(plan: CompactionOutcome, done: CompactionOutcome, share: float) -> None:
    """Fail where the plan isn't what was done, or misses its tokens by a share of the request."""
    assert plan.tokens_before == done.tokens_before
    for name in ("slot_id", "summarised_turns", "kept_turns", "first_retained_seq"):
        assert getattr(plan, name) == getattr(done, name)
    assert abs(plan.tokens_after - done.tokens_after) <= share * done.tokens_before


@pytest.mark.req("C14", "C16", "N5")
@pytest.mark.parametrize("window", [9_000, 128_000], ids=["clipped", "whole"])
def test_a_plan_foresees_what_clipped_output_leaves(bench: Bench, window: int) -> None:
    """Output that is sent shortened counts as it is sent, before and after."""

    async def scene() -> None:
        steps = [step for n in range(6) for step in dumps(n)]
        session = await bench.session(
            *steps,
            summary(f"{BRIEF}\n{WORDS * 135}"),
            tools=[dump],
            context_limit=window,
            **KEEP_LITTLE,
        )
        for n in range(6):
            await session.submit_turn(f"dump {n}")
        assert bool(session.context_info().clipped_results) == (window == 9_000)
        plan, done = await planned_and_done(session)
        assert_foreseen(plan, done, 0.1)

    asyncio.run(scene())


@pytest.mark.req("C14", "C9", "N5")
def test_a_plan_foresees_a_second_compaction(bench: Bench) -> None:
    """The summary that is replaced counts too, and the answers of a focused slot that stay."""

    async def scene() -> None:
        session = await bench.session(
            *[f"{LONG}{n}" for n in range(4)],
            summary(f"{BRIEF}\n{LONG}"),
            *[f"{LONG}{n}" for n in range(4)],
            summary(f"{BRIEF}\n{LONG}{WORDS * 20}"),
            **KEEP_LITTLE,
        )
        for n in range(4):
            await session.submit_turn(f"{LONG}{n}")
        assert_foreseen(*await planned_and_done(session), 0.1)
        for n in range(4):
            await session.submit_turn(f"{LONG}{n}")
        assert_foreseen(*await planned_and_done(session), 0.1)

    asyncio.run(scene())


@pytest.mark.req("C14", "C6", "N5")
def test_a_plan_foresees_with_the_factor_of_the_model(bench: Bench) -> None:
    """What servers count is learnt; an estimate of the summary is multiplied by it as well."""

    async def scene() -> None:
        counted = {"text": LONG, "usage": {"input_tokens": 4_000, "output_tokens": 9}}
        session = await bench.session(
            *[LONG] * 4, counted, summary(f"{BRIEF}\n{WORDS * 40}"), **KEEP_LITTLE
        )
        for n in range(5):
            await session.submit_turn(f"{LONG}{n}")
        assert session.context_info().factor > 1.3
        assert_foreseen(*await planned_and_done(session), 0.1)

    asyncio.run(scene())


@pytest.mark.req("C14", "dec21", "N5")
def test_a_plan_foresees_what_a_focused_slot_sends(bench: Bench) -> None:
    """There some of what is summarised wasn't sent: the request shrinks less."""

    async def scene() -> None:
        session = await bench.session(
            *[f"{LONG}{n}" for n in range(8)],
            summary(f"{BRIEF}\n{WORDS * 70}"),
            **KEEP_LITTLE,
        )
        for n in range(8):
            await session.submit_turn(f"{LONG}{n}")
        await session.configure_slot("default", mode=Focused(recent_messages=14))
        plan, done = await planned_and_done(session)
        assert_foreseen(plan, done, 0.1)

    asyncio.run(scene())
