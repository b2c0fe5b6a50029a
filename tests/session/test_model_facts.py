"""What is known of a model: a person's word, its server's, a list's, and else 128,000 (P7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.chat import UNKNOWN_WINDOW
from agent_magics.core.config import AgentConfig, ModelFacts
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
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
