"""Nothing random goes into a request: the same conversation is the same bytes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.skills import Skill
from agent_magics.core.slots import DeriveStrategy, SlotConfig
from agent_magics.providers.anthropic.payload import payload_of as anthropic_payload
from agent_magics.providers.openai_chat.payload import payload_of
from agent_magics.tools.schema import tool
from tests.session.conftest import Bench

LOOK = {"calls": [{"name": "look", "arguments": {"at": n}} for n in (1, 2)]}
SKILL = Skill(name="plot", display_name="Plot", description="Draws.", prompt_template="Draw it.")


@tool
def look(at: int) -> str:
    """Look."""
    return f"seen {at}"


async def conversation(folder: Path) -> list[ChatRequest]:
    """Tools, a skill, facts, a branch, a bridge, a stopped turn's note, a compaction."""
    bench = Bench(folder)
    session = await bench.session(
        LOOK,
        "both seen",
        {"text": "half", "error": "lost"},
        "whole",
        "in the branch",
        "a summary for the bridge",
        "bridged",
        "\n".join(f"## {heading}\nx" for heading in SUMMARY_HEADINGS),
        tools=[look],
        skills=[SKILL],
        session_memory_tools=True,
        compaction=CompactionConfig(keep_recent_tokens=10),
    )
    await session.memory.set("region", "EMEA")
    await session.submit_turn("look twice " + "word " * 400)
    await (await session.send_message("and again")).join()
    await session.submit_turn("/plot it")
    await session.derive_slot("branch", "default", DeriveStrategy.full())
    await session.submit_turn("on", slot="branch")
    await session.create_slot("other", SlotConfig(system_prompt="Be brief."))
    await session.bridge("branch", "other")
    await session.submit_turn("go on", slot="other")
    await session.compact("default")
    await bench.aclose()
    return list(bench.provider.requests)


def sent(requests: list[ChatRequest]) -> tuple[list[str], list[str]]:
    ours: list[dict[str, Any]] = [payload_of(each) for each in requests]
    theirs = [anthropic_payload(each, frozenset()) for each in requests]
    return [json.dumps(each) for each in ours], [json.dumps(each) for each in theirs]


@pytest.mark.req("dec61", "inv3")
def test_the_same_conversation_is_the_same_bytes(tmp_path: Path) -> None:
    """In another session, on another store, whatever ids and times they have."""
    runs = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        runs.append(sent(asyncio.run(conversation(folder))))
    assert len(runs[0][0]) > 6
    assert runs[0] == runs[1]
