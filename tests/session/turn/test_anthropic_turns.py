"""Turns with Anthropic behind them: what the ledger keeps of its thoughts and counts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.events import Usage
from agent_magics.core.turns import Failed
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.session.agent import Agent
from agent_magics.session.builder import AgentBuilder
from agent_magics.tools.schema import tool
from tests.providers.answers import anthropic_server
from tests.providers.anthropic.examples import (
    START,
    STOP,
    events,
    hello,
    opened,
    piece,
    stopped,
)

THOUGHT = {"type": "thinking", "thinking": "Add them.", "signature": "sig"}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calling() -> httpx.Response:
    return events(
        START,
        opened(0, type="thinking", thinking="", signature=""),
        piece(0, type="thinking_delta", thinking="Add them."),
        piece(0, type="signature_delta", signature="sig"),
        opened(1, type="tool_use", id="toolu_1", name="add", input={}),
        piece(1, type="input_json_delta", partial_json='{"a": 2, "b": 3}'),
        opened(2, type="tool_use", id="toolu_2", name="add", input={"a": 4, "b": 5}),
        stopped("tool_use", output_tokens=20),
        STOP,
    )


def broken() -> httpx.Response:
    return events(
        START,
        opened(0, type="text", text="par"),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    )


class Network:
    """Answers in turn, and the bodies that were asked for them."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/messages":
            return httpx.Response(404, json={})
        self.bodies.append(json.loads(request.content))
        return self._answers.pop(0)


async def built(store: SqlStore, network: Network) -> Agent:
    config = AgentConfig(default_model="anthropic:m", session_memory_tools=False)
    builder = AgentBuilder(config).register_model_provider(anthropic_server(network))
    return await builder.register_tool(add).register_session_storage(store).build()


@pytest.mark.req("P2", "dec5")
def test_thoughts_outlive_the_process_as_they_came(tmp_path: Path) -> None:
    """Parallel calls are answered in one message behind the thought; a resumed session has it."""

    async def scene() -> None:
        network = Network(calling(), hello("5 and 9"), hello("bye"))
        store = SqlStore(tmp_path / "ledger.db")
        async with await built(store, network) as agent:
            session = await agent.new_session(SessionConfig(session_id="s"))
            assert (await session.submit_turn("2+3, 4+5?")).text == "5 and 9"
        async with await built(store, network) as agent:
            session = await agent.resume_session("s")
            await session.submit_turn("Thanks.")
        await store.aclose()
        for body in network.bodies[1:]:
            _, answer, results, *_ = body["messages"]
            thought, *calls = answer["content"]
            assert thought == THOUGHT
            assert [call["input"] for call in calls] == [{"a": 2, "b": 3}, {"a": 4, "b": 5}]
            assert [r["content"] for r in results["content"]] == ["5", "9"]
            assert [r["tool_use_id"] for r in results["content"]] == [c["id"] for c in calls]

    asyncio.run(scene())


@pytest.mark.req("P2", "dec42")
def test_what_a_broken_answer_cost_is_in_the_ledger(tmp_path: Path) -> None:
    """The server had counted before it broke off."""

    async def scene() -> None:
        store = SqlStore(tmp_path / "ledger.db")
        async with await built(store, Network(broken())) as agent:
            session = await agent.new_session(SessionConfig(session_id="s"))
            turn = await session.send_message("hi")
            outcome = await turn.join()
            assert isinstance(outcome, Failed)
            assert outcome.reply.text == "par"
            assert outcome.reply.usage is not None
            state = await store.load("s")
            assert state is not None
            spent = [e.payload for e in state.events if isinstance(e.payload, Usage)]
        await store.aclose()
        assert [(each.input_tokens, each.output_tokens) for each in spent] == [(9, 1)]

    asyncio.run(scene())
