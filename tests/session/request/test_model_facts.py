"""What is known of a model: a person's word, its server's, a list's, and else 128,000."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.tokens import IMAGE_TOKENS
from agent_magics.core.chat import UNKNOWN_WINDOW, ModelInfo
from agent_magics.core.config import AgentConfig, ModelFacts
from agent_magics.core.events import Usage
from agent_magics.core.messages import Image, Text, UserInput
from agent_magics.core.turns import Completed, Failed
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.request.request_builder import digest_of
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from tests.session.conftest import Bench

MODEL = "scripted:test"


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.req("P7", "dec30")
@pytest.mark.parametrize(
    ("told", "said", "window"),
    [
        (None, {}, UNKNOWN_WINDOW),
        (9_000, {}, 9_000),
        (9_000, {MODEL: ModelFacts(context_window=50_000)}, 50_000),
        (9_000, {MODEL: ModelFacts(context_window=4_000)}, 4_000),
        (9_000, {MODEL: ModelFacts(has_tools=False)}, 9_000),
        (None, {MODEL: ModelFacts(context_window=300_000)}, 300_000),
        (9_000, {"scripted:other": ModelFacts(context_window=4_000)}, 9_000),
    ],
)
def test_a_persons_word_goes_before_the_servers(
    told: int | None, said: dict[str, ModelFacts], window: int
) -> None:
    """The budget counts with it, from the first request on."""

    async def scene() -> None:
        provider = ScriptedProvider(["ok"], context_window=told)
        builder = AgentBuilder(AgentConfig(default_model=MODEL, models=said))
        agent = await builder.register_model_provider(provider).build()
        session = await agent.new_session()
        await session.describe_model()
        assert session.context_info().limits.window == window
        await session.submit_turn("go")
        assert session.context_info().limits.window == window
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("P7")
def test_tools_are_kept_from_a_model_that_breaks_on_them(bench: Bench) -> None:
    """Whatever its server says that it can."""

    async def scene() -> None:
        said = {MODEL: ModelFacts(has_tools=False)}
        session = await bench.session("ok", "ok", tools=[look], models=said)
        await session.submit_turn("go")
        assert bench.provider.requests[0].tools == ()

    asyncio.run(scene())


PICTURE = UserInput(
    content=(Text(text="What is this?"), Image(data="QUJD", media_type="image/png"))
)


class Seeing(ScriptedProvider):
    """A scripted model of which its server tells whether it sees."""

    def __init__(self, steps: list[Any], *, sees: bool | None) -> None:
        super().__init__(steps)
        self._sees = sees

    async def describe(self, model: str) -> ModelInfo:
        return ModelInfo(name=model, provider="scripted", has_vision=self._sees)


@pytest.mark.req("P1", "P7")
@pytest.mark.parametrize(
    ("told", "said", "is_sent"),
    [
        (None, None, True),
        (True, None, True),
        (False, None, False),
        (None, False, False),
        (True, False, False),
        (False, True, True),
    ],
)
def test_an_image_is_refused_only_where_somebody_said_it_is_not_seen(
    told: bool | None,  # noqa: FBT001 - a table's column
    said: bool | None,  # noqa: FBT001
    is_sent: bool,  # noqa: FBT001
) -> None:
    """In a sentence, before anything is sent; a person's word goes before the server's."""

    async def scene() -> None:
        provider = Seeing(["A cat."], sees=told)
        config = AgentConfig(default_model=MODEL, models={MODEL: ModelFacts(has_vision=said)})
        agent = await AgentBuilder(config).register_model_provider(provider).build()
        session = await agent.new_session()
        outcome = await (await session.send_message(PICTURE)).join()
        if is_sent:
            assert isinstance(outcome, Completed)
            assert "QUJD" in str(provider.requests)
        else:
            assert isinstance(outcome, Failed)
            assert f"{MODEL} takes no images." in outcome.error.message
            assert provider.requests == []
            (refused,) = [
                each.payload
                for each in session._open_session.loaded.events
                if isinstance(each.payload, Usage)
            ]
            assert refused.attempt == 0
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("P1")
def test_a_blind_model_is_told_of_earlier_images_in_a_word(bench: Bench) -> None:
    """What another model saw stays in the log, and in what that one is sent again."""

    async def scene() -> None:
        said = {"scripted:blind": ModelFacts(has_vision=False)}
        session = await bench.session("A cat.", "Grey.", "Yes.", models=said)
        await session.submit_turn(PICTURE)
        for model in ("scripted:blind", MODEL):
            await session.set_model(model)
            await session.submit_turn("and?")
        _, blind, again = map(str, bench.provider.requests)
        assert "QUJD" not in blind
        assert "not shown to you" in blind
        assert "QUJD" in again

    asyncio.run(scene())


@pytest.mark.req("P1", "C6", "N13")
def test_what_a_blind_model_is_sent_is_what_is_weighed_and_shown(bench: Bench) -> None:
    """One request for the views, the budget, the digest, the limit and the provider."""

    async def scene() -> None:
        said = {"scripted:blind": ModelFacts(has_vision=False)}
        session = await bench.session("A cat.", "Grey.", models=said)
        await session.submit_turn(PICTURE)
        seeing = session.next_request().info.used
        await session.set_model("scripted:blind")
        assert session.next_request().info.used < seeing - IMAGE_TOKENS / 2
        await session.submit_turn("and?")
        sent = bench.provider.requests[-1]
        used = [
            e.payload for e in session._open_session.loaded.events if isinstance(e.payload, Usage)
        ]
        assert used[-1].digest == digest_of(sent)
        assert used[-1].estimated_input_tokens < IMAGE_TOKENS
        assert session.next_request().request.messages[: len(sent.messages)] == sent.messages

    asyncio.run(scene())
