"""What a chain of compactions can lose: only what its summaries leave out, or what is recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.clipping import clip_results
from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.source import head_and_tail
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.events import Metadata
from agent_magics.core.messages import ToolResult, User, text_of
from agent_magics.core.ports import SessionState
from agent_magics.ledger.store import SqlStore
from benchmarks.facts import facts_in

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SUMMARY = "\n".join(f"## {heading}\nnone" for heading in SUMMARY_HEADINGS)
WORDS = "many words about tea and ports "


def markers(state: SessionState) -> list[dict[str, Any]]:
    """Give what the ledger says of each compaction."""
    return [
        event.payload.value
        for event in state.events
        if isinstance(event.payload, Metadata) and event.payload.key == "context_compaction"
    ]


async def stored(bench: Bench, session_id: str) -> SessionState:
    store = SqlStore(bench.path)
    try:
        state = await store.load(session_id)
    finally:
        await store.aclose()
    assert state is not None
    return state


def asked(request: ChatRequest) -> str:
    """Give the words of a compaction's request."""
    last = request.messages[-1]
    assert isinstance(last, User)
    return text_of(last.content)


@pytest.mark.req("C10")
def test_what_the_summariser_was_not_given_is_recorded(bench: Bench) -> None:
    """The ledger has how many messages the source had, left out and cut, as the model was told."""
    step = {"text": SUMMARY, "purpose": "compaction"}
    how: dict[str, Any] = {
        "context_limit": 6_000,
        "compaction": CompactionConfig(enabled=False, keep_recent_tokens=100),
    }

    async def scene() -> None:
        session = await bench.session(*["yes"] * 6, step, session_id="s", **how)
        for number in range(5):
            await session.submit_turn(f"{number}: {WORDS * 180}")
        await session.submit_turn("and now?")
        await session.compact()
        (marker,) = markers(await stored(bench, "s"))
        source = marker["source"]
        assert source["messages"] == 10
        assert source["omitted"] > 0
        assert source["shortened"] == 1
        assert source["is_previous_shortened"] is False
        (request,) = [r for r in bench.provider.requests if r.purpose == "compaction"]
        told = asked(request)
        assert f"has 10 messages; the oldest {source['omitted']} don't fit" in told
        assert told.count("User: ") + told.count("Assistant: ") == 10 - source["omitted"]

    asyncio.run(scene())


@pytest.mark.req("C14", "C15", "dec36")
def test_a_failed_summary_rests_no_longer_than_the_context_is_as_large(bench: Bench) -> None:
    """A failure over the window is no reason to leave all later turns out without a summary."""
    failed = {"error": "server", "purpose": "compaction"}
    written = {"text": SUMMARY, "purpose": "compaction"}

    async def scene() -> None:
        steps = [*["yes"] * 10, failed, written]
        session = await bench.session(*steps, session_id="s", context_limit=6_000)
        for number in range(3):  # the third is over the window: a summary fails, turns are left out
            await session.submit_turn(f"{number}: {WORDS * 350}")
        for number in range(5):
            await session.submit_turn(f"{number}: {WORDS * 100}")
        degraded = [marker["degraded"] for marker in markers(await stored(bench, "s"))]
        assert degraded == [True, False]

    asyncio.run(scene())


@pytest.mark.req("C10", "C16")
def test_a_cut_makes_no_fact_up() -> None:
    """Wherever the middle of a text is cut out, no identifier or number is left in half."""
    lines = (
        f"HAT{n:03} on 2024-05-20T10:{n % 60:02}:00 for 1,{n:03}.50, credit_card_{4_421_486 + n}"
        for n in range(100)
    )
    text = "\n".join(lines)
    for tokens in range(48, 300, 7):
        assert set(facts_in(head_and_tail(text, tokens))) <= set(facts_in(text))
        (result,) = clip_results(
            [ToolResult(call_id="c", tool_name="f", content=text)], tokens
        ).messages
        assert isinstance(result, ToolResult)
        assert result.content != text
        assert set(facts_in(result.content)) <= set(facts_in(text))
