"""When the automatic trigger acts, and when it rests."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.turns import Completed
from tests.session.extracting import warned
from tests.session.filling import LONG, SUMMARY, asked_for_summaries, filled, summary
from tests.session.telling import told

if TYPE_CHECKING:
    from tests.session.conftest import Bench

THRESHOLD = 2_000
WINDOW = 4_000


def words(count: int) -> str:
    """Give a text of about so many tokens."""
    return "word " * count


@pytest.mark.req("dec36", "C12", "C14")
def test_an_automatic_summary_that_hardly_helps_is_refused(bench: Bench) -> None:
    """Under the threshold, yet less than a tenth shorter: told, and nothing changed."""

    async def scene() -> None:
        poor = summary(f"{SUMMARY}\n{words(400)}")
        session = await filled(bench, poor, "fine", turns=2)
        _, outcome = await told(session, words(THRESHOLD - session.context_info().used + 20))
        said = warned(outcome)
        assert "would hardly make the context smaller" in said
        before, after = (int(number.replace(",", "")) for number in re.findall(r"\d,\d{3}", said))
        assert before * 0.9 < after < THRESHOLD < before
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("dec36")
def test_the_trigger_rests_after_a_compaction_that_worked(bench: Bench) -> None:
    """Over the threshold again, it waits until a twentieth of the window was added."""

    async def scene() -> None:
        long = summary(f"{SUMMARY}\n{words(850)}")
        session = await filled(bench, long, "fine", "again", summary(), "third")
        await told(session, LONG)
        after = session.context_info().tokens_after
        assert after is not None
        assert after <= THRESHOLD

        over = THRESHOLD - session.context_info().used + 20
        _, outcome = await told(session, words(over))
        assert isinstance(outcome, Completed)
        assert THRESHOLD < session.context_info().used < after + WINDOW // 20
        assert (asked_for_summaries(bench), outcome.warnings) == (1, ())

        await told(session, words(WINDOW // 20))
        assert asked_for_summaries(bench) == 2

    asyncio.run(scene())
