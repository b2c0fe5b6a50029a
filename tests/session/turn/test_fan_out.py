"""One prompt in several slots at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.errors import InputValidation, SlotNotFound, SlotReadonly, TurnBusy
from agent_magics.core.messages import User, text_of
from agent_magics.core.slots import Readonly
from agent_magics.core.turns import Cancelled, Completed, Failed
from agent_magics.session.session import Session
from agent_magics.threads.loop import background_loop

if TYPE_CHECKING:
    from tests.session.conftest import Bench


async def branched(bench: Bench, *steps: Any) -> Session:
    session = await bench.session(*steps, session_id="s")
    await session.create_slot("a")
    await session.create_slot("b")
    return session


def prompts(session: Session, slot: str) -> list[str]:
    return [text_of(m.content) for m in session.messages(slot) if isinstance(m, User)]


async def asked(bench: Bench, count: int) -> None:
    while len(bench.provider.requests) < count:  # noqa: ASYNC110 - grows on the session's loop
        await asyncio.sleep(0.01)


@pytest.mark.req("B5")
def test_each_slot_answers_for_itself(bench: Bench) -> None:
    """Every outcome comes back by slot, each in its own log, none in another's."""

    async def scene() -> None:
        session = await branched(bench, "one", "two")
        outcomes = await session.fan_out("Which?", ["a", "b"])
        assert list(outcomes) == ["a", "b"]
        replies = [o.reply for o in outcomes.values() if isinstance(o, Completed)]
        assert {reply.text for reply in replies} == {"one", "two"}
        assert [reply.slot_id for reply in replies] == ["a", "b"]
        assert prompts(session, "a") == prompts(session, "b") == ["Which?"]
        assert prompts(session, "default") == []

    asyncio.run(scene())


@pytest.mark.req("B5")
def test_they_run_at_the_same_time(bench: Bench) -> None:
    """All have asked before any is answered."""

    async def scene() -> None:
        session = await branched(bench, {"text": "x", "delay_s": 30}, {"text": "y", "delay_s": 30})
        turns = await session.send_to("Which?", ["a", "b"])
        await asked(bench, 2)
        assert set(session.running()) == {"a", "b"}
        for turn in turns.values():
            turn.cancel()
        assert all([isinstance(await turn.join(), Cancelled) for turn in turns.values()])

    asyncio.run(scene())


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    ("slots", "error"),
    [
        (["a", "nowhere"], SlotNotFound),
        (["a", "frozen"], SlotReadonly),
        (["a", "busy"], TurnBusy),
        (["a", "a"], InputValidation),
        ([], InputValidation),
    ],
    ids=["unknown", "readonly", "busy", "twice", "none"],
)
def test_it_is_checked_whole_before_anything_is_sent(
    bench: Bench, slots: list[str], error: type[Exception]
) -> None:
    """Unknown, read-only or busy: that error, no request, no message anywhere."""

    async def scene() -> None:
        session = await branched(bench, {"text": "slow", "delay_s": 30}, "never asked")
        await session.create_slot("frozen")
        await session.configure_slot("frozen", mode=Readonly())
        await session.create_slot("busy")
        turn = await session.send_message("go", slot="busy")
        await asked(bench, 1)
        with pytest.raises(error):
            await session.fan_out("Which?", slots)
        assert prompts(session, "a") == []
        assert len(bench.provider.requests) == 1
        turn.cancel()
        await turn.join()

    asyncio.run(scene())


@pytest.mark.req("B5")
def test_a_failure_in_one_slot_stops_no_other(bench: Bench) -> None:
    """Its outcome is the failure; the rest completes."""

    async def scene() -> None:
        session = await branched(bench, {"error": "auth"}, "fine")
        outcomes = await session.fan_out("Which?", ["a", "b"])
        assert {type(outcome) for outcome in outcomes.values()} == {Failed, Completed}

    asyncio.run(scene())


@pytest.mark.req("B5", "E9")
def test_a_cancel_stops_them_all_and_is_recorded(bench: Bench) -> None:
    """After the cancel nothing runs, and each slot holds its interrupted turn."""

    async def scene() -> None:
        session = await branched(bench, {"text": "x", "delay_s": 30}, {"text": "y", "delay_s": 30})
        asking = asyncio.ensure_future(session.fan_out("Which?", ["a", "b"]))
        await asked(bench, 2)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert session.running() == {}
        assert [len(session.turns(slot)) for slot in ("a", "b")] == [1, 1]

    asyncio.run(scene())


Start = Callable[[Session], Coroutine[Any, Any, object]]


async def holding(until: threading.Event) -> None:
    until.wait(5)


async def streamed(session: Session) -> None:
    async with session.submit_turn_stream("Which?", slot="a") as turn:
        await turn.join()


@pytest.mark.req("E9", "B5", "dec60")
@pytest.mark.parametrize(
    "start",
    [
        lambda session: session.submit_turn("Which?", slot="a"),
        lambda session: session.fan_out("Which?", ["a", "b"]),
        streamed,
        lambda session: session.send_message("Which?", slot="a"),
        lambda session: session.send_to("Which?", ["a", "b"]),
    ],
    ids=["submit_turn", "fan_out", "submit_turn_stream", "send_message", "send_to"],
)
def test_a_cancel_that_meets_the_start_leaves_no_turn_running(bench: Bench, start: Start) -> None:
    """The turn had started before the caller's loop, which was busy, could hear of it."""

    async def scene() -> None:
        session = await branched(bench, {"text": "x", "delay_s": 30}, {"text": "y", "delay_s": 30})
        waits = threading.Event()
        background_loop().post(holding(waits))
        asking = asyncio.ensure_future(start(session))
        await asyncio.sleep(0)  # it has gone to the session's loop
        waits.set()
        while not bench.provider.requests:
            time.sleep(0.005)  # noqa: ASYNC251 - the caller's loop is held
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert session.running() == {}
        assert len(session.turns("a")) == 1

    asyncio.run(scene())
