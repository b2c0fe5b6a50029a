"""A model whose address hides a password and a key: no sentence and no output shows them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agent_magics
from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import AgentError
from agent_magics.core.messages import Image, Text, UserInput
from agent_magics.core.money import SpendingLimit
from agent_magics.core.turns import Failed
from agent_magics.notebook.views.ledger.lines import line_of, parts_of
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.request.turn_spending import TurnSpending
from agent_magics.session.session import Session

MODEL = "scripted:m@http://me:a-password@host/v1?code=a-code"
SHOWN = "scripted:m@http://host/v1"
LONG = "word " * 2_000
ROOT = Path(agent_magics.__file__).parent
HIDDEN = ("a-password", "a-code")


class Blind(ScriptedProvider):
    """A model that takes no images, and fails in words of its own once it is broken."""

    is_broken = False

    async def describe(self, model: str) -> ModelInfo:
        told = await super().describe(model)
        return msgspec.structs.replace(told, has_vision=False)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        if self.is_broken:
            raise OSError(f"no answer from {MODEL}")
        async for event in super().chat(request):
            yield event


async def opened(*steps: Any) -> tuple[Blind, Session]:
    provider = Blind(list(steps), context_window=200_000)
    config = AgentConfig(default_model=MODEL, compaction=CompactionConfig(keep_recent_tokens=50))
    agent = await AgentBuilder(config).register_model_provider(provider).build()
    return provider, await agent.new_session()


def check(said: str) -> None:
    assert not [part for part in HIDDEN if part in said], said


@pytest.mark.req("dec66")
def test_no_sentence_shows_what_an_address_hides() -> None:
    """Of a picture, of a summary that called a tool, was cut, or found nobody."""

    async def scene() -> None:
        a_call = {"calls": [{"name": "x", "arguments": {}}]}
        cut = {"text": "half", "finish": "length"}
        provider, session = await opened(LONG, LONG, LONG, a_call, cut, "no summary")
        for number in range(3):
            await session.submit_turn(f"{number} {LONG}")
        said = []
        for is_broken in (False, False, False, True):
            provider.is_broken = is_broken
            with pytest.raises(AgentError) as raised:
                await session.compact()
            said.append(raised.value.message)
        picture = UserInput(
            content=(Text(text="What?"), Image(data="QUJD", media_type="image/png"))
        )
        outcome = await (await session.send_message(picture)).join()
        assert isinstance(outcome, Failed)
        said.append(outcome.error.message)
        panicked = await session.send_message("again")
        seen = [msgspec.to_builtins(event.payload) async for event in panicked]
        (failed,) = [event["message"] for event in seen if event["type"] == "turn_failed"]
        assert "no answer from" in failed
        check(failed)
        words = ["called a tool", "output limit", "was refused", "failed: OSError", "takes no"]
        for sentence, part in zip(said, words, strict=True):
            assert SHOWN in sentence
            assert part in sentence
        check("\n".join(said))
        for event in session._open_session.loaded.events:
            check(line_of(event.payload))
            check("\n".join(part.text for part in parts_of(event.payload)))

    asyncio.run(scene())


@pytest.mark.req("dec66", "D1")
def test_frames_show_no_more_than_outputs_do() -> None:
    """Their model columns and payloads too; the ledger keeps what it asks again by."""

    async def scene() -> None:
        _, session = await opened({"text": "Hello", "reasoning": "hm"})
        await session.submit_turn("go")
        await session.derive_slot("side", "default")
        await session.configure_slot("side", model=MODEL)
        frames = session.frames
        assert frames.turns()["model"].tolist() == [SHOWN]
        assert frames.usage()["model"].tolist() == [SHOWN]
        assert SHOWN in frames.slots()["model"].tolist()
        for name in ("events", "turns", "usage", "slots", "tool_calls", "checkpoints"):
            check(getattr(frames, name)().to_csv())
        assert "m@http://host/v1" in frames.events().to_csv()
        assert session.model == MODEL

    asyncio.run(scene())


@pytest.mark.req("dec66", "dec57")
def test_the_note_on_prices_shows_no_more() -> None:
    """It is a warning of a turn."""
    config = AgentConfig(default_model=MODEL, max_cost_per_turn=SpendingLimit(usd=1.0))
    said = TurnSpending(config=config, session=lambda: None).warning(MODEL, is_priced=False)  # type: ignore[arg-type,return-value]
    assert said
    assert SHOWN in said
    check(said)


@pytest.mark.req("dec66")
@pytest.mark.parametrize("room", ["core", "context", "providers", "session", "tools"])
def test_sentences_name_models_by_their_shown_names(room: str) -> None:
    """A whole name in a sentence may carry a password: `shown` stands there instead of `spec`."""
    for path in (ROOT / room).rglob("*.py"):
        found = re.findall(r"\{[\w.]*\bspec\}", path.read_text("utf-8"))
        assert found == [], path.name
