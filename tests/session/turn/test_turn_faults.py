"""Turns whose provider misbehaves in ways that no adapter of ours does: it may be anybody's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo, TextDelta
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import ModelError, NoModel
from agent_magics.core.events import AssistantMessage, UserMessage
from agent_magics.core.messages import text_of
from agent_magics.core.turns import Cancelled, Failed, Panicked, TextChunk, TurnOutcome
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session

Ends = Callable[[], Awaitable[None]]


class Foreign:
    """A provider that says one word and ends as it is told."""

    provider_id = "foreign"

    def __init__(self, ends: Ends, *, describes: Ends | None = None) -> None:
        self._ends = ends
        self._describes = describes

    async def models(self) -> Sequence[ModelInfo]:
        return ()

    async def describe(self, model: str) -> ModelInfo:
        if self._describes:
            await self._describes()
        return ModelInfo(name=model, provider="foreign")

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield TextDelta(text="partial")
        await self._ends()

    async def aclose(self) -> None:
        pass


async def session_on(provider: Foreign) -> Session:
    config = AgentConfig(default_model="foreign:m")
    agent = await AgentBuilder(config).register_model_provider(provider).build()
    return await agent.new_session()


async def no_model() -> None:
    raise NoModel("start one")


async def bug() -> None:
    raise RuntimeError("boom")


async def gives_up() -> None:
    raise asyncio.CancelledError


@pytest.mark.req("E6", "dec9", "dec16", "inv10")
@pytest.mark.parametrize(
    ("ends", "outcome", "cause"),
    [
        pytest.param(no_model, Failed, "failed", id="an error of ours"),
        pytest.param(bug, Panicked, "failed", id="a bug"),
        pytest.param(gives_up, Failed, "connection lost", id="a cancel of its own"),
    ],
)
def test_what_was_shown_is_kept_however_the_provider_fails(
    ends: Ends, outcome: type[TurnOutcome], cause: str
) -> None:
    """The text so far is in the ledger, once, with why there is no more of it."""

    async def scene() -> None:
        session = await session_on(Foreign(ends))
        ended = await (await session.send_message("q")).join()
        assert isinstance(ended, outcome)
        assert ended.reply.text == "partial"
        answers = [e.payload for e in session.history() if isinstance(e.payload, AssistantMessage)]
        assert [(text_of(a.content), a.status, a.cause) for a in answers] == [
            ("partial", "incomplete", cause)
        ]
        await session.close()

    asyncio.run(scene())


@pytest.mark.req("N7", "dec11", "dec8")
def test_a_stop_is_heard_before_the_server_has_described_its_model() -> None:
    """The prompt is recorded, the cell ends at once."""

    async def hangs() -> None:
        await asyncio.sleep(5)

    async def scene() -> None:
        session = await session_on(Foreign(bug, describes=hangs))
        turn = await session.send_message("q")
        await asyncio.sleep(0.05)
        began = time.monotonic()
        turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        assert time.monotonic() - began < 1
        said = [event.payload for event in session.history()]
        assert [type(payload) for payload in said] == [UserMessage, AssistantMessage]
        await session.close()

    asyncio.run(scene())


@pytest.mark.req("dec16")
def test_a_model_that_cannot_be_described_is_asked_all_the_same() -> None:
    """What a server doesn't tell is no error; the request says what is wrong."""

    async def scene() -> None:
        session = await session_on(Foreign(no_model, describes=no_model))
        ended = await (await session.send_message("q")).join()
        assert isinstance(ended, Failed)
        assert isinstance(ended.error, ModelError)
        assert isinstance(session.history()[0].payload, UserMessage)
        await session.close()

    asyncio.run(scene())


@pytest.mark.req("dec50")
def test_a_provider_that_will_not_end_does_not_hold_the_close_up() -> None:
    """Closing in mid-stream takes under two seconds, and the partial text is kept."""

    async def stubborn() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(2.5)

    async def scene() -> None:
        session = await session_on(Foreign(stubborn))
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, TextChunk):
                break
        began = time.monotonic()
        await session.close()
        assert time.monotonic() - began < 1.9
        assert turn.is_done
        assert (await turn.join()).reply.text == "partial"

    asyncio.run(scene())
