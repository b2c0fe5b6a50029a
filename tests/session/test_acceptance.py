"""What an agent must be able to do that belongs to no other file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import CompactError
from agent_magics.core.turns import Completed, ContextCompacted, Failed
from agent_magics.session.session import Session
from tests.session.filling import SUMMARY

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 22
SMALL = {"context_limit": 4_000, "compaction": CompactionConfig(reserve_tokens=2_000)}
OVERFLOW = {"error": {"kind": "overflow"}}


def written(text: str) -> dict[str, Any]:
    return {"text": text, "purpose": "compaction"}


async def talked(bench: Bench, *steps: Any) -> Session:
    """Hold three long turns; the next one passes the threshold."""
    session = await bench.session(
        *[f"{LONG} {n}" for n in range(3)], *steps, session_id="s", **SMALL
    )
    for n in range(3):
        await session.submit_turn(f"{LONG} prompt {n}")
    return session


@pytest.mark.req("E20.2", "E18", "inv16")
@pytest.mark.parametrize(
    ("steps", "is_degraded"),
    [
        ((written(SUMMARY), "fine"), False),
        ((OVERFLOW, written(""), "fine"), True),
    ],
    ids=["summary", "degraded"],
)
def test_what_was_compacted_is_resumed_as_it_was_live(
    bench: Bench, steps: tuple[Any, ...], *, is_degraded: bool
) -> None:
    """The same messages, byte for byte, the first of them the same reference."""

    async def scene() -> None:
        session = await talked(bench, *steps)
        turn = await session.send_message("and now?" if is_degraded else f"{LONG} and now?")
        events = [event.payload async for event in turn]
        assert isinstance(await turn.join(), Completed)
        made = [e for e in events if isinstance(e, ContextCompacted)]
        assert [e.degraded for e in made] == [is_degraded]
        live = session.messages()
        assert "[Conversation summary]" in str(live[0])
        await session.close()
        again = await bench.resumed("s", **SMALL)
        assert again.messages() == live
        assert bench.provider.requests == []

    asyncio.run(scene())


@pytest.mark.req("E20.3", "E6")
@pytest.mark.parametrize("reads", ["all", "none", "one", "twice"])
def test_the_outcome_comes_whoever_reads_the_events(bench: Bench, reads: str) -> None:
    """Read to the end, not at all, left half-way, or again: `join` gives the same, as often."""

    async def scene() -> None:
        session = await bench.session("one two three")
        turn = await session.send_message("go")
        if reads != "none":
            async for _ in turn:
                if reads == "one":
                    break
        if reads == "twice":
            async for _ in turn:
                raise AssertionError("the events were read")
        first, second = await turn.join(), await turn.join()
        assert isinstance(first, Completed)
        assert first is second
        assert first.reply.text == "one two three"

    asyncio.run(scene())


@pytest.mark.req("E20.10", "E19", "C15", "dec31")
def test_an_overflow_that_nothing_helps_ends_in_compact_error(bench: Bench) -> None:
    """Summary and omission were tried; the turn fails with what fills the window, and goes on."""

    async def scene() -> None:
        session = await talked(bench, OVERFLOW, written(""), OVERFLOW, "next")
        outcome = await (await session.send_message("and?")).join()
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, CompactError)
        assert outcome.error.code == "COMPACT_ERROR"
        assert "history" in outcome.error.message
        assert [r.purpose for r in bench.provider.requests[-3:]] == ["turn", "compaction", "turn"]
        assert (await session.submit_turn("short")).text == "next"

    asyncio.run(scene())
