"""The view that lives is the view that a new process loads, whatever was done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import AgentError
from agent_magics.core.messages import ToolResult, User, text_of
from agent_magics.core.slots import DeriveStrategy, Focused, Full
from agent_magics.core.turns import TextChunk
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.session.filling import SUMMARY

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 12
KEEP_LITTLE = CompactionConfig(keep_recent_tokens=50)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "ask",
                "ask",
                "call",
                "fail",
                "lose",
                "stop",
                "compact",
                "derive",
                "focus",
                "full",
                "rewind",
                "undo",
                "clear",
                "delete",
                "new",
            ]
        ),
        st.integers(0, 3),
    ),
    max_size=14,
)


@tool
def twice(n: int) -> int:
    """Double a number."""
    return 2 * n


def answered(request: ChatRequest) -> dict[str, Any]:
    """Answer as the prompt's first word says."""
    if request.purpose == "compaction":
        return {"text": SUMMARY}
    last = request.messages[-1]
    if isinstance(last, ToolResult):
        return {"text": "done"}
    assert isinstance(last, User)
    steps: dict[str, dict[str, Any]] = {
        "call": {"text": "let me", "calls": [{"name": "twice", "arguments": {"n": 2}}]},
        "fail": {"error": "auth"},
        "lose": {"text": "no", "error": "lost"},
        "stop": {"text": "one two three", "chunk_delay_s": 5},
    }
    return steps.get(text_of(last.content).split()[0], {"text": LONG})


@pytest.mark.req("E18", "S6", "S8", "C3", "C17", "inv16", "inv11")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(operations=OPERATIONS)
def test_the_live_view_is_the_reloaded_view(
    bench: Bench, operations: list[tuple[str, int]]
) -> None:
    """The same slots, counts, messages, turns, weights and frames."""

    async def scene() -> None:
        how: dict[str, Any] = {"tools": [twice], "compaction": KEEP_LITTLE}
        session = await bench.session(*[answered] * 80, **how)
        for name, number in operations:
            try:
                await _do(session, name, number)
            except AgentError:
                continue
        before, frame = _everything(session), session.frames.turns()
        session_id = session.session_id
        await session.close()
        again = await bench.resumed(session_id, **how)
        assert _everything(again) == before
        assert again.frames.turns().equals(frame)
        await bench.aclose()
        bench._agents.clear()
        bench._stores.clear()

    asyncio.run(scene())


async def _do(session: Session, name: str, number: int) -> None:  # noqa: C901 - a line a deed
    slots = [slot.slot_id for slot in session.list_slots()]
    slot = slots[number % len(slots)]
    match name:
        case "ask" | "call" | "fail" | "lose":
            await (await session.send_message(f"{name} {LONG} {number}", slot=slot)).join()
        case "stop":
            turn = await session.send_message("stop", slot=slot)
            async for event in turn:
                if isinstance(event.payload, TextChunk):
                    turn.cancel()
        case "compact":
            await session.compact(slot)
        case "derive":
            kept = DeriveStrategy.focused(Focused(recent_messages=number))
            strategy = kept if number % 2 else DeriveStrategy.full()
            await session.derive_slot(f"d{len(slots)}", slot, strategy)
        case "focus" | "full":
            mode = Full() if name == "full" else Focused(recent_messages=number)
            await session.configure_slot(slot, mode=mode)
        case "rewind" | "undo" | "clear":
            await _move(session, name, slot, number)
        case "delete":
            await session.delete_slot(slot)
        case "new":
            await session.create_slot(f"n{number}", replace=True)
            await session.switch_slot(f"n{number}")


async def _move(session: Session, name: str, slot: str, number: int) -> None:
    before = session.messages(slot)
    if name == "clear":
        gone = await session.clear(slot)
    else:
        ends = [0, *(span.last_seq for span in session.turns(slot))]
        gone = await session.rewind(slot, to_seq=ends[number % len(ends)])
    if name == "undo":
        head = max((span.last_seq for span in session.turns(slot)), default=0)
        await session.rewind(slot, to_seq=head, undoes=gone)
        assert session.messages(slot) == before


def _everything(session: Session) -> object:
    return [
        (
            meta,
            session.messages(meta.slot_id),
            session.turns(meta.slot_id),
            session.history(meta.slot_id),
            session.context_info(meta.slot_id),
        )
        for meta in session.list_slots()
    ]
