"""Recorded conversations of real tool work, replayed end to end as one long session."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.messages import Assistant, ToolOutput, ToolResult
from agent_magics.core.ports import OnMain, ToolInput
from agent_magics.session.session import Session

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SOME = 25
ALL = 150
SUMMARY = "\n".join(f"## {heading}\nAs it was." for heading in SUMMARY_HEADINGS)


class Recorded:
    """A tool that answers what it answered in the recording."""

    description = "A recorded tool."
    parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - the port's shape
    is_mutating = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: deque[str] = deque()

    async def execute(self, call: ToolInput, on_main: OnMain) -> ToolOutput:
        return ToolOutput(content=self.answers.popleft())


def read_conversations(folder: Path, count: int) -> Iterator[list[dict[str, Any]]]:
    with gzip.open(folder / "data" / "airline_conversations.jsonl.gz", "rt") as lines:
        for number, line in enumerate(lines):
            if number == count:
                return
            yield json.loads(line)["messages"]


def ended(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a conversation its last word where the recording stops before it."""
    if conversation[-1]["role"] == "assistant" and not conversation[-1].get("tool_calls"):
        return conversation
    return [*conversation, {"role": "assistant", "content": "(the recording ends here)"}]


def script_of(
    conversations: list[list[dict[str, Any]]],
) -> tuple[list[str], list[dict[str, Any]], dict[str, Recorded]]:
    """Part a recording into prompts, answers of the model, and answers of its tools."""
    tools: dict[str, Recorded] = {}
    prompts: list[str] = []
    steps: list[dict[str, Any]] = []
    names: dict[str, str] = defaultdict(str)
    for message in (each for conversation in conversations for each in ended(conversation)):
        match message["role"]:
            case "user":
                prompts.append(message["content"])
            case "assistant":
                calls = message.get("tool_calls") or []
                names.update({call["id"]: call["function"]["name"] for call in calls})
                steps.append(
                    {
                        "text": message["content"] or "",
                        "chunks": 3,
                        "calls": [dict(call["function"]) for call in calls],
                    }
                )
            case "tool":
                name = names[message["tool_call_id"]]
                tools.setdefault(name, Recorded(name)).answers.append(message["content"])
            case _:
                pass
    return prompts, steps, tools


@pytest.mark.slow
@pytest.mark.req("C1", "C3", "C8", "C9", "E18", "inv1", "inv3", "inv16", "C20.8")
def test_a_long_session_of_real_work_compacts_and_resumes(bench: Bench, shared: Path) -> None:
    """Hundreds of real messages, three compactions: nothing lost, pairs whole, same reloaded."""
    prompts, steps, tools = script_of(list(read_conversations(shared, SOME)))
    summaries = [{"text": SUMMARY, "purpose": "compaction"}] * 3
    keep = CompactionConfig(keep_recent_tokens=4_000)

    async def scene() -> None:
        session = await bench.session(
            *steps, *summaries, session_id="long", compaction=keep, tools=list(tools.values())
        )
        every = len(prompts) // 3
        for number, prompt in enumerate(prompts, 1):
            await session.submit_turn(prompt or "(nothing)")
            if number % every == 0:
                await compact_and_look(session)
        assert all(not tool.answers for tool in tools.values())
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
    prompts, steps, tools = script_of(list(read_conversations(shared, ALL)))
    summaries = [{"text": SUMMARY, "purpose": "compaction"}] * 600
    how: dict[str, Any] = {"context_limit": window, "tools": list(tools.values())}

    async def scene() -> None:
        session = await bench.session(*steps, *summaries, session_id="all", **how)
        for prompt in prompts:
            await session.submit_turn(prompt or "(nothing)")
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
