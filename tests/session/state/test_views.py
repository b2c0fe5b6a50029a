"""What a slot shows after rewinds, clears and reruns; the view that lives is the one that loads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import SPOKEN, Origin
from agent_magics.core.messages import Assistant, System, User, text_of
from agent_magics.session.session import Session

if TYPE_CHECKING:
    from tests.session.conftest import Bench


def said(session: Session, slot: str | None = None) -> list[str]:
    return [text_of(m.content) for m in session.messages(slot) if isinstance(m, User | Assistant)]


def cell(cell_id: str | None, source: str = "x") -> Origin:
    return Origin(cell_id=cell_id, cell_digest=source)


async def ask(session: Session, prompt: str, origin: Origin | None = None) -> None:
    await (await session.send_message(prompt, origin=origin)).join()


@pytest.mark.req("C13", "dec25", "dec8")
def test_a_rewind_takes_later_turns_out_of_the_view_only(bench: Bench) -> None:
    """The turns left are counted on from there; the ledger and a child keep everything."""

    async def scene() -> None:
        session = await bench.session(*"abcd")
        for prompt in "123":
            await ask(session, prompt)
        await session.derive_slot("child", "default")
        recorded = len(session.frames.events())
        await session.rewind(to_seq=session.turns()[0].last_seq)
        assert said(session) == ["1", "a"]
        assert said(session, "child") == ["1", "a", "2", "b", "3", "c"]
        assert len(session.frames.events()) == recorded + 1
        await ask(session, "4")
        assert said(session) == ["1", "a", "4", "d"]
        assert [span.index for span in session.turns()] == [1, 2]

    asyncio.run(scene())


@pytest.mark.req("C13")
def test_a_rewind_and_a_clear_can_be_undone(bench: Bench) -> None:
    """What left the view comes back, in order."""

    async def scene() -> None:
        session = await bench.session(*"ab")
        await ask(session, "1")
        await ask(session, "2")
        everything = said(session)
        gone = await session.rewind(to_seq=session.turns()[0].last_seq)
        await session.rewind(to_seq=session.turns()[0].last_seq, undoes=gone)
        assert said(session) == everything
        cleared = await session.clear()
        assert said(session) == []
        await session.derive_slot("empty", "default")
        assert said(session, "empty") == []
        await session.rewind(to_seq=0, undoes=cleared)
        assert said(session) == everything

    asyncio.run(scene())


@pytest.mark.req("dec25")
def test_a_rewind_ends_at_a_turn(bench: Bench) -> None:
    """A seq inside a turn is refused with the nearest ends."""

    async def scene() -> None:
        session = await bench.session(*"ab")
        await ask(session, "1")
        span = session.turns()[0]
        with pytest.raises(InputValidation, match=f"nearest ends: 0 and {span.last_seq}"):
            await session.rewind(to_seq=span.first_seq)

    asyncio.run(scene())


@pytest.mark.req("dec25")
def test_only_a_rewind_or_a_clear_can_be_undone(bench: Bench) -> None:
    """Any other seq is refused, and the view stays."""

    async def scene() -> None:
        session = await bench.session(*"ab")
        await ask(session, "1")
        await ask(session, "2")
        first = session.turns()[0]
        for undoes in (first.last_seq, 999):
            with pytest.raises(InputValidation, match="no rewind or clear"):
                await session.rewind(to_seq=first.first_seq, undoes=undoes)
        assert said(session) == ["1", "a", "2", "b"]

    asyncio.run(scene())


@pytest.mark.req("N9", "dec51")
def test_a_cell_knows_the_slot_that_it_asked_in(bench: Bench) -> None:
    """By id where there is one; the newest turn counts, and only while it is in view."""

    async def scene() -> None:
        session = await bench.session(*"abcd")
        await ask(session, "1", cell("A"))
        await session.create_slot("plan")
        before = session.turns()[0].last_seq
        await ask(session, "2", cell("B"))
        await ask(session, "3", cell("C"))
        assert session.slot_of_cell(cell("B", "y")) == "default"
        await (await session.send_message("4", slot="plan", origin=cell("B", "y"))).join()
        assert session.slot_of_cell(cell("B")) == "plan"
        await session.clear("plan")
        assert session.slot_of_cell(cell("B")) == "default"
        await session.rewind(to_seq=before)
        assert session.slot_of_cell(cell("B")) is None
        assert session.slot_of_cell(cell("C")) is None
        assert session.slot_of_cell(cell("A")) == "default"

    asyncio.run(scene())


@pytest.mark.req("N9", "dec51")
def test_a_cell_without_an_id_is_known_by_its_source_at_the_end_only(bench: Bench) -> None:
    """Only the slot's last turn can be replaced; edited text is another cell."""

    async def scene() -> None:
        session = await bench.session(*"ab")
        await ask(session, "1", cell(None, "one"))
        await ask(session, "2", cell(None, "two"))
        assert session.slot_of_cell(cell(None, "one")) is None
        assert session.slot_of_cell(cell(None, "edited")) is None
        assert session.slot_of_cell(cell(None, "two")) == "default"

    asyncio.run(scene())


@pytest.mark.req("dec52", "dec17")
def test_a_replaced_slot_begins_again_and_its_events_stay(bench: Bench) -> None:
    """The name is used again for a new slot; a child of the old one keeps what it inherited."""

    async def scene() -> None:
        session = await bench.session(*"abc")
        await session.create_slot("side")
        await session.switch_slot("side")
        await ask(session, "1")
        await session.derive_slot("child", "side")
        await session.create_slot("side", replace=True)
        assert said(session, "side") == []
        assert session.current_slot == "side"
        assert said(session, "child") == ["1", "a"]
        await session.derive_slot("side", "child", replace=True)
        assert said(session, "side") == ["1", "a"]
        assert [slot.slot_id for slot in session.list_slots()] == ["default", "child", "side"]

    asyncio.run(scene())


@pytest.mark.req("dec41")
def test_only_what_was_said_reaches_the_model(bench: Bench) -> None:
    """Slots, facts, usage and rewinds are in the ledger, and in no request."""

    async def scene() -> None:
        session = await bench.session(*"abc")
        await ask(session, "1")
        await session.memory.set("colour", "blue")
        await session.create_slot("side")
        await ask(session, "2")
        await session.rewind(to_seq=session.turns()[0].last_seq)
        await ask(session, "3")
        kinds = set(session.frames.events()["kind"])
        assert {"memory_set", "slot_changed", "usage", "rewind", "metadata"} <= kinds
        sent = bench.provider.requests[-1].messages
        roles = [type(message).__name__ for message in sent if not isinstance(message, System)]
        assert roles[-3:] == ["User", "Assistant", "User"]
        (state,) = session.frames.states()
        told = {event.seq for event in state.events if isinstance(event.payload, SPOKEN)}
        assert session.fates().keys() == told

    asyncio.run(scene())
