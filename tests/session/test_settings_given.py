"""Settings that a slot or a session is given: checked before they are kept, cleaned like text."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import Text, User
from agent_magics.core.ports import Change, Owner
from agent_magics.core.slots import (
    ContextBudget,
    DeriveStrategy,
    Focused,
    ModelParams,
    SlotConfig,
    Static,
)
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder

if TYPE_CHECKING:
    from tests.session.conftest import Bench

BROKEN = "a\ud800\0b"
WRONG: dict[str, Any] = {
    "config": 5,
    "mode": SlotConfig(mode="full"),  # type: ignore[arg-type]
    "messages": SlotConfig(mode=Focused(recent_messages=-1)),
    "messages in a mapping": SlotConfig(
        mode={"type": "focused", "recent_messages": -3}  # type: ignore[arg-type]
    ),
    "too many messages": SlotConfig(mode=Focused(recent_messages=10_001)),
    "prompt": SlotConfig(system_prompt=5),  # type: ignore[arg-type]
    "model": SlotConfig(model=5),  # type: ignore[arg-type]
    "temperature": SlotConfig(params=ModelParams(temperature=float("nan"))),
    "max_tokens": SlotConfig(params=ModelParams(max_tokens=10**30)),
    "limit": SlotConfig(context_limit=0),
    "reserve": SlotConfig(budget=ContextBudget(reserve=-1)),
    "given": SlotConfig(source=Static(messages=(5,))),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("config", WRONG.values(), ids=WRONG.keys())
@pytest.mark.req("S2")
def test_wrong_settings_are_refused_before_they_are_kept(bench: Bench, config: Any) -> None:
    """A slot of wrong settings would break every list of the session's slots."""

    async def scene() -> None:
        session = await bench.session("ok")
        with pytest.raises(InputValidation):
            await session.create_slot("a", config)
        with pytest.raises(InputValidation):
            await session.configure_slot("default", mode="readonly")
        assert [slot.slot_id for slot in session.list_slots()] == ["default"]

    asyncio.run(scene())


@pytest.mark.req("S2")
def test_a_stored_slot_that_shows_more_than_is_allowed_now_is_used_as_before(
    bench: Bench,
) -> None:
    """It shows the most; it is configured, derived from, and asked like any other."""

    async def scene() -> None:
        await (await bench.session(session_id="s")).close()
        store = SqlStore(bench.path)
        state = await store.load("s")
        assert state is not None
        config = SlotConfig(mode=Focused(recent_messages=50_000))
        lease = await store.acquire(
            "s", Owner(pid=os.getpid(), host="here", since=datetime.now(UTC))
        )
        slot = msgspec.structs.replace(state.slots[0], config=config)
        await store.commit(lease, Change(slots=(slot,)))
        await store.release(lease)
        await store.aclose()
        session = await bench.resumed("s", "ok")
        await session.configure_slot("default", model=None)
        assert session.slot_config("default").mode == Focused(recent_messages=10_000)
        await session.derive_slot("child", "default")
        assert (await session.submit_turn("go")).text == "ok"

    asyncio.run(scene())


@pytest.mark.req("inv13", "inv16")
def test_broken_text_in_settings_stops_no_turn(bench: Bench) -> None:
    """Lone surrogates and NUL in prompts, notes and titles are cleaned, live as in the store."""

    async def scene() -> None:
        agent = await bench.agent(*["ok"] * 4, personality=BROKEN, system_instructions=(BROKEN,))
        wanted = SessionConfig(session_id="s", title=BROKEN, system_prompt_override=BROKEN)
        session = await agent.new_session(wanted)
        await session.create_slot("a", SlotConfig(system_prompt=BROKEN))
        await session.derive_slot(
            "b", "a", DeriveStrategy.focused(Focused(summary_override=BROKEN))
        )
        given = (User(content=(Text(text=BROKEN),)),)
        await session.create_slot("c", SlotConfig(source=Static(messages=given)))
        for slot in ("default", "a", "b"):
            await session.submit_turn(BROKEN, slot=slot)
        assert session.context_info("c").used > 0
        live = session.title, session.messages("b"), session.slot_config("a")
        await session.close()
        again = await bench.resumed("s")
        assert (again.title, again.messages("b"), again.slot_config("a")) == live

    asyncio.run(scene())


class Backwards:
    """A clock that is set back whenever somebody looks."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=self._looks)

    def monotonic(self) -> float:
        self._looks += 1
        return -float(self._looks)


@pytest.mark.req("inv16")
def test_a_clock_that_goes_backwards_changes_no_order(bench: Bench) -> None:
    """Slots stand in the order they were made, live and reloaded."""

    async def scene() -> None:
        store = SqlStore(bench.path)
        builder = AgentBuilder(AgentConfig(default_model="scripted:m"), clock=Backwards())
        builder.register_model_provider(ScriptedProvider(["ok"], repeat=True))
        agent = await builder.register_session_storage(store).build()
        session = await agent.new_session(SessionConfig(session_id="s"))
        for name in ("a", "b"):
            await session.submit_turn("hi")
            await session.derive_slot(name, "default")
        live = session.list_slots()
        await agent.shutdown()
        await store.aclose()
        again = await bench.resumed("s")
        assert again.list_slots() == live

    asyncio.run(scene())
