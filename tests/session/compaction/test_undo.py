"""A compaction that was undone: nothing compacts the slot by itself until a turn fits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import CompactionConfig
from agent_magics.session.session import Session
from tests.session.filling import asked_for_summaries, summary

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SUMMARY = summary()
LONG = "They talked about the price of trains in May, at length. " * 22  # about 310 tokens
SMALL: dict[str, Any] = {
    "context_limit": 4_000,
    "compaction": CompactionConfig(reserve_tokens=2_000),
}


async def undone(bench: Bench, *steps: Any) -> Session:
    """Make a session of four long turns over its threshold, whose compaction was undone."""
    session = await bench.session(
        *[f"{LONG}{n}" for n in range(3)], SUMMARY, "one", *steps, session_id="s", **SMALL
    )
    for n in range(3):
        await session.submit_turn(f"{LONG}{n}")
    before = session.messages()
    await session.submit_turn(LONG)
    assert session.context_info().checkpoint_id is not None
    assert await session.undo_compaction() is None
    assert session.messages()[: len(before)] == before
    return session


@pytest.mark.req("dec37", "N5")
def test_an_undone_compaction_holds_the_trigger(bench: Bench) -> None:
    """The raw history is sent; after a turn that fits, the trigger acts again."""

    async def scene() -> None:
        session = await undone(bench, "two", "fits", *[LONG] * 3, SUMMARY, "three")
        await session.submit_turn("next")
        assert asked_for_summaries(bench) == 1
        await session.rewind(to_seq=session.turns()[0].last_seq)
        await session.submit_turn("fits")
        for _ in range(3):
            await session.submit_turn(LONG)
        assert asked_for_summaries(bench) == 2

    asyncio.run(scene())


@pytest.mark.req("dec37", "inv16", "E18")
@pytest.mark.parametrize("turns", [0, 1], ids=["at once", "after a turn that didn't fit"])
def test_the_hold_outlives_a_restart(bench: Bench, turns: int) -> None:
    """A new process leaves the slot alone as the old one did, until a turn of it fits."""

    async def scene() -> None:
        session = await undone(bench, *["two"] * turns)
        for _ in range(turns):
            await session.submit_turn("short")
        held = session._open_session.loaded.held
        assert len(held) == 1
        await session.close()
        session = await bench.resumed("s", "over", "fits", *[LONG] * 3, SUMMARY, "over", **SMALL)
        assert session._open_session.loaded.held == held
        await session.submit_turn(LONG)
        assert asked_for_summaries(bench) == 0
        await session.rewind(to_seq=session.turns()[0].last_seq)
        await session.submit_turn("fits")
        assert session._open_session.loaded.held == set()
        await session.close()
        session = await bench.resumed("s", *[LONG] * 3, SUMMARY, "over", **SMALL)
        assert session._open_session.loaded.held == set()
        for _ in range(4):
            await session.submit_turn(LONG)
        assert asked_for_summaries(bench) == 1

    asyncio.run(scene())


@pytest.mark.req("dec37", "C15")
def test_an_overflow_ends_the_hold(bench: Bench) -> None:
    """What a server refuses is summarised, and the slot is compacted by itself from then on."""
    refused = {"error": {"kind": "overflow"}}

    async def scene() -> None:
        session = await undone(bench, refused, SUMMARY, "fine")
        await session.submit_turn("next")
        assert asked_for_summaries(bench) == 2
        assert session.context_info().checkpoint_id is not None
        assert session._open_session.loaded.held == set()

    asyncio.run(scene())


@pytest.mark.req("dec37", "C15")
def test_a_request_over_the_window_ends_the_hold(bench: Bench) -> None:
    """It is an overflow that nobody had to be asked about: summarised, not just cut."""

    async def scene() -> None:
        session = await undone(bench, LONG, SUMMARY, "fine")
        await session.submit_turn(LONG)
        assert asked_for_summaries(bench) == 1
        await session.submit_turn(LONG * 5)
        assert asked_for_summaries(bench) == 2
        assert session.context_info().degraded is False

    asyncio.run(scene())


@pytest.mark.req("dec37", "C14")
def test_a_compaction_by_hand_ends_the_hold(bench: Bench) -> None:
    """Who compacts wants it compacted; other slots were never held."""

    async def scene() -> None:
        session = await undone(bench, SUMMARY)
        await session.derive_slot("child", "default")
        held = session._open_session.loaded.held
        assert held == {session._open_session.loaded.slot("default").uid}
        await session.compact()
        assert session._open_session.loaded.held == set()

    asyncio.run(scene())
