"""The budget while a turn streams, in a real session, and what a compaction of it would free."""

from __future__ import annotations

import asyncio

import pytest

from agent_magics.core.config import CompactionConfig
from agent_magics.core.turns import TextChunk
from agent_magics.notebook.views.session_state import BudgetState, budget_now
from agent_magics.providers.scripted import Step
from tests.session.conftest import Bench

SMALL = CompactionConfig(keep_recent_tokens=300)


def part(budget: BudgetState, name: str) -> int:
    return next((one.tokens for one in budget.parts if one.name == name), 0)


@pytest.mark.req("W2")
def test_an_answer_that_streams_fills_the_budget(bench: Bench) -> None:
    """It is a part of its own that grows, and history once it is recorded: never both."""

    async def scene() -> None:
        session = await bench.session(Step(text="word " * 40, chunks=40, chunk_delay_s=0.002))
        async with session.submit_turn_stream("say") as turn:
            seen = [
                budget_now(session, "default")
                async for event in turn
                if isinstance(event.payload, TextChunk)
            ]
        seen = [
            budget for budget in seen if part(budget, "answer")
        ]  # the last may be history by now
        answers = [part(budget, "answer") for budget in seen]
        assert len(answers) > 2
        assert answers == sorted(answers)
        assert answers[0] < answers[-1]
        assert len({budget.used - part(budget, "answer") for budget in seen}) == 1
        after = budget_now(session, "default")
        assert part(after, "answer") == 0
        assert part(after, "history") > part(seen[0], "history")

    asyncio.run(scene())


@pytest.mark.req("W2", "C18")
def test_a_compaction_is_foreseen_while_nothing_changes(bench: Bench) -> None:
    """It tells what a dry run tells; None where there is nothing to compact."""

    async def scene() -> None:
        session = await bench.session(*["long answer " * 200] * 4, compaction=SMALL)
        assert session.foreseen_compaction() is None
        for _ in range(3):
            await session.submit_turn("again")
        plan = session.foreseen_compaction()
        assert plan == await session.compact(dry_run=True)
        assert plan is not None
        assert plan.tokens_after < plan.tokens_before

    asyncio.run(scene())
