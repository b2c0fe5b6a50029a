"""Turns in which the model calls tools."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.errors import InputValidation, MaxToolCallsExceeded
from agent_magics.core.events import (
    SystemMessage,
    ToolAnswered,
    ToolCalled,
)
from agent_magics.core.messages import Assistant, ToolResult, User, text_of
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    Failed,
    TextChunk,
    ToolEnded,
    ToolStarted,
    TurnCancelled,
)
from agent_magics.session.state.running_turn import CancelToken
from agent_magics.tools.schema import tool
from tests.session.approving import ended
from tests.session.telling import events_of, kinds

if TYPE_CHECKING:
    from tests.session.conftest import Bench


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.req("E8")
def test_tools_run_in_the_loop(bench: Bench) -> None:
    """A call is recorded, run, its result recorded and sent, and the answer follows."""

    async def scene() -> None:
        session = await bench.session(
            {"text": "Let me see.", "calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]},
            "It is 5.",
            tools=[add],
        )
        shown = await events_of(session, "2+3?")
        started = [event for event in shown if isinstance(event, ToolStarted)]
        ended = [event for event in shown if isinstance(event, ToolEnded)]
        assert [(e.tool_name, e.arguments) for e in started] == [("add", {"a": 2, "b": 3})]
        assert [e.output.content for e in ended] == ["5"]
        assert kinds(session) == [
            "user_message",
            "assistant_message",
            "tool_call",
            "tool_result",
            "assistant_message",
        ]
        _, user, asked, result = bench.provider.requests[-1].messages
        assert isinstance(user, User)
        assert isinstance(asked, Assistant)
        assert isinstance(result, ToolResult)
        assert asked.calls[0].call_id == result.call_id
        assert [t.name for t in bench.provider.requests[0].tools] == ["add"]

    asyncio.run(scene())


@pytest.mark.req("E8", "E9")
def test_a_failing_tool_is_a_result(bench: Bench) -> None:
    """The model reads what went wrong, and the turn completes."""

    @tool
    def broken() -> str:
        raise KeyError("price")

    async def scene() -> None:
        session = await bench.session({"calls": [{"name": "broken"}]}, "Sorry.", tools=[broken])
        reply = await session.submit_turn("q")
        assert reply.text == "Sorry."
        assert reply.tool_calls == ("broken",)
        result = bench.provider.requests[-1].messages[-1]
        assert isinstance(result, ToolResult)
        assert result.is_error
        assert "KeyError: 'price'" in result.content

    asyncio.run(scene())


@pytest.mark.req("E11", "dec13")
def test_too_many_calls_close_the_turn(bench: Bench) -> None:
    """Calls past the limit don't run; one closing reply comes without tools; the turn fails."""
    ran: list[int] = []

    @tool
    def count() -> int:
        ran.append(1)
        return len(ran)

    async def scene() -> None:
        three = {"calls": [{"name": "count"}] * 3}
        session = await bench.session(
            three, "That is all.", tools=[count], max_tool_calls_per_turn=2
        )
        turn = await session.send_message("go")
        outcome = await turn.join()
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, MaxToolCallsExceeded)
        assert outcome.reply.text == "That is all."
        assert len(ran) == 2
        results = [e.payload for e in session.history() if isinstance(e.payload, ToolAnswered)]
        assert len(results) == 3
        assert "limit of tool calls" in results[-1].output.content
        notices = [e.payload for e in session.history() if isinstance(e.payload, SystemMessage)]
        assert notices[0].text.startswith("[TOOL_LIMIT_REACHED]")
        assert bench.provider.requests[-1].tool_choice == "none"

    asyncio.run(scene())


@pytest.mark.req("E9", "E12", "dec11")
def test_a_stop_waits_for_the_running_tool(bench: Bench) -> None:
    """The tool that runs is finished and recorded, the others are cancelled, no request follows."""

    @tool(mutating=True)
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "finished"

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "slow"}, {"name": "slow"}]}, tools=[slow], approval={"*": "auto"}
        )
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, ToolStarted):
                turn.cancel()
                break
        assert isinstance(await turn.join(), Cancelled)
        results = [e.payload for e in session.history() if isinstance(e.payload, ToolAnswered)]
        assert [r.output.content for r in results] == ["finished", "[Tool cancelled]"]
        assert len(bench.provider.requests) == 1

    asyncio.run(scene())


@pytest.mark.req("E5", "dec12")
def test_steering_goes_with_the_next_request(bench: Bench) -> None:
    """A message added while a tool runs is in the request that follows, in the same turn."""

    async def scene() -> None:
        @tool
        async def wait() -> str:
            await asyncio.sleep(0.1)
            return "done"

        session = await bench.session({"calls": [{"name": "wait"}]}, "ok", tools=[wait])
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, ToolStarted):
                await turn.steer("only in euros")
        assert isinstance(await turn.join(), Completed)
        assert len(session.turns()) == 1
        last = bench.provider.requests[-1].messages[-1]
        assert isinstance(last, User)
        assert text_of(last.content) == "only in euros"

    asyncio.run(scene())


@pytest.mark.req("E1")
def test_calls_get_ids_of_their_own(bench: Bench) -> None:
    """Servers reuse ids; in the ledger each call of a turn has its own, and its result the same."""

    async def scene() -> None:
        step = {"calls": [{"name": "add", "arguments": {"a": 1, "b": 1}}] * 2}
        session = await bench.session(step, step, "done", tools=[add])
        await session.submit_turn("q")
        history = session.history()
        calls = [e.payload.call_id for e in history if isinstance(e.payload, ToolCalled)]
        results = [e.payload.call_id for e in history if isinstance(e.payload, ToolAnswered)]
        assert len(set(calls)) == 4
        assert sorted(calls) == sorted(results)

    asyncio.run(scene())


@pytest.mark.req("inv13")
def test_what_people_and_tools_write_is_cleaned_before_it_is_recorded(bench: Bench) -> None:
    """No NUL of a prompt, a steering message or a tool is kept or sent."""

    @tool
    async def read() -> str:
        await asyncio.sleep(0.05)
        return "file\0name"

    async def scene() -> None:
        session = await bench.session({"calls": [{"name": "read"}]}, "ok", tools=[read])
        turn = await session.send_message("a\0b")
        async for event in turn:
            if isinstance(event.payload, ToolStarted):
                await turn.steer("c\0d")
        assert isinstance(await turn.join(), Completed)
        sent = bench.provider.requests[-1].messages
        texts = [
            m.content if isinstance(m, ToolResult) else text_of(m.content)
            for m in sent
            if isinstance(m, User | ToolResult)
        ]
        assert sorted(texts) == ["a\\x00b", "c\\x00d", "file\\x00name"]

    asyncio.run(scene())


@pytest.mark.req("E6", "E11", "dec13")
def test_calls_past_the_limit_start_and_end_too(bench: Bench) -> None:
    """Whoever shows the turn sees each call begin before it ends; the frame says it failed."""

    async def scene() -> None:
        step = {"calls": [{"name": "add", "arguments": {"a": 1, "b": 1}}] * 3}
        session = await bench.session(step, step, tools=[add], max_tool_calls_per_turn=2)
        shown = await events_of(session, "go")
        calls = [
            (type(event), event.call_id)
            for event in shown
            if isinstance(event, ToolStarted | ToolEnded)
        ]
        for call_id in {call_id for _, call_id in calls}:
            assert [kind for kind, each in calls if each == call_id] == [ToolStarted, ToolEnded]
        assert len({call_id for _, call_id in calls}) == 3
        assert kinds(session).count("tool_call") == 3
        assert session.frames.turns()["outcome"].tolist() == ["failed"]

    asyncio.run(scene())


@pytest.mark.req("E12", "E18", "inv10", "inv16")
def test_a_stop_at_the_limit_leaves_no_call_open(bench: Bench) -> None:
    """Every call has its result when the turn ends, so a resume finds the same."""

    @tool
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "finished"

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "slow"}] * 3},
            tools=[slow],
            max_tool_calls_per_turn=2,
            session_id="s",
        )
        turn = await session.send_message("go")
        async for event in turn:
            if isinstance(event.payload, ToolStarted):
                turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        before = session.history()
        assert kinds(session).count("tool_result") == 3
        await session.close()
        assert (await bench.resumed("s")).history() == before

    asyncio.run(scene())


@pytest.mark.req("E8", "inv3", "inv16")
def test_results_go_to_the_model_in_the_order_of_the_calls(bench: Bench) -> None:
    """The ledger has them as they came; the request, live and reloaded, as they were asked for."""
    done = [asyncio.Event() for _ in range(4)]
    steered = threading.Event()

    @tool
    async def nth(n: int) -> str:
        if n < 3:
            await done[n + 1].wait()
        while n == 0 and not steered.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        done[n].set()
        return f"result {n}"

    async def scene() -> None:
        step = {"calls": [{"name": "nth", "arguments": {"n": n}} for n in range(4)]}
        session = await bench.session(step, "ok", tools=[nth], session_id="s")
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, ToolEnded):
                await turn.steer("faster")
                steered.set()
                break
        assert isinstance(await turn.join(), Completed)
        results = [e.payload for e in session.history() if isinstance(e.payload, ToolAnswered)]
        assert [result.output.content for result in results] == [
            "result 3",
            "result 2",
            "result 1",
            "result 0",
        ]
        sent = bench.provider.requests[-1].messages
        asked, *told = sent[2:7]
        assert isinstance(asked, Assistant)
        assert [m.content for m in told if isinstance(m, ToolResult)] == [
            f"result {n}" for n in range(4)
        ]
        assert [call.call_id for call in asked.calls] == [
            m.call_id for m in told if isinstance(m, ToolResult)
        ]
        live = session.messages()
        await session.close()
        assert (await bench.resumed("s")).messages() == live

    asyncio.run(scene())


@pytest.mark.req("E5", "E9", "E20.18")
def test_an_outside_token_stops_tools_as_cancel_does(bench: Bench) -> None:
    """What runs is waited for and recorded, what had not begun gets `[Tool cancelled]`."""
    token = CancelToken()

    @tool(mutating=True)
    async def slow() -> str:
        token.cancel()
        await asyncio.sleep(0.02)
        return "finished"

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "slow"}] * 3}, tools=[slow], approval={"*": "auto"}
        )
        turn = await session.send_message("q", cancel=token)
        shown = [event.payload async for event in turn]
        assert isinstance(await turn.join(), Cancelled)
        assert [end.output.content for end in ended(shown).values()] == [
            "finished",
            "[Tool cancelled]",
            "[Tool cancelled]",
        ]
        assert isinstance(shown[-1], TurnCancelled)

    asyncio.run(scene())


@pytest.mark.req("dec12")
def test_what_steers_the_last_answer_is_answered_too(bench: Bench) -> None:
    """It stands behind the answer that didn't know of it, and the turn asks once more."""

    async def scene() -> None:
        session = await bench.session({"text": "one two", "chunk_delay_s": 0.1}, "in euros: 2")
        turn = await session.send_message("how much?")
        async for event in turn:
            if isinstance(event.payload, TextChunk):
                break
        await turn.steer("in euros, please")
        assert isinstance(await turn.join(), Completed)
        assert [said(message) for message in session.messages()] == [
            "how much?",
            "one two",
            "in euros, please",
            "in euros: 2",
        ]
        with pytest.raises(InputValidation, match="has ended"):
            await turn.steer("late")

    asyncio.run(scene())


def said(message: Any) -> str:
    return text_of(message.content)
