"""Frames of tool calls, slots, checkpoints and requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas as pd
import pytest
from msgspec import structs

from agent_magics.core.config import AgentConfig
from agent_magics.core.events import Approval, ToolAnswered, ToolCalled, Usage
from agent_magics.core.messages import ToolOutput
from agent_magics.core.slots import (
    Checkpoint,
    DeriveStrategy,
    Focused,
    Readonly,
    SlotConfig,
)
from agent_magics.dataframes.columns import COLUMNS
from agent_magics.dataframes.frames import Frames
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.open.recovery import LEFT_OPEN
from agent_magics.testing import assistant, user
from tests.dataframes.ledgers import NOW, moved, said, state_of


def called(call_id: str = "x", name: str = "f", **arguments: Any) -> ToolCalled:
    return ToolCalled(call_id=call_id, tool_name=name, arguments=arguments)


def answered(call_id: str, text: str, *, ms: int | None = 5, **more: Any) -> ToolAnswered:
    output = ToolOutput(content=text, is_error=more.pop("is_error", False))
    return ToolAnswered(call_id=call_id, tool_name="f", output=output, duration_ms=ms, **more)


def lost(call_id: str) -> ToolAnswered:
    """The answer that a resume gives to a call whose process ended."""
    output = ToolOutput(content=LEFT_OPEN, is_error=True, metadata={"outcome": "unknown"})
    return ToolAnswered(call_id=call_id, tool_name="f", output=output)


@pytest.mark.req("D1")
def test_a_tool_call_stands_with_what_came_of_it() -> None:
    """Result, duration and approval are the call's own, though ids come again in other turns."""
    frame = Frames(
        lambda: [
            state_of(
                said(1, "a", user("q")),
                said(2, "a", called("x", city="Oslo")),
                said(3, "a", called("y")),
                said(4, "a", Approval(call_id="x", tool_name="f", answer="edited")),
                said(5, "a", answered("y", "no", ms=None)),
                said(6, "a", answered("x", "12 mm", ran_with={"city": "Bergen"})),
                said(7, "b", user("q")),
                said(8, "b", called("x")),
                said(9, "b", answered("x", "boom", is_error=True)),
                said(10, "c", user("q")),
                said(11, "c", ToolCalled(call_id="x", tool_name="g", arguments=None, raw="{oops")),
                said(12, "c", called("y")),
                said(13, "c", lost("y")),
            )
        ]
    ).tool_calls()
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS["tool_calls"]
    assert frame["seq"].tolist() == [2, 3, 8, 11, 12]
    assert frame["turn_index"].tolist() == [1, 1, 2, 3, 3]
    outcomes = frame["outcome"].astype("object").fillna("running").tolist()
    assert outcomes == ["ok", "not run", "error", "running", "unknown"]
    assert frame["output"].fillna("-").tolist() == ["12 mm", "no", "boom", "-", LEFT_OPEN]
    assert frame["arguments"].tolist() == ['{"city":"Oslo"}', "{}", "{}", "{oops", "{}"]
    assert frame["ran_with"].fillna("-").tolist() == ['{"city":"Bergen"}', "-", "-", "-", "-"]
    assert frame["approval"].isna().tolist() == [False, True, True, True, True]
    assert (frame["answered_at"] - frame["called_at"]).dt.total_seconds().fillna(-1).tolist() == [
        4, 2, 1, -1, 1,
    ]  # fmt: skip


@pytest.mark.req("D1")
def test_calls_of_one_turn_that_share_an_id_take_the_results_in_order() -> None:
    """A model that names each call alike loses none of them."""
    frame = Frames(
        lambda: [
            state_of(
                said(1, "a", user("q")),
                said(2, "a", called("x")), said(3, "a", called("x")),
                said(4, "a", answered("x", "one")), said(5, "a", answered("x", "two")),
            )
        ]
    ).tool_calls()  # fmt: skip
    assert frame["output"].tolist() == ["one", "two"]


@pytest.mark.req("D1", "dec17")
def test_slots_stand_with_what_is_their_own() -> None:
    """Deleted ones are marked, children named after parents, nothing inherited is counted."""

    async def scene() -> None:
        agent = await (
            AgentBuilder(AgentConfig(default_model="scripted:m"))
            .register_model_provider(ScriptedProvider(["a", "b", "c", "d"]))
            .build()
        )
        session = await agent.new_session()
        await session.submit_turn("q")
        await session.derive_slot("side", "default", DeriveStrategy.focused(Focused()))
        await session.create_slot(
            "gone", SlotConfig(mode=Readonly(), system_prompt="Be brief.", model="scripted:m")
        )
        await session.delete_slot("gone")
        await session.submit_turn("r", slot="side")
        end = session.turns("side")[-1].last_seq
        await session.submit_turn("s", slot="side")
        await session.rewind("side", to_seq=end)
        await session.switch_slot("side")
        frame = session.frames.slots()
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS["slots"]
        assert frame["slot"].tolist() == ["default", "side", "gone"]
        assert frame["mode"].tolist() == ["full", "focused", "readonly"]
        assert frame["recent_messages"].fillna(-1).tolist() == [-1, 10, -1]
        assert frame["parent"].fillna("-").tolist() == ["-", "default", "-"]
        assert frame["turns"].tolist() == [1, 1, 0]
        assert frame["is_current"].tolist() == [False, True, False]
        assert frame["is_deleted"].tolist() == [False, False, True]
        assert frame["system_prompt"].fillna("-").tolist() == ["-", "-", "Be brief."]
        events = session.frames.events()
        counts = events.groupby("slot_uid").size()
        assert frame["events"].tolist() == [counts[uid] for uid in frame["slot_uid"]]
        spoken = events[events["kind"].isin(["user_message", "assistant_message"])]
        own = spoken.groupby("slot_uid")["tokens"].sum()
        assert frame["tokens"].tolist() == [own.get(uid, 0) for uid in frame["slot_uid"]]

    asyncio.run(scene())


def checkpoint(name: str, source_max_seq: int, **more: Any) -> Checkpoint:
    made = {
        "checkpoint_id": name, "slot_uid": "u1", "generation": 1, "parent_checkpoint_id": None,
        "summary": "what was", "rendered": "…", "first_retained_seq": source_max_seq + 1,
        "source_max_seq": source_max_seq, "reason": "auto", "provider": "p", "model": "m",
        "tokens_before": 900, "tokens_after": 90, "degraded": False, "created_at": NOW,
    }  # fmt: skip
    return Checkpoint(**{**made, **more})


@pytest.mark.req("D1", "dec40")
def test_checkpoints_stand_in_the_order_they_were_made() -> None:
    """Replaced ones are kept with their text; the one that holds is marked; no model, no name."""
    first = checkpoint("c1", 4)
    second = checkpoint(
        "c2", 8, parent_checkpoint_id="c1", generation=2, degraded=True, provider="", model="",
    )  # fmt: skip
    state = state_of(said(1, "a", user("q")))
    slot = structs.replace(state.slots[0], checkpoint_id="c2")
    state = structs.replace(state, slots=(slot,), checkpoints=(second, first))
    frame = Frames(lambda: [state]).checkpoints()
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS["checkpoints"]
    assert frame["checkpoint_id"].tolist() == ["c1", "c2"]
    assert frame["is_active"].tolist() == [False, True]
    assert frame["is_degraded"].tolist() == [False, True]
    assert frame["model"].isna().tolist() == [False, True]
    assert frame["summary"].tolist() == ["what was", "what was"]


@pytest.mark.req("D1", "dec42")
def test_each_request_is_a_row_with_what_it_cost() -> None:
    """Purpose, attempt, tokens, price and times; what isn't known is missing, never 0."""
    told = Usage(
        purpose="turn", provider="p", model="m", attempt=2, input_tokens=9, output_tokens=4,
        cached_tokens=3, estimated_input_tokens=8, duration_ms=1_200, first_token_ms=300,
        cost_usd=0.25,
    )  # fmt: skip
    silent = Usage(purpose="compaction", provider="p", model="n")
    state = state_of(
        said(1, "a", user("q")), said(2, "a", told), said(3, "a", told), moved(4, silent)
    )
    frame = Frames(lambda: [state]).usage()
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS["usage"]
    assert frame["purpose"].tolist() == ["turn", "turn", "compaction"]
    assert frame["model"].tolist() == ["p:m", "p:m", "p:n"]
    assert frame["turn_index"].fillna(-1).tolist() == [1, 1, -1]
    assert (frame["cost_usd"].sum(), frame["cached_tokens"].sum()) == (0.5, 6)
    for column in ("input_tokens", "cached_tokens", "cost_usd", "first_token_ms"):
        assert frame[column].isna().tolist() == [False, False, True], column
    turn = Frames(lambda: [state]).turns().iloc[0]
    assert (turn["cost_usd"], turn["cached_tokens"]) == (0.5, 6)


@pytest.mark.req("D1")
def test_kinds_are_the_same_categories_whatever_happened() -> None:
    """Frames of two ledgers are joined without losing their categories."""
    one = Frames(lambda: [state_of(said(1, "a", user("q")))]).events()
    two = Frames(lambda: [state_of(said(1, "a", assistant("a")))]).events()
    assert str(pd.concat([one, two])["kind"].dtype) == "category"


@pytest.mark.req("D1")
def test_an_unknown_slot_has_no_name() -> None:
    """Events of a slot that isn't there are shown all the same."""
    state = structs.replace(state_of(said(1, "a", user("q"), "lost")), slots=())
    assert Frames(lambda: [state]).turns()["slot"].isna().all()
    lonely = structs.replace(state, checkpoints=(checkpoint("c", 1, slot_uid="lost"),))
    assert Frames(lambda: [lonely]).checkpoints()["slot"].isna().all()
