"""A request made again from the ledger: the very one that was sent, or one that says it isn't."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from agent_magics.core.errors import AgentError
from agent_magics.core.events import Usage, kind_of
from agent_magics.core.slots import DeriveStrategy, Focused, SlotConfig
from agent_magics.session.request.rebuilding import rebuild
from agent_magics.session.request.request_builder import digest_of
from agent_magics.session.session import Session
from tests.session.state.test_live_view import KEEP_LITTLE, OPERATIONS, _do, answered, twice

if TYPE_CHECKING:
    from tests.session.conftest import Bench


def usages(session: Session) -> list[Any]:
    (state,) = session.frames.states()
    return [
        event
        for event in state.events
        if isinstance(event.payload, Usage) and event.payload.purpose == "turn"
    ]


@pytest.mark.req("W3", "C6")
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(operations=OPERATIONS)
def test_a_request_is_made_again_as_it_was_sent(
    bench: Bench, operations: list[tuple[str, int]]
) -> None:
    """After turns, calls, compactions, branches and rewinds, in another process as well."""

    async def scene() -> None:
        how: dict[str, Any] = {"tools": [twice], "compaction": KEEP_LITTLE}
        session = await bench.session(*[answered] * 80, **how)
        for at, (name, number) in enumerate([("ask", 0), ("call", 0), *operations]):
            await session.memory.set("step", str(at))
            try:
                await _do(session, name, number)
            except AgentError:
                continue
        asked = {digest_of(each): each for each in bench.provider.requests}
        session_id = session.session_id
        await session.close()
        again = await bench.resumed(session_id, **how)
        for event in usages(again):
            made = again.request_of(event.seq)
            assert made is not None
            assert (made.seq, made.is_exact) == (event.seq, True)
            assert made.request == asked[event.payload.digest]
        await bench.aclose()
        bench._agents.clear()
        bench._stores.clear()

    asyncio.run(scene())


@pytest.mark.req("W3")
def test_every_event_of_a_turn_leads_to_its_request(bench: Bench) -> None:
    """A question and a call to the one that they were sent with or came of; others to none."""

    async def scene() -> None:
        session = await bench.session(answered, answered, tools=[twice])
        await session.submit_turn("call it")
        first, second = usages(session)
        (state,) = session.frames.states()
        found = {
            kind_of(event.payload): made.seq
            for event in state.events
            if (made := session.request_of(event.seq)) is not None
        }
        assert found == {
            "user_message": first.seq,
            "assistant_message": second.seq,  # the last of them
            "tool_call": first.seq,
            "usage": second.seq,
            "tool_result": second.seq,
        }
        assert session.request_of(10**9) is None

    asyncio.run(scene())


@pytest.mark.req("W3")
def test_what_is_not_the_same_says_so(bench: Bench) -> None:
    """Other tools, other instructions, or what was told without being stored: only like it."""

    async def scene() -> None:
        session = await bench.session(answered, tools=[twice])
        await session.submit_turn("ask")
        (usage,) = usages(session)
        session_id = session.session_id
        await session.close()
        changes: list[dict[str, Any]] = [
            {"tools": []},
            {"tools": [twice], "personality": "Be a poet."},
        ]
        for change in changes:
            again = await bench.resumed(session_id, **change)
            made = again.request_of(usage.seq)
            assert made is not None
            assert not made.is_exact
            assert "ask" in str(made.request.messages[-1])
            await again.close()

    asyncio.run(scene())


class News:
    """Something that has changed around the conversation."""

    name = "news"

    def current(self, slot_uid: str) -> str:
        return "It rains."

    def mark_seen(self, slot_uid: str) -> None:
        pass


@pytest.mark.req("W3", "dec4")
def test_what_was_sent_without_being_stored_is_missed(bench: Bench) -> None:
    """The block of what is new isn't in the ledger; what is made without it isn't called sent."""

    async def scene() -> None:
        session = await bench.session(answered, references=[News()])
        await session.submit_turn("ask")
        (usage,) = usages(session)
        made = session.request_of(usage.seq)
        assert made is not None
        assert not made.is_exact
        assert "It rains." not in str(made.request)

    asyncio.run(scene())


@pytest.mark.req("W3")
def test_settings_are_those_of_then(bench: Bench) -> None:
    """A slot that has another prompt and another mode by now asked with those it had."""

    async def scene() -> None:
        session = await bench.session(answered, answered)
        await session.create_slot("side", SlotConfig(system_prompt="Be brief."))
        await session.derive_slot("child", "side", DeriveStrategy.focused(Focused()))
        await session.submit_turn("ask", slot="side")
        await session.submit_turn("ask", slot="child")
        await session.configure_slot("side", system_prompt="Be long.")
        await session.rename_slot("child", "kid")
        await session.delete_slot("kid")
        for usage in usages(session):
            made = session.request_of(usage.seq)
            assert made is not None
            assert made.is_exact
            assert "Be brief." in str(made.request.messages[0])

    asyncio.run(scene())


@pytest.mark.req("W3")
def test_a_model_that_is_gone_is_no_hindrance(bench: Bench) -> None:
    """A session from elsewhere shows what it asked, whoever answered there."""

    async def scene() -> None:
        session = await bench.session(answered)
        await session.submit_turn("ask")
        (state,) = session.frames.states()
        (usage,) = usages(session)
        gone = structs.replace(usage.payload, provider="gone", model="m")
        events = tuple(
            structs.replace(each, payload=gone) if each.seq == usage.seq else each
            for each in state.events
        )
        made = rebuild(
            structs.replace(state, events=events),
            usage.seq,
            models=session._open_session.models.lookup,
            builder_for=session._open_session.requests.builder_for,
        )
        assert made is not None
        assert made.request.model == "m"
        assert not made.is_exact

    asyncio.run(scene())
