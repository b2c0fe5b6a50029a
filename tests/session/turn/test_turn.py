"""One turn, from the prompt to the outcome, under good and bad conditions."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.errors import (
    InputValidation,
    ModelNotSupported,
    ProviderError,
    RequestCancelled,
    SlotNotFound,
    StreamInterrupted,
    TurnBusy,
)
from agent_magics.core.events import (
    AssistantMessage,
    UserMessage,
)
from agent_magics.core.messages import Image, User, text_of
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    Panicked,
    TextChunk,
    TurnCompleted,
    TurnStarted,
)
from agent_magics.session.state.running_turn import CancelToken
from tests.session.telling import SLOW, events_of, kinds

if TYPE_CHECKING:
    from tests.session.conftest import Bench


@pytest.mark.req("E2")
def test_many_may_read_a_turn_from_its_beginning(bench: Bench) -> None:
    """Each has all of its events, whoever has read it before; the one reader goes on meanwhile."""

    async def scene() -> None:
        session = await bench.session(SLOW)
        turn = await session.send_message("hi")
        first = [event.sequence async for event in turn.events()]
        own = [event.sequence async for event in turn]
        late = [event.sequence async for event in turn.events()]
        assert first == own == late == list(range(len(first)))
        assert len(first) > 2

    asyncio.run(scene())


@pytest.mark.req("E2", "E6", "E7", "S12")
def test_a_turn_records_before_it_is_done(bench: Bench) -> None:
    """The user message and the answer are in the ledger when the outcome is told."""

    async def scene() -> None:
        session = await bench.session({"text": "Hello there.", "usage": _usage(10, 3)})
        shown = await events_of(session, "hi")
        assert isinstance(shown[0], TurnStarted)
        assert [event.text for event in shown if isinstance(event, TextChunk)] == [
            "Hello",
            " there.",
        ]
        assert isinstance(shown[-1], TurnCompleted)
        assert kinds(session) == ["user_message", "assistant_message"]
        frame = session.frames.turns()
        assert frame["input_tokens"].tolist() == [10]
        assert frame["output_tokens"].tolist() == [3]

    asyncio.run(scene())


@pytest.mark.req("S13")
def test_streaming_and_submitting_leave_the_same_log(bench: Bench) -> None:
    """Both ways write the same events and sum the same cost."""

    async def scene() -> None:
        one = await bench.session({"text": "yes", "usage": _usage(7, 1)}, session_id="one")
        reply = await one.submit_turn("q")
        two = await bench.session({"text": "yes", "usage": _usage(7, 1)}, session_id="two")
        async with two.submit_turn_stream("q") as turn:
            async for _ in turn:
                pass
            streamed = await two.finalize_turn(turn)
            again = await two.finalize_turn(turn)
        assert streamed == again
        assert (reply.text, reply.usage) == (streamed.text, streamed.usage)
        assert kinds(one) == kinds(two)
        assert [e.tokens for e in one.history()] == [e.tokens for e in two.history()]

    asyncio.run(scene())


@pytest.mark.req("S13")
def test_leaving_a_stream_early_stops_the_turn(bench: Bench) -> None:
    """What was said so far stays, marked as stopped."""

    async def scene() -> None:
        session = await bench.session(SLOW)
        async with session.submit_turn_stream("q") as turn:
            async for event in turn:
                if isinstance(event.payload, TextChunk):
                    break
        outcome = await turn.join()
        assert isinstance(outcome, Cancelled)
        assert outcome.reply.text.startswith("one")
        assert session.history()[-1].payload.cause == "stopped"  # type: ignore[union-attr]

    asyncio.run(scene())


@pytest.mark.req("E12", "N7", "P5")
def test_a_stop_keeps_what_was_said(bench: Bench) -> None:
    """The partial answer is incomplete in the log, and the next request notes the interruption."""

    async def scene() -> None:
        session = await bench.session(SLOW, "fine")
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, TextChunk):
                turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        last = session.history()[-1].payload
        assert isinstance(last, AssistantMessage)
        assert (last.status, last.cause) == ("incomplete", "stopped")
        await session.submit_turn("go on")
        texts = [
            text_of(m.content) for m in bench.provider.requests[-1].messages if isinstance(m, User)
        ]
        assert any("stopped" in text for text in texts)
        assert not any(
            "stopped" in text_of(e.payload.content)
            for e in session.history()
            if isinstance(e.payload, UserMessage)
        )

    asyncio.run(scene())


@pytest.mark.req("E5")
def test_an_outside_token_stops_a_turn_from_another_thread(bench: Bench) -> None:
    """A token that is thrown anywhere stops the turn that was given it."""

    async def scene() -> None:
        session = await bench.session({"text": "a b", "delay_s": 30})
        token = CancelToken()
        turn = await session.send_message("q", cancel=token)
        threading.Timer(0.05, token.cancel).start()
        began = time.monotonic()
        assert isinstance(await turn.join(), Cancelled)
        assert time.monotonic() - began < 5

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("step", "error", "cause"),
    [
        ({"text": "par", "error": "lost"}, StreamInterrupted, "connection lost"),
        ({"error": "auth"}, ProviderError, "failed"),
    ],
    ids=["lost", "auth"],
)
@pytest.mark.req("P5", "E6", "dec9")
def test_a_failed_request_fails_the_turn_and_keeps_the_rest(
    bench: Bench, step: dict[str, Any], error: type[Exception], cause: str
) -> None:
    """What came stays as incomplete with its cause; the next turn works."""

    async def scene() -> None:
        session = await bench.session(step, "better")
        with pytest.raises(error):
            await session.submit_turn("q")
        last = session.history()[-1].payload
        assert isinstance(last, AssistantMessage)
        assert (last.status, last.cause) == ("incomplete", cause)
        assert (await session.submit_turn("again")).text == "better"
        sent = [
            text_of(m.content) for m in bench.provider.requests[-1].messages if isinstance(m, User)
        ]
        assert ("q" in sent) is bool(step.get("text"))

    asyncio.run(scene())


@pytest.mark.req("dec16")
def test_a_fault_that_is_nobodys_error_is_a_panic(bench: Bench) -> None:
    """What a provider of somebody else throws ends the turn; the session goes on."""

    def boom(request: object) -> str:
        raise ZeroDivisionError("in a plugin")

    async def scene() -> None:
        session = await bench.session(boom, "ok")
        turn = await session.send_message("q")
        outcome = await turn.join()
        assert isinstance(outcome, Panicked)
        assert isinstance(outcome.error, ZeroDivisionError)
        assert (await session.submit_turn("again")).text == "ok"

    asyncio.run(scene())


@pytest.mark.req("dec16")
def test_an_empty_answer_is_told(bench: Bench) -> None:
    """Nothing from the model is something in the ledger, with a warning."""

    async def scene() -> None:
        session = await bench.session("")
        outcome = await (await session.send_message("q")).join()
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "(the model returned nothing)"
        assert outcome.warnings == ("The model returned nothing.",)

    asyncio.run(scene())


@pytest.mark.req("E5", "S5")
def test_what_can_not_start_raises_before_anything_is_written(bench: Bench) -> None:
    """Blank, unknown slot, unknown model: one sentence, no event, no request."""

    async def scene() -> None:
        session = await bench.session("a")
        before = session.history()
        with pytest.raises(InputValidation, match="prompt is empty"):
            await session.submit_turn("  \n")
        with pytest.raises(SlotNotFound):
            await session.submit_turn("q", slot="nope")
        with pytest.raises(ModelNotSupported, match="nope:x"):
            await session.send_message("q", model="nope:x")
        assert session.history() == before
        assert bench.provider.requests == []

    asyncio.run(scene())


@pytest.mark.req("E5", "B5", "dec7")
def test_one_turn_a_slot_many_slots_a_session(bench: Bench) -> None:
    """A second turn in a busy slot is refused; in another slot it runs at the same time."""

    async def scene() -> None:
        session = await bench.session(SLOW, "quick")
        await session.create_slot("other")
        first = await session.send_message("slow")
        with pytest.raises(TurnBusy, match='Slot "default" is busy with a turn'):
            await session.send_message("again")
        for refused in (
            session.rewind(to_seq=0),
            session.clear(),
            session.compact(),
            session.configure_slot("default", compact=False),
        ):
            with pytest.raises(TurnBusy):
                await refused
        await session.switch_slot("other")
        assert (await session.submit_turn("fast")).text == "quick"
        assert not first.is_done
        assert isinstance(await first.join(), Completed)
        assert first.slot_id == "default"

    asyncio.run(scene())


@pytest.mark.req("E6")
def test_the_outcome_does_not_depend_on_who_reads_events(bench: Bench) -> None:
    """Nobody reads, or somebody reads afterwards: the outcome and the events are the same."""

    async def scene() -> None:
        session = await bench.session("a b")
        turn = await session.send_message("q")
        assert isinstance(await turn.join(), Completed)
        late = [event async for event in turn]
        assert [event.sequence for event in late] == list(range(len(late)))
        assert isinstance(late[-1].payload, TurnCompleted)

    asyncio.run(scene())


@pytest.mark.req("P3", "dec27")
def test_a_model_for_one_turn(bench: Bench) -> None:
    """`model=` is for one turn; the slot's own model and the session's stay."""

    async def scene() -> None:
        session = await bench.session(*"abc")
        await (await session.send_message("q", model="scripted:one-off")).join()
        await session.submit_turn("r")
        await session.set_model("scripted:other")
        await session.submit_turn("s")
        assert [r.model for r in bench.provider.requests] == ["one-off", "test", "other"]

    asyncio.run(scene())


@pytest.mark.req("N11")
def test_the_session_works_from_any_loop_and_by_run(bench: Bench) -> None:
    """Coroutines may be awaited from any loop, and sync reads from any thread."""
    session = asyncio.run(bench.session("a", "b"))
    assert asyncio.run(session.submit_turn("one")).text == "a"
    assert asyncio.run(session.submit_turn("two")).text == "b"
    assert [slot.turns for slot in session.list_slots()] == [2]


def test_a_cancelled_wait_leaves_the_turn_running(bench: Bench) -> None:
    """Cancelling `join` doesn't stop the turn; cancelling `submit_turn` neither."""

    async def scene() -> None:
        session = await bench.session(SLOW)
        turn = await session.send_message("q")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turn.join(), 0.06)
        assert isinstance(await turn.join(), Completed)

    asyncio.run(scene())


def test_raising_is_what_submit_turn_does_for_a_stop(bench: Bench) -> None:
    """`submit_turn` raises what ended the turn."""

    async def scene() -> None:
        session = await bench.session(SLOW)
        waiting = asyncio.ensure_future(session.submit_turn("q"))
        await asyncio.sleep(0.1)
        session.running()["default"].cancel()
        with pytest.raises(RequestCancelled):
            await waiting

    asyncio.run(scene())


def _usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {"input_tokens": input_tokens, "output_tokens": output_tokens}


@pytest.mark.req("S12", "dec11")
def test_a_cancelled_submit_stops_its_turn(bench: Bench) -> None:
    """Interrupting the cell that waits leaves nothing running, and what was said is recorded."""

    async def scene() -> None:
        session = await bench.session(SLOW)
        waiting = asyncio.ensure_future(session.submit_turn("q"))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not session.running()
        assert session.history()[-1].payload.cause == "stopped"  # type: ignore[union-attr]

    asyncio.run(scene())


@pytest.mark.req("E6")
def test_a_reader_may_leave_and_go_on(bench: Bench) -> None:
    """Breaking out of the events and reading on loses none, from any loop."""

    async def scene() -> None:
        session = await bench.session({"text": "one two three four", "chunk_delay_s": 0.02})
        turn = await session.send_message("q")
        read: list[int] = []
        while not turn.is_done or len(read) < 6:
            async for event in turn:
                read.append(event.sequence)
                break
            else:
                break
        read += [event.sequence async for event in turn]
        assert read == list(range(len(read)))
        assert len(read) == 6

    asyncio.run(scene())


@pytest.mark.req("E5", "dec6", "E21")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "A prompt is text"),
        ([1, 2], "A prompt is text"),
        ([Image(data="aGk=", media_type="image/tiff")], "image/tiff"),
        ([Image(data="A" * 30_000_000, media_type="image/png")], "20 MB are allowed"),
    ],
    ids=["none", "numbers", "tiff", "too large"],
)
def test_what_is_no_prompt_is_refused(bench: Bench, given: Any, says: str) -> None:
    """One sentence says what a prompt may be; nothing is sent."""

    async def scene() -> None:
        session = await bench.session("a")
        with pytest.raises(InputValidation, match=says):
            await session.submit_turn(given)
        assert bench.provider.requests == []

    asyncio.run(scene())
