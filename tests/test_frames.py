"""The ledger as data frames: columns, types and what stands in them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig
from agent_magics.core.ports import SessionRow, SessionState
from agent_magics.frames import EVENT_COLUMNS, TURN_COLUMNS, Frames
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.agent import AgentBuilder
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from agent_magics.session.session import Session

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EMPTY = SessionState(
    row=SessionRow(session_id="s", created_at=NOW, updated_at=NOW),
    slots=(),
    checkpoints=(),
    events=(),
    drafts=(),
)


@tool
def ping() -> str:
    """Answer."""
    return "pong"


async def told(*steps: Any) -> Session:
    agent = await (
        AgentBuilder(AgentConfig(default_model="scripted:m"))
        .register_model_provider(ScriptedProvider(list(steps)))
        .register_tool(ping)
        .build()
    )
    return await agent.new_session()


@pytest.mark.req("D1")
@pytest.mark.parametrize("states", [(), (EMPTY,)], ids=["no session", "empty session"])
def test_empty_frames_have_the_columns_and_types(states: tuple[SessionState, ...]) -> None:
    """Nothing recorded is a frame of no rows with the same columns and dtypes."""
    frames = Frames(lambda: states)
    for frame, columns in ((frames.events(), EVENT_COLUMNS), (frames.turns(), TURN_COLUMNS)):
        assert len(frame) == 0
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == dict(columns)


@pytest.mark.req("D1")
def test_frames_say_what_happened() -> None:
    """Turns have outcome, cost and words; events every kind; types as documented."""

    async def scene() -> None:
        session = await told(
            {"calls": [{"name": "ping"}], "usage": {"input_tokens": 5, "output_tokens": 1}},
            {"text": "It pongs.", "usage": {"input_tokens": 9, "output_tokens": 4}},
            {"text": "I was", "error": "lost"},
            {"error": "auth"},
            {"text": "cut", "finish": "length"},
        )
        await session.submit_turn("ping it")
        await session.derive_slot("side", "default")
        for slot in ("side", "side", "default"):
            await (await session.send_message("again", slot=slot)).join()

        turns = session.frames.turns()
        assert {n: str(t) for n, t in turns.dtypes.items()} == dict(TURN_COLUMNS)
        assert turns["outcome"].tolist() == ["completed", "interrupted", "failed", "completed"]
        assert turns["slot"].tolist() == ["default", "side", "side", "default"]
        assert turns["turn_index"].tolist() == [1, 2, 3, 2]  # along the lineage (decision 8)
        first = turns.iloc[0]
        assert (first["input_tokens"], first["output_tokens"]) == (14, 5)
        assert (first["requests"], first["tool_calls"]) == (2, 1)
        assert (first["user_text"], first["assistant_text"]) == ("ping it", "It pongs.")
        assert first["model"] == "scripted:m"
        assert turns["input_tokens"].isna().tolist() == [False, True, True, True]

        events = session.frames.events()
        assert {n: str(t) for n, t in events.dtypes.items()} == dict(EVENT_COLUMNS)
        assert events["seq"].is_monotonic_increasing
        assert set(events["kind"]) >= {"user_message", "tool_call", "tool_result", "usage"}
        assert events.loc[events["kind"] == "tool_result", "text"].tolist() == ["pong"]

    asyncio.run(scene())
