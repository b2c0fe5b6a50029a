"""A text is counted when it is recorded; no later turn counts it again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_payload, count_text
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.events import AssistantMessage, LedgerEvent, NewEvent, UserMessage
from agent_magics.core.messages import System, Text, ToolResult
from agent_magics.core.ports import Change, Owner
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.session.session import Session
from agent_magics.threads.loop import background_loop
from benchmarks.recorded import read_conversations, script_of

if TYPE_CHECKING:
    from tests.session.conftest import Bench

ASKED = "Which of the two trains is cheaper in May?"
SAID = "The one at noon is, by far; it takes an hour longer. " * 10
SUMMARY = "\n".join(f"## {heading}\nTrains." for heading in SUMMARY_HEADINGS)


class Counted:
    """Watches the session's loop: how many characters are given to the tokenizer there."""

    def __init__(self) -> None:
        self.characters = 0

    async def during(self, work: Awaitable[object]) -> int:
        """Await `work` and give what was counted meanwhile."""
        before = self.characters
        await background_loop().hop(lambda: self._watch(is_on=True))
        await work
        await background_loop().hop(lambda: self._watch(is_on=False))
        return self.characters - before

    async def _watch(self, *, is_on: bool) -> None:
        sys.setprofile(self._see if is_on else None)

    def _see(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code is count_text.__code__:
            self.characters += len(frame.f_locals["text"])


async def slot_of(bench: Bench, turns: int, *, is_compacted: bool) -> Session:
    """Open a stored session with so many turns, all of them behind a checkpoint or none."""
    name = f"of-{turns}"
    await (await bench.session(session_id=name)).close()
    store = SqlStore(bench.path)
    state = await store.load(name)
    assert state is not None
    lease = await store.acquire(name, Owner(pid=os.getpid(), host="here", since=datetime.now(UTC)))
    uid, now = state.slots[0].uid, datetime.now(UTC)
    said = (UserMessage(content=(Text(text=ASKED),)), AssistantMessage(content=(Text(text=SAID),)))
    events = tuple(
        NewEvent(
            payload=payload,
            created_at=now,
            slot_uid=uid,
            turn_id=f"t{number}",
            tokens=count_payload(payload) if number == 0 else 140,
        )
        for number in range(turns)
        for payload in said
    )
    await store.commit(lease, Change(events=events))
    await store.release(lease)
    await store.aclose()
    steps = [{"text": SUMMARY, "purpose": "compaction"}, "Yes.", SAID]
    keep = CompactionConfig(keep_recent_tokens=200)
    session = await bench.resumed(name, *steps, context_limit=10_000_000, compaction=keep)
    if is_compacted:
        await session.compact()
    return session


@pytest.mark.req("C6", "dec38")
@pytest.mark.parametrize("is_compacted", [True, False], ids=["behind a checkpoint", "all in view"])
def test_a_turn_counts_what_it_adds_however_long_the_slot_is(
    bench: Bench, *, is_compacted: bool
) -> None:
    """The same turn in a slot of 10 and of 2,000 turns: the same characters, those of the turn."""

    async def scene() -> None:
        counts = []
        for turns in (10, 2_000):
            session = await slot_of(bench, turns, is_compacted=is_compacted)
            await session.submit_turn("Is it?")  # what a slot has once is counted once
            counts.append(await Counted().during(session.submit_turn(ASKED)))
            system = session.next_request().request.messages[0]
            assert isinstance(system, System)
            assert counts[-1] == len(ASKED) + len(SAID) + len(system.text)
        assert counts[0] == counts[1]

    asyncio.run(scene())


@pytest.mark.req("C6", "C16", "dec38")
def test_old_tool_output_is_not_counted_again(bench: Bench, root: Path) -> None:
    """Recorded tool work whose old output is clipped: a turn counts its own words, and what the
    clipped copies keep.
    """
    script = script_of(read_conversations(root / "tests" / "data" / "conversations.jsonl.gz"))
    how: dict[str, Any] = {"context_limit": 64_000, "compaction": CompactionConfig(enabled=False)}

    async def scene() -> None:
        tools = list(script.tools.values())
        session = await bench.session(*script.steps, session_id="s", tools=tools, **how)
        counted, copies = Counted(), set[str]()
        for prompt in script.prompts:
            sent, seen = len(bench.provider.requests), len(session.history())
            characters = await counted.during(session.submit_turn(prompt))
            requests = bench.provider.requests[sent:]
            new = {text for request in requests for text in clipped(request)} - copies
            copies |= new
            own = sum(map(characters_of, session.history()[seen:]))
            fixed = sum(map(characters_sent_each_time, requests))
            assert characters <= own + fixed + 2 * sum(map(len, new))
        assert len(copies) > 20

    asyncio.run(scene())


def clipped(request: ChatRequest) -> list[str]:
    """Give the copies of tool output that a request has shortened."""
    results = [message.content for message in request.messages if isinstance(message, ToolResult)]
    return [content for content in results if "tokens of this tool output are left out" in content]


def characters_of(event: LedgerEvent) -> int:
    return len(msgspec.json.encode(event.payload))


def characters_sent_each_time(request: ChatRequest) -> int:
    system = request.messages[0]
    assert isinstance(system, System)
    return len(system.text) + sum(len(msgspec.json.encode(tool)) for tool in request.tools)
