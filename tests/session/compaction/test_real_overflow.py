"""A real server's window: llama.cpp behind the embedded model with a small context."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.slots import ModelParams
from agent_magics.core.turns import Completed, ContextCompacted, TurnWarning
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.embedded.provider import EmbeddedProvider
from agent_magics.providers.embedded.weights import pull
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session

pytestmark = [pytest.mark.embedded, pytest.mark.slow]
LONG = "They talked about the price of trains in May, at length, and of the weather. " * 8


class Forgetful(EmbeddedProvider):
    """The embedded model, where nobody is told its window before the server says it."""

    async def describe(self, model: str):  # type: ignore[no-untyped-def]  # noqa: ANN201
        info = await super().describe(model)
        return type(info)(name=info.name, provider=info.provider, has_tools=False, is_demo=True)


@pytest.mark.req("C14", "C15", "dec30", "dec36", "inv5", "inv7")
def test_a_real_overflow_is_recovered(tmp_path: Path) -> None:
    """Its real error teaches the window; its summary is refused; the talk goes on, marked."""

    async def scene() -> None:
        provider = Forgetful(pull(), n_ctx=1_024)
        config = AgentConfig(
            default_model="embedded:smollm2-135m",
            compaction=CompactionConfig(keep_recent_tokens=200),
        )
        store = SqlStore(tmp_path / "ledger.sqlite")
        agent = await (
            AgentBuilder(config)
            .register_model_provider(provider)
            .register_session_storage(store)
            .build()
        )
        session = await agent.new_session()
        await session.configure_slot("default", params=ModelParams(max_tokens=8, temperature=0.0))
        compacted, warnings = await talk_until_compacted(session)
        info = session.context_info()
        assert [event.degraded for event in compacted] == [True]
        assert info.limits.window == 1_024
        assert info.degraded
        assert info.used <= info.limits.threshold
        assert any("was not compacted" in text for text in warnings)
        turns = len(session.turns())
        assert isinstance(await (await session.send_message("And now?")).join(), Completed)
        assert len(session.turns()) == turns + 1
        assert len(session.history()) >= 2 * turns
        await agent.shutdown()
        await store.aclose()

    asyncio.run(scene())


async def talk_until_compacted(session: Session) -> tuple[list[ContextCompacted], list[str]]:
    compacted: list[ContextCompacted] = []
    warnings: list[str] = []
    for number in range(10):
        turn = await session.send_message(f"{number}. {LONG}")
        async for event in turn:
            match event.payload:
                case ContextCompacted():
                    compacted.append(event.payload)
                case TurnWarning(text=text):
                    warnings.append(text)
                case _:
                    pass
        assert isinstance(await turn.join(), Completed)
        if compacted:
            return compacted, warnings
    raise AssertionError("the window of 1,024 tokens was never reached")
