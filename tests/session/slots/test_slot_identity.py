"""One identity a slot: its own prompt, model, tools and parameters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.messages import System, ToolResult
from agent_magics.core.slots import ModelParams, SlotConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.agent import Agent
from agent_magics.session.builder import AgentBuilder
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from tests.session.conftest import Bench


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool
def count() -> str:
    """Count."""
    return "seven"


REVIEWER = SlotConfig(
    system_prompt="You are a reviewer.",
    model="strict:grave",
    tools=("count",),
    params=ModelParams(temperature=0.9, max_tokens=77),
)


class Pair:
    """Two providers on one store; each agent made here could be another process."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def agent(self, *strict: Any) -> Agent:
        self.plain = ScriptedProvider(["plain"] * 4, provider_id="plain")
        self.strict = ScriptedProvider(list(strict), provider_id="strict")
        config = AgentConfig(default_model="plain:x", session_memory_tools=False)
        builder = AgentBuilder(config).register_session_storage(SqlStore(self.bench.path))
        for provider in (self.plain, self.strict):
            builder.register_model_provider(provider)
        for each in (look, count):
            builder.register_tool(each)
        made = await builder.build()
        self.bench._agents.append(made)
        return made


@pytest.mark.req("S16", "S2", "E18")
def test_each_slot_asks_its_own_model_with_its_own_prompt_and_tools(bench: Bench) -> None:
    """Side by side in one session, and again after a restart."""

    async def scene() -> None:
        pair = Pair(bench)
        agent = await pair.agent("strictly")
        session = await agent.new_session(SessionConfig(session_id="s"))
        await session.create_slot("review", REVIEWER)
        assert (await session.submit_turn("q", slot="review")).text == "strictly"
        assert (await session.submit_turn("q")).text == "plain"
        first = pair.strict.requests[0]
        check(first, pair.plain.requests[0])
        await agent.shutdown()
        again = await (await pair.agent("again")).resume_session("s")
        assert (await again.submit_turn("q", slot="review")).text == "again"
        assert pair.strict.requests[0].messages[0] == first.messages[0]
        assert pair.strict.requests[0].tools == first.tools
        assert pair.plain.requests == []

    def check(own: Any, other: Any) -> None:
        assert (own.model, other.model) == ("grave", "x")
        assert [each.name for each in own.tools] == ["count"]
        assert [each.name for each in other.tools] == ["look", "count"]
        assert (own.params.temperature, own.params.max_tokens) == (0.9, 77)
        assert other.params == ModelParams()
        systems = [request.messages[0] for request in (own, other)]
        said = [message.text for message in systems if isinstance(message, System)]
        assert ["You are a reviewer." in text for text in said] == [True, False]

    asyncio.run(scene())


@pytest.mark.req("S16", "E8")
def test_a_tool_that_a_slot_has_not_does_not_run_there(bench: Bench) -> None:
    """A model that calls it all the same gets an error for a result."""
    ran: list[str] = []

    @tool
    def secret() -> str:
        """Look at what only others may see."""
        ran.append("secret")
        return "seen"

    async def scene() -> None:
        calling = {"calls": [{"name": "secret"}]}
        session = await bench.session(calling, "so", calling, "so", tools=[secret, count])
        await session.create_slot("narrow", SlotConfig(tools=("count",)))
        await session.submit_turn("q", slot="narrow")
        (result,) = [m for m in session.messages("narrow") if isinstance(m, ToolResult)]
        assert result.is_error
        assert ran == []
        await session.submit_turn("q")
        assert ran == ["secret"]

    asyncio.run(scene())
