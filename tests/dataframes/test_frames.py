"""The ledger as data frames: columns, types and what stands in them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pytest
from msgspec import structs

from agent_magics.core.config import AgentConfig
from agent_magics.core.events import (
    KINDS,
    Approval,
    AssistantMessage,
    Clear,
    Imported,
    LedgerEvent,
    MemorySet,
    Metadata,
    Payload,
    Retry,
    Rewind,
    SlotChanged,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    Usage,
    kind_of,
)
from agent_magics.core.messages import ToolOutput, ToolResult
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot, SlotConfig
from agent_magics.dataframes.columns import (
    COLUMNS,
    EVENT_COLUMNS,
    MEMORY_COLUMNS,
    TURN_COLUMNS,
)
from agent_magics.dataframes.frames import Frames
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.testing import assistant, memory, user
from agent_magics.tools.schema import tool
from tests.dataframes.ledgers import EMPTY, NOW, moved, said, state_of

if TYPE_CHECKING:
    from agent_magics.session.session import Session


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
    for name, columns in COLUMNS.items():
        frame = getattr(frames, name)()
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
        assert turns["turn_index"].tolist() == [1, 2, 3, 2]  # along the lineage
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


def decode(text: str) -> Payload:
    payload: Payload = msgspec.json.decode(text, type=Payload)
    return payload


def turns_of(*events: LedgerEvent, slots: tuple[Slot, ...] = ()) -> dict[str, Any]:
    """The turns of a ledger, by turn id."""
    frame = Frames(lambda: [state_of(*events, slots=slots)]).turns()
    return {str(row["turn_id"]): row for row in frame.to_dict("records")}


@pytest.mark.req("D1", "dec8", "dec25")
def test_rewound_numbers_are_given_again() -> None:
    """A rewound turn leaves the view and its number; undoing brings it back; a clear empties it."""
    events = [
        said(1, "a", user("1")),
        said(2, "b", user("2")),
        moved(3, Rewind(to_seq=1)),
        said(4, "c", user("2 again")),
    ]
    rows = turns_of(*events)
    assert [(rows[turn]["turn_index"], rows[turn]["is_in_view"]) for turn in "abc"] == [
        (1, True), (2, False), (2, True),
    ]  # fmt: skip
    undone = turns_of(*events, moved(5, Rewind(to_seq=1, undoes=3)), said(6, "d", user("3")))
    assert [undone[turn]["is_in_view"] for turn in "abcd"] == [True, True, False, True]
    assert undone["d"]["turn_index"] == 3
    cleared = turns_of(*events, moved(5, Clear()), said(6, "d", user("new")))
    assert [cleared[turn]["is_in_view"] for turn in "abcd"] == [False, False, False, True]
    assert cleared["d"]["turn_index"] == 1


@pytest.mark.req("D1", "dec8", "dec17")
def test_a_child_counts_on_from_its_fork_whatever_the_parent_does() -> None:
    """Inherited turns count, the parent's later ones don't; a deleted slot's stay in the frame."""
    child = Slot(
        uid="u2", slot_id="side", config=SlotConfig(), created_at=NOW,
        parent_uid="u1", fork_seq=2, deleted=True,
    )  # fmt: skip
    rows = turns_of(
        said(1, "a", user("1")),
        said(2, "b", user("2")),
        said(3, "c", user("3")),
        moved(4, Rewind(to_seq=1)),
        said(5, "x", user("3 of the child"), "u2"),
        slots=(child,),
    )
    assert (rows["x"]["slot"], rows["x"]["turn_index"]) == ("side", 3)
    assert not rows["x"]["is_in_view"]
    assert not rows["b"]["is_in_view"]


ENDS: dict[str, tuple[Payload, Any]] = {
    "whole": (assistant("yes"), "completed"),
    "stopped": (AssistantMessage(content=(), status="incomplete", cause="stopped"), "stopped"),
    "killed": (
        AssistantMessage(content=(), status="incomplete", cause="process ended"),
        "interrupted",
    ),
    "failed": (AssistantMessage(content=(), status="incomplete", cause="failed"), "failed"),
    "running": (ToolCalled(call_id="x", tool_name="f", arguments={}), None),
}


@pytest.mark.req("D1")
@pytest.mark.parametrize("end", ENDS)
def test_the_outcome_is_how_the_last_answer_ended(end: str) -> None:
    """A turn without an end yet has neither outcome, time of end nor duration."""
    last, outcome = ENDS[end]
    row = turns_of(said(1, "a", user("q")), said(2, "a", assistant("first")), said(3, "a", last))[
        "a"
    ]
    if outcome is None:
        assert pd.isna([row["outcome"], row["ended_at"], row["seconds"]]).all()
    else:
        assert (row["outcome"], row["seconds"]) == (outcome, 2.0)


@pytest.mark.req("D1", "dec42")
def test_only_the_turns_own_requests_count() -> None:
    """Summaries made meanwhile cost no turn anything, nor what was never sent; unknown isn't 0."""

    def spent(purpose: Any, tokens: int | None, attempt: int = 1) -> Usage:
        return Usage(
            purpose=purpose,
            provider="p",
            model="m",
            input_tokens=tokens,
            output_tokens=tokens,
            attempt=attempt,
        )

    rows = turns_of(
        said(1, "a", user("q")), said(2, "a", assistant("a")), said(3, "a", spent("turn", 5)),
        said(4, "a", spent("turn", None)), said(5, "a", spent("compaction", 900)),
        said(6, "b", user("q")), said(7, "b", spent("turn", None)),
        said(8, "c", user("q")), said(9, "c", spent("turn", None, 0)),
    )  # fmt: skip
    assert (rows["a"]["input_tokens"], rows["a"]["requests"]) == (5, 2)
    assert pd.isna(rows["b"]["input_tokens"])
    assert rows["c"]["requests"] == 0


@pytest.mark.req("D1")
def test_every_kind_of_event_makes_a_row() -> None:
    """Each kind is shown with its payload whole; steering and odd slots change nothing."""
    payloads: list[Payload] = [
        user("q"), structs.replace(user("more"), is_steering=True), assistant("a"),
        ToolCalled(call_id="x", tool_name="f", arguments=None, raw="{oops"),
        ToolAnswered(call_id="x", tool_name="f", output=ToolOutput(content="4")),
        SystemMessage(text="note"),
        Imported(message=ToolResult(call_id="x", tool_name="f", content="5")),
        Metadata(key="session_config", value={"a": 1}), SlotChanged(action="created", slot_id="s"),
        Rewind(to_seq=0), Clear(), MemorySet(key="k", value="v"), MemorySet(key="k", value=None),
        Usage(purpose="turn", provider="p", model="m"),
        Retry(provider="p", model="m", attempt=1, reason="busy", wait_ms=5),
        Approval(call_id="x", tool_name="f", answer="yes"),
    ]  # fmt: skip
    events = [said(seq, "a", payload, "gone") for seq, payload in enumerate(payloads, 1)]
    frame = Frames(lambda: [state_of(*events)]).events()
    assert set(frame["kind"]) == {kind_of(kind_made) for kind_made in payloads} == set(KINDS)
    assert frame["text"].fillna("-").tolist() == [
        "q", "more", "a", "{oops", "4", "note", "5", "-", "created s", "-", "-", "k: v",
        "k deleted", "-", "busy", "yes",
    ]  # fmt: skip
    assert frame["slot"].isna().all()
    assert [decode(text) for text in frame["payload"]] == payloads


@pytest.mark.req("D1")
def test_sessions_stand_one_after_the_other() -> None:
    """A frame over several sessions keeps them apart, the same turn ids included."""
    first = state_of(said(1, "a", user("one")))
    second = structs.replace(first, row=structs.replace(EMPTY.row, session_id="s2", title="T"))
    frame = Frames(lambda: [first, second]).turns()
    assert frame["session_id"].tolist() == ["s", "s2"]
    assert frame["session"].fillna("-").tolist() == ["-", "T"]


@pytest.mark.req("D1", "E16")
def test_memories_are_a_frame() -> None:
    """The newest first, of this session's namespace, with the types of the table."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        agent = await (
            AgentBuilder(AgentConfig(default_model="scripted:m", memory_namespace="mine"))
            .register_model_provider(ScriptedProvider([]))
            .register_memory_storage(store)
            .build()
        )
        session = await agent.new_session()
        await agent.memory.add("likes tea", ["food", "drink"])
        await agent.memory.add("likes rice")
        await store.upsert(memory("not mine", memory_id="m9", namespace="other"))
        frame = session.frames.memories()
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == MEMORY_COLUMNS
        assert frame["content"].tolist() == ["likes rice", "likes tea"]
        assert frame["tags"].tolist() == ["", "food, drink"]
        assert frame["source"].tolist() == ["manual", "manual"]
        await session.close()
        assert session.frames.memories()["content"].tolist() == ["likes rice", "likes tea"]

    asyncio.run(scene())


def test_frames_say_what_they_give() -> None:
    """`session.frames` in a cell is no address in memory."""
    assert repr(Frames(tuple)) == (
        "<frames: .events(), .turns(), .tool_calls(), .slots(), .checkpoints(), .usage(),"
        " .memories() give pandas data frames>"
    )


@pytest.mark.req("D1", "dec17")
def test_turns_of_a_deleted_slot_are_in_no_view() -> None:
    """Their rows stay; nobody sees them in a slot any more."""

    async def scene() -> None:
        agent = await (
            AgentBuilder(AgentConfig(default_model="scripted:m"))
            .register_model_provider(ScriptedProvider(["a", "b"]))
            .build()
        )
        session = await agent.new_session()
        await session.create_slot("gone")
        await session.submit_turn("q")
        await session.submit_turn("r", slot="gone")
        await session.delete_slot("gone")
        turns = session.frames.turns()
        assert turns["is_in_view"].tolist() == [True, False]
        assert turns["slot"].tolist() == ["default", "gone"]

    asyncio.run(scene())
