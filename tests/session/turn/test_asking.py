"""Providers that keep no promise: the turn ends in words, and what is stored can be read again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent_magics.core.chat import CallReady, ChatRequest, Done, ModelInfo, Retrying, TextDelta
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import ProviderError
from agent_magics.core.events import AssistantMessage, ToolAnswered, ToolCalled
from agent_magics.core.messages import ToolCall, text_of
from agent_magics.core.turns import Cancelled, Completed, Failed, Panicked, TurnOutcome
from agent_magics.core.values import TokenUsage
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool

Speak = Callable[[ChatRequest], AsyncIterator[Any]]
SAID = TextDelta(text="so far ")


class Foreign:
    """Somebody's provider: each request is answered by the next of its speakers."""

    provider_id = "foreign"

    def __init__(self, *speakers: Speak, told: Any = None) -> None:
        self._speakers = list(speakers)
        self._told = told

    async def models(self) -> tuple[ModelInfo, ...]:
        return ()

    async def describe(self, model: str) -> Any:
        return self._told or ModelInfo(name=model, provider="foreign")

    def chat(self, request: ChatRequest) -> AsyncIterator[Any]:
        return self._speakers.pop(0)(request)

    async def aclose(self) -> None:
        """Nothing is held."""


def speaker(*events: Any, error: BaseException | None = None) -> Speak:
    async def speak(_: ChatRequest) -> AsyncIterator[Any]:
        for event in events:
            yield event
        if error is not None:
            raise error

    return speak


def a_call(arguments: Any, name: Any = "f") -> CallReady:
    return CallReady(call=ToolCall(call_id="x", tool_name=name, arguments=arguments))


async def session_with(provider: Any) -> Session:
    @tool
    async def f() -> str:
        return "ran"

    builder = AgentBuilder(AgentConfig(default_model="foreign:m"))
    agent = await builder.register_model_provider(provider).register_tool(f).build()
    return await agent.new_session()


def outcome_of(provider: Any) -> tuple[TurnOutcome, Session]:
    async def scene() -> tuple[TurnOutcome, Session]:
        session = await session_with(provider)
        turn = await session.send_message("hi")
        return await asyncio.wait_for(turn.join(), 5), session

    return asyncio.run(scene())


def said(session: Session) -> list[str]:
    events = [event.payload for event in session.history()]
    return [text_of(payload.content) for payload in events if isinstance(payload, AssistantMessage)]


WRONG: dict[str, Any] = {
    "text": TextDelta(text=5),  # type: ignore[arg-type]
    "call": CallReady(call=None),  # type: ignore[arg-type]
    "name": a_call({}, name=None),
    "usage": Done(usage=TokenUsage(input_tokens=10**30, output_tokens=1)),
    "reasoning": Done(reasoning="x"),  # type: ignore[arg-type]
    "wait": Retrying(attempt=1, reason="", wait_s=float("nan")),
}


@pytest.mark.parametrize("event", WRONG.values(), ids=WRONG.keys())
@pytest.mark.req("inv16")
def test_an_event_of_wrong_types_fails_the_turn_in_words(event: Any) -> None:
    """What was said before is kept."""
    outcome, session = outcome_of(Foreign(speaker(SAID, event, Done())))
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, ProviderError)
    assert "broke its contract" in outcome.error.message
    assert said(session) == ["so far "]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), BaseException("odd")])
@pytest.mark.req("dec16", "inv10")
def test_no_exception_of_a_provider_ends_the_loop(error: BaseException) -> None:
    """The turn is recorded as failed, its text kept, and the session goes on."""
    outcome, session = outcome_of(Foreign(speaker(SAID, error=error)))
    assert isinstance(outcome, Panicked)
    assert said(session) == ["so far "]


@pytest.mark.req("dec16")
def test_an_error_that_can_not_be_printed_ends_the_turn() -> None:
    """Nobody waits for ever because an exception's own text fails."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    outcome, _ = outcome_of(Foreign(speaker(SAID, error=Mute())))
    assert isinstance(outcome, Panicked)


@pytest.mark.parametrize("arguments", [[1], "x", {"x": float("nan")}, {"x": object()}, {"x": {1}}])
@pytest.mark.req("inv3")
def test_arguments_that_are_no_json_object_do_not_run(arguments: Any) -> None:
    """The call and its one result are recorded; a strict server takes the next request."""
    outcome, session = outcome_of(
        Foreign(speaker(a_call(arguments), Done()), speaker(SAID, Done()))
    )
    assert isinstance(outcome, Completed)
    payloads = [event.payload for event in session.history()]
    assert [p.arguments for p in payloads if isinstance(p, ToolCalled)] == [None]
    assert [p.output.is_error for p in payloads if isinstance(p, ToolAnswered)] == [True]


@pytest.mark.req("P1")
def test_done_ends_an_answer_whatever_comes_after() -> None:
    """A stream that is not closed after its last event is not waited for."""

    async def goes_on(_: ChatRequest) -> AsyncIterator[Any]:
        yield SAID
        yield Done()
        yield TextDelta(text="late")
        await asyncio.sleep(1000)

    outcome, session = outcome_of(Foreign(goes_on))
    assert isinstance(outcome, Completed)
    assert said(session) == ["so far "]


@pytest.mark.req("dec11", "dec62")
def test_a_provider_that_ignores_its_cancel_is_left() -> None:
    """After a stop it adds nothing to the answer, nor a draft behind its end."""

    async def stubborn(_: ChatRequest) -> AsyncIterator[Any]:
        for _number in range(100):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
            yield SAID

    async def scene() -> None:
        session = await session_with(Foreign(stubborn))
        turn = await session.send_message("hi")
        await asyncio.sleep(0.1)
        turn.cancel()
        assert isinstance(await asyncio.wait_for(turn.join(), 1), Cancelled)
        before = said(session), turn.text_so_far
        await asyncio.sleep(0.1)
        assert (said(session), turn.text_so_far) == before

    asyncio.run(scene())


@pytest.mark.parametrize("told", [5, ModelInfo(name="m", provider="p", context_window="x")])  # type: ignore[arg-type]
@pytest.mark.req("P7")
def test_a_description_of_wrong_types_tells_nothing(told: Any) -> None:
    """The model is used as one that nobody described."""
    outcome, _ = outcome_of(Foreign(speaker(SAID, Done()), told=told))
    assert isinstance(outcome, Completed)


@pytest.mark.req("dec13")
def test_thousands_of_calls_are_refused_at_once() -> None:
    """Calls past the limit get their results in one transaction, so a stop isn't held up."""
    calls = [a_call({}) for _ in range(2_000)]
    outcome, session = outcome_of(Foreign(speaker(*calls, Done()), speaker(SAID, Done())))
    assert isinstance(outcome, Failed)
    results = [e for e in session.history() if isinstance(e.payload, ToolAnswered)]
    assert len(results) == len(calls)


@pytest.mark.req("E9")
def test_a_bare_next_in_a_tool_is_its_error(bench: Any) -> None:
    """`StopIteration` comes back from the main thread at once, not after the time-out."""

    @tool
    def first() -> str:
        return next(iter(()))

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "first"}]}, "ok", tools=[first], tool_timeout_ms=5_000
        )
        turn = await session.send_message("go")
        assert isinstance(await asyncio.wait_for(turn.join(), 2), Completed)
        (result,) = [
            p.output for e in session.history() if isinstance(p := e.payload, ToolAnswered)
        ]
        assert "StopIteration" in result.content

    asyncio.run(scene())
