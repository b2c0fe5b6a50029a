"""What `context_info` tells: each number, and the same that the trigger goes by."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.budget import PARTS, ContextInfo
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.events import Usage
from agent_magics.core.slots import ContextBudget, DeriveStrategy, Focused
from agent_magics.core.turns import Completed, ContextCompacted
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.session.filling import summary

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 22  # about 290 tokens
SUMMARY = summary()


@tool
def look() -> str:
    """Look."""
    return "seen"


class Watched:
    """A session whose scripted model looks at `context_info` while it answers."""

    def __init__(self) -> None:
        self.seen: list[ContextInfo] = []
        self.session: Session | None = None

    def says(self, text: str) -> Any:
        def answer(_: ChatRequest) -> dict[str, Any]:
            assert self.session is not None
            self.seen.append(self.session.context_info())
            return {"text": text}

        return answer


@pytest.mark.req("C18", "C4", "S15")
def test_each_number_is_told(bench: Bench) -> None:
    """Limits as set and as they act, parts that sum up, what is left, where the count is from."""

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "look"}]}, "fine", tools=[look], context_limit=8_000
        )
        await session.memory.set("city", "Bergen")
        await session.submit_turn(LONG)
        info = session.context_info()
        limits = info.limits
        assert (limits.window, limits.reserve, limits.configured_reserve) == (8_000, 4_000, 16_384)
        assert limits.threshold == limits.window - limits.reserve
        assert (limits.keep, limits.configured_keep) == (2_000, 20_000)
        assert set(info.parts) == set(PARTS)
        for part in ("system", "tools", "memories", "history", "tool_results"):
            assert info.parts[part] > 0
        assert info.used == sum(info.parts.values())
        assert info.remaining == limits.threshold - info.used
        assert info.source == "estimated"
        assert (info.checkpoint_id, info.degraded, info.tokens_before) == (None, None, None)

    asyncio.run(scene())


@pytest.mark.req("C16", "S15", "dec29")
def test_each_share_and_its_use_are_told(bench: Bench) -> None:
    """The window's proportions, or the slot's own budget, beside what the next request uses."""

    async def scene() -> None:
        calling = {"calls": [{"name": "look"}]}
        session = await bench.session(calling, LONG, tools=[look], context_limit=8_000)
        await session.submit_turn(LONG)
        info = session.context_info()
        shares = {share.name: share for share in info.shares}
        assert {name: share.tokens for name, share in shares.items()} == {
            "system": 500,
            "history": 5_000,
            "tools": 625,
            "tool_results": 1_250,
        }
        assert shares["history"].used == info.parts["history"] > 500
        assert shares["tool_results"].used == info.parts["tool_results"] > 0
        assert sum(share.used for share in info.shares) == info.used
        await session.configure_slot("default", budget=ContextBudget(tool_results=3))
        assert session.context_info().shares[-1].tokens == 3

    asyncio.run(scene())


@pytest.mark.req("C18", "C6", "E18")
def test_the_trigger_goes_by_the_numbers_that_are_shown(bench: Bench) -> None:
    """What a person sees while the turn runs is what was compared, before and after."""
    watched = Watched()
    small: dict[str, Any] = {
        "context_limit": 4_000,
        "compaction": CompactionConfig(reserve_tokens=2_000),
    }

    async def scene() -> None:
        steps = [LONG, LONG, LONG, SUMMARY, watched.says("fine")]
        session = watched.session = await bench.session(*steps, **small)
        for _ in range(3):
            await session.submit_turn(LONG)
        before = session.context_info()
        assert before.used <= before.limits.threshold
        turn = await session.send_message(LONG)
        events = [event.payload async for event in turn]
        outcome = await turn.join()
        assert isinstance(outcome, Completed)
        (compacted,) = [event for event in events if isinstance(event, ContextCompacted)]
        (seen,) = watched.seen
        assert compacted.tokens_before > seen.limits.threshold >= compacted.tokens_after
        assert (seen.tokens_before, seen.tokens_after) == (
            compacted.tokens_before,
            compacted.tokens_after,
        )
        assert seen.used == compacted.tokens_after == outcome.reply.context_tokens
        assert (seen.reason, seen.degraded, seen.turns_behind) == ("auto", False, compacted.turns)
        assert seen.limits.threshold == outcome.reply.context_threshold

    asyncio.run(scene())


@pytest.mark.req("C18", "C6")
def test_a_count_of_this_very_request_is_told_as_measured(bench: Bench) -> None:
    """The same request has the server's number; after a word more it is an estimate again."""

    async def scene() -> None:
        session = await bench.session(LONG, "two")
        await session.submit_turn(LONG)
        prepared = session.next_request()
        counted = Usage(
            purpose="turn",
            provider="scripted",
            model="test",
            input_tokens=700,
            estimated_input_tokens=prepared.info.estimate,
            digest=prepared.digest,
        )
        slot, turn = session._open_session.loaded.slot(None), session.turns()[-1].turn_id
        await session._open_session.recorder.append([counted], slot_uid=slot.uid, turn_id=turn)
        info = session.context_info()
        assert (info.source, info.used, info.last_measured) == ("measured", 700, 700)
        assert info.remaining == info.limits.threshold - 700
        await session.submit_turn("other")
        assert session.context_info().source == "estimated"
        assert session.context_info().factor > 1

    asyncio.run(scene())


@pytest.mark.req("C18", "dec19", "C17")
def test_a_checkpoint_that_is_not_in_use_is_not_told(bench: Bench) -> None:
    """A focused child doesn't see its parent's summary, so nothing is said of one."""

    async def scene() -> None:
        session = await bench.session(
            LONG, LONG, LONG, SUMMARY, compaction=CompactionConfig(keep_recent_tokens=50)
        )
        for _ in range(3):
            await session.submit_turn(LONG)
        await session.compact()
        await session.derive_slot(
            "child", "default", DeriveStrategy.focused(Focused(recent_messages=1))
        )
        assert session.context_info().checkpoint_id is not None
        info = session.context_info("child")
        assert info.parts["summary"] == 0
        assert (info.checkpoint_id, info.tokens_after, info.turns_behind) == (None, None, 0)

    asyncio.run(scene())
