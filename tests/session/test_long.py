"""Recorded conversations of real tool work, replayed end to end as one long session."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.messages import Assistant, ToolResult
from agent_magics.session.session import Session
from benchmarks.recorded import read_conversations, script_of

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SOME = 25
RECORDING = "data/airline_conversations.jsonl.gz"
SUMMARY = "\n".join(f"## {heading}\nAs it was." for heading in SUMMARY_HEADINGS)


@pytest.mark.slow
@pytest.mark.req("C1", "C3", "C8", "C9", "E18", "inv1", "inv3", "inv16", "C20.8")
def test_a_long_session_of_real_work_compacts_and_resumes(bench: Bench, shared: Path) -> None:
    """Hundreds of real messages, three compactions: nothing lost, pairs whole, same reloaded."""
    script = script_of(read_conversations(shared / RECORDING, SOME))
    prompts, tools = script.prompts, list(script.tools.values())
    summaries = [{"text": SUMMARY, "purpose": "compaction"}] * 3
    keep = CompactionConfig(keep_recent_tokens=4_000)

    async def scene() -> None:
        session = await bench.session(
            *script.steps, *summaries, session_id="long", compaction=keep, tools=tools
        )
        every = len(prompts) // 3
        for number, prompt in enumerate(prompts, 1):
            await session.submit_turn(prompt)
            if number % every == 0:
                await compact_and_look(session)
        assert all(not tool.answers for tool in tools)
        assert len(session.turns()) == len(prompts)
        messages, history = session.messages(), session.history()
        await session.close()
        again = await bench.resumed("long", compaction=keep)
        assert again.messages() == messages
        assert again.history() == history

    asyncio.run(scene())


async def compact_and_look(session: Session) -> None:
    history = session.history()
    outcome = await session.compact()
    assert outcome.tokens_after < outcome.tokens_before
    assert session.history() == history
    spoken = {event.seq for event in history}
    assert set(session.fates()) == spoken
    waiting: list[str] = []
    for message in session.messages():
        match message:
            case ToolResult(call_id=call_id):
                assert call_id in waiting
                waiting.remove(call_id)
            case Assistant(calls=calls):
                assert not waiting
                waiting = [call.call_id for call in calls]
            case _:
                assert not waiting


@pytest.mark.slow
@pytest.mark.parametrize("window", [8_000, 32_000, 128_000])
@pytest.mark.req("C4", "C8", "C15", "C16", "inv1", "inv3", "inv5", "inv9", "inv16")
def test_all_recorded_work_fits_any_window(bench: Bench, shared: Path, window: int) -> None:
    """150 conversations as one session: no request over the window, no orphan, no loss."""
    script = script_of(read_conversations(shared / RECORDING))
    prompts, tools = script.prompts, list(script.tools.values())
    summaries = [{"text": SUMMARY, "purpose": "compaction"}] * 600
    how: dict[str, Any] = {"context_limit": window, "tools": tools}

    async def scene() -> None:
        session = await bench.session(*script.steps, *summaries, session_id="all", **how)
        for prompt in prompts:
            await session.submit_turn(prompt)
        check_requests(bench.provider.requests, window)
        events = session.frames.events()
        spent = [json.loads(p) for p in events.loc[events["kind"] == "usage", "payload"]]
        assert max(usage["estimated_input_tokens"] for usage in spent) <= window
        assert set(session.fates()) == {event.seq for event in session.history()}
        assert len(session.turns()) == len(prompts)
        compactions = sum(usage["purpose"] == "compaction" for usage in spent)
        assert compactions >= 600_000 // window // 2
        messages = session.messages()
        await session.close()
        again = await bench.resumed("all", **how)
        assert again.messages() == messages

    asyncio.run(scene())


def check_requests(requests: list[ChatRequest], window: int) -> None:
    """Pairs are whole in every request; every fiftieth is weighed as a server would."""
    for number, request in enumerate(requests):
        waiting: list[str] = []
        for message in request.messages:
            match message:
                case ToolResult(call_id=call_id):
                    waiting.remove(call_id)
                case Assistant(calls=calls):
                    assert not waiting
                    waiting = [call.call_id for call in calls]
                case _:
                    assert not waiting
        if number % 50 == 0:
            assert sum(map(count_message, request.messages)) <= window
