"""A session of very many events: six slots, turns with tool calls, texts of all sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from agent_magics.core.events import (
    AssistantMessage,
    LedgerEvent,
    Metadata,
    Payload,
    SlotChanged,
    ToolAnswered,
    ToolCalled,
    Usage,
    UserMessage,
)
from agent_magics.core.messages import Text, ToolOutput
from agent_magics.core.ports import SessionRow, SessionState
from agent_magics.core.slots import DEFAULT_SLOT, Slot, SlotConfig

BEGAN = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
TEXT = (
    "the price of trains in May grew with churn and tenure while rainfall fell in Oslo and every"
    " column of the frame was filled by hand before the model read it again"
)
WORDS = TEXT.split()
SLOTS = (DEFAULT_SLOT, "option-a", "option-b", "reviewer", "数据", "שלום")


def many_events(
    count: int, *, session_id: str = "many", title: str = "many events"
) -> SessionState:
    """Make a session of `count` events in six slots."""
    slots = tuple(
        Slot(uid=f"u{number}", slot_id=name, config=SlotConfig(), created_at=BEGAN)
        for number, name in enumerate(SLOTS)
    )
    events = tuple(
        LedgerEvent(
            seq=seq,
            payload=payload,
            created_at=BEGAN + timedelta(seconds=7 * seq),
            slot_uid=slot_uid,
            turn_id=turn_id,
            tokens=seq % 900,
        )
        for seq, (slot_uid, turn_id, payload) in enumerate(_told(count), start=1)
    )
    row = SessionRow(
        session_id=session_id,
        created_at=BEGAN,
        updated_at=events[-1].created_at,
        title=title,
        current_slot_uid="u0",
    )
    return SessionState(row=row, slots=slots, checkpoints=(), events=events, drafts=())


def _told(count: int) -> Iterator[tuple[str | None, str | None, Payload]]:
    chance = random.Random(20260105)
    namespace = {"namespace": "default", "extraction": False}
    yield None, None, Metadata(key="memory_namespace", value=namespace)
    for number, name in enumerate(SLOTS):
        yield f"u{number}", None, SlotChanged(action="created", slot_id=name, config=SlotConfig())
    left, turn = count - len(SLOTS) - 1, 0
    while left > 0:
        turn += 1
        uid = f"u{chance.randrange(len(SLOTS))}"
        payloads = list(_turn(chance, turn))
        for payload in payloads if len(payloads) <= left else payloads[:1]:
            left -= 1
            yield uid, f"turn-{turn}", payload


def _turn(chance: random.Random, turn: int) -> Iterator[Payload]:
    yield UserMessage(content=_said(chance, 4, 40))
    for number in range(chance.randrange(3)):
        name = chance.choice(("inspect_variable", "run_python"))
        call = f"call-{number}"
        yield AssistantMessage(content=_said(chance, 3, 12))
        yield ToolCalled(call_id=call, tool_name=name, arguments={"name": chance.choice(WORDS)})
        yield _spent(chance)
        most = 2_000 if turn % 50 == 0 else 150
        output = ToolOutput(content=_text(chance, 5, most), is_error=turn % 11 == 0)
        yield ToolAnswered(call_id=call, tool_name=name, output=output, duration_ms=turn % 700)
    yield AssistantMessage(content=_said(chance, 15, 120), provider="scripted", model="bench")
    yield _spent(chance)


def _spent(chance: random.Random) -> Usage:
    return Usage(
        purpose="turn",
        provider="scripted",
        model="bench",
        input_tokens=chance.randrange(400, 9_000),
        output_tokens=chance.randrange(10, 400),
        duration_ms=chance.randrange(300, 9_000),
    )


def _said(chance: random.Random, least: int, most: int) -> tuple[Text, ...]:
    return (Text(text=_text(chance, least, most)),)


def _text(chance: random.Random, least: int, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(least, most)))
