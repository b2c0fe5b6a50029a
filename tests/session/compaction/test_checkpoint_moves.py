"""Which checkpoint is active after an undo or a derive: one that tells of what is in view only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.config import CompactionConfig
from agent_magics.core.slots import DeriveStrategy, Focused
from agent_magics.session.session import Session
from tests.session.marking import LONG, MarkingModel, marks_of

if TYPE_CHECKING:
    from tests.session.conftest import Bench

WINDOW = 16_000
BY_HAND = CompactionConfig(enabled=False, keep_recent_tokens=50)


async def begun(bench: Bench, turns: int) -> tuple[Session, MarkingModel]:
    """Begin a session of marked turns: turn n has the marks 2n-1 (prompt) and 2n (answer)."""
    model = MarkingModel(WINDOW)
    steps = [model.answer] * 40
    session = await bench.session(*steps, context_limit=WINDOW, compaction=BY_HAND)
    await talk(session, model, turns)
    return session, model


async def talk(session: Session, model: MarkingModel, turns: int) -> None:
    for _ in range(turns):
        prompt = model.mark(LONG)
        model.begin(prompt)
        await session.submit_turn(prompt)


def marks(*turns: int) -> set[str]:
    return {f"[m{number}]" for turn in turns for number in (2 * turn - 1, 2 * turn)}


@pytest.mark.req("dec25", "inv1")
def test_an_undo_that_cuts_what_a_summary_tells_drops_the_summary(bench: Bench) -> None:
    """What leaves the view while a rewind is taken back is told by no summary either."""

    async def scene() -> None:
        session, _ = await begun(bench, 4)
        await session.compact()
        gone = await session.rewind(to_seq=session.turns()[0].last_seq)
        assert marks_of(session.messages()) == marks(1)
        await session.rewind(to_seq=0, undoes=gone)
        assert marks_of(session.messages()) == marks(2, 3, 4)

    asyncio.run(scene())


@pytest.mark.req("dec18", "dec25", "inv1")
def test_an_undo_before_a_later_rewind_brings_no_summary_of_what_that_one_took(
    bench: Bench,
) -> None:
    """Of two rewinds the older one is taken back: what the newer one took stays out."""

    async def scene() -> None:
        session, _ = await begun(bench, 5)
        await session.compact()
        older = await session.rewind(to_seq=session.turns()[3].last_seq)
        await session.rewind(to_seq=session.turns()[0].last_seq)
        await session.rewind(to_seq=session.turns()[0].last_seq, undoes=older)
        assert marks_of(session.messages()) == marks(1, 5)

    asyncio.run(scene())


@pytest.mark.req("dec18", "inv1", "inv11")
def test_a_child_has_no_summary_of_what_its_parent_brought_back_later(bench: Bench) -> None:
    """A child sees its parent as it stood at the fork, and so does the summary it begins with."""

    async def scene() -> None:
        session, model = await begun(bench, 3)
        gone = await session.rewind(to_seq=session.turns()[0].last_seq)
        await talk(session, model, 1)
        await session.rewind(to_seq=session.turns()[-1].last_seq, undoes=gone)
        await session.compact()
        assert marks_of(session.messages()) == marks(1, 2, 3, 4)
        await session.derive_slot("child", "default", at_seq=session.turns()[-1].last_seq)
        assert marks_of(session.messages("child")) == marks(1, 4)
        fates = session.fates("child")
        assert "summarised" not in fates.values()

    asyncio.run(scene())


@pytest.mark.req("dec19", "inv1", "inv18")
def test_a_focused_child_has_no_summary_of_what_its_focus_hides(bench: Bench) -> None:
    """Nothing before the first inherited message is ever seen, told in other words neither."""

    async def scene() -> None:
        session, model = await begun(bench, 3)
        await session.compact()
        early = session.turns()[2].last_seq
        await talk(session, model, 3)
        await session.compact()
        kept = DeriveStrategy.focused(Focused(recent_messages=4))
        await session.derive_slot("child", "default", kept, at_seq=early)
        assert marks_of(session.messages("child")) == marks(2, 3)

    asyncio.run(scene())
