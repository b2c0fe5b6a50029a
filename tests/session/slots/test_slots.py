"""Slots on real files: made, derived, switched, deleted and found again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.errors import (
    SlotNotFound,
    SlotProtected,
    SlotReadonly,
)
from agent_magics.core.messages import User
from agent_magics.core.slots import (
    Derived,
    DeriveStrategy,
    Focused,
    Full,
    Readonly,
    SlotConfig,
)
from tests.session.telling import said, talk

if TYPE_CHECKING:
    from tests.session.conftest import Bench


# Slots


@pytest.mark.req("S1", "S5", "E18")
def test_slot_save_load_roundtrip(bench: Bench) -> None:
    """What was said in a slot is there, message by message, in a new process's session."""

    async def scene() -> None:
        first = await bench.session("hello", "again", session_id="s")
        await talk(first, "one", "two")
        before = first.messages()
        await first.close()
        second = await bench.resumed("s")
        assert said(second.messages()) == ["one", "hello", "two", "again"]
        assert second.messages() == before

    asyncio.run(scene())


@pytest.mark.req("S14")
def test_slot_session_isolation(bench: Bench) -> None:
    """Slots of the same id in two sessions of one store don't mix."""

    async def scene() -> None:
        for name in ("one", "two"):
            session = await bench.session(f"answer {name}", session_id=name)
            await session.create_slot("side")
            await talk(session, f"prompt {name}", slot="side")
            await session.close()
        resumed = await bench.resumed("one")
        assert said(resumed.messages("side")) == ["prompt one", "answer one"]

    asyncio.run(scene())


@pytest.mark.req("S3", "S6")
def test_slot_derived_parent_id(bench: Bench) -> None:
    """A derived slot remembers its parent and strategy."""

    async def scene() -> None:
        session = await bench.session("a")
        await talk(session, "q")
        await session.derive_slot("child", "default", DeriveStrategy.full())
        source = session.slot_config("child").source
        assert source == Derived(parent_id="default", strategy=DeriveStrategy.full())
        child = session.list_slots()[1]
        assert (child.parent_id, child.forked_at_turn) == ("default", 1)

    asyncio.run(scene())


@pytest.mark.req("S11")
def test_slot_readonly_rejects_write(bench: Bench) -> None:
    """A read-only slot takes no turn, no compaction, no rewind; no model is asked."""

    async def scene() -> None:
        session = await bench.session("a", "b")
        await talk(session, "q")
        await session.configure_slot("default", mode=Readonly())
        for refused in (
            session.submit_turn("more"),
            session.compact(),
            session.rewind(to_seq=0),
            session.clear(),
        ):
            with pytest.raises(SlotReadonly, match='Slot "default" is read-only'):
                await refused
        assert len(bench.provider.requests) == 1

    asyncio.run(scene())


@pytest.mark.req("S7")
def test_slot_delete_then_load_none(bench: Bench) -> None:
    """A deleted slot is in no list, also after a resume, and its name may be used again."""

    async def scene() -> None:
        session = await bench.session("a", session_id="s")
        await session.create_slot("gone")
        await talk(session, "q", slot="gone")
        await session.delete_slot("gone")
        await session.close()
        again = await bench.resumed("s")
        assert [slot.slot_id for slot in again.list_slots()] == ["default"]
        with pytest.raises(SlotNotFound, match='Nothing called "gone"'):
            await again.switch_slot("gone")
        await again.create_slot("gone")
        assert again.messages("gone") == ()

    asyncio.run(scene())


@pytest.mark.req("S4", "S8", "dec26")
def test_slot_list_multiple(bench: Bench) -> None:
    """The list has every slot with its own counts, right after each turn."""

    async def scene() -> None:
        session = await bench.session("a", "b", "c")
        await session.create_slot("other")
        await talk(session, "q")
        await talk(session, "r", "s", slot="other")
        default, other = session.list_slots()
        assert (default.slot_id, default.message_count, default.turns) == ("default", 2, 1)
        assert (other.slot_id, other.message_count, other.turns) == ("other", 4, 2)
        assert (default.is_current, other.is_current) == (True, False)
        assert other.tokens > default.tokens > 0

    asyncio.run(scene())


@pytest.mark.req("S2", "S9", "B6")
def test_slot_focused_recent_messages(bench: Bench) -> None:
    """Focused shows the last messages only; switching back to full restores all."""

    async def scene() -> None:
        session = await bench.session(*"abcd")
        await talk(session, "1", "2", "3")
        await session.configure_slot("default", mode=Focused(recent_messages=2))
        assert said(session.messages()) == ["3", "c"]
        await talk(session, "4")
        assert said(bench.provider.requests[-1].messages[1:]) == ["2", "b", "3", "c", "4"][2:]
        await session.configure_slot("default", mode=Full())
        assert said(session.messages()) == ["1", "a", "2", "b", "3", "c", "4", "d"]

    asyncio.run(scene())


@pytest.mark.req("S10")
def test_slot_focused_summary_override(bench: Bench) -> None:
    """The override shows to the model as one message after the kept ones, with no authority."""

    async def scene() -> None:
        session = await bench.session(*"abc")
        await talk(session, "1", "2")
        focused = Focused(recent_messages=2, summary_override="they like trains")
        await session.configure_slot("default", mode=focused)
        messages = session.messages()
        assert said(messages)[:2] == ["2", "b"]
        assert isinstance(messages[-1], User)
        assert "[Context summary] they like trains" in said(messages)[-1]

    asyncio.run(scene())


@pytest.mark.req("S9")
def test_slot_focused_zero_messages(bench: Bench) -> None:
    """`recent_messages=0` leaves nothing of the history but the summary."""

    async def scene() -> None:
        session = await bench.session(*"ab")
        await talk(session, "1")
        await session.configure_slot("default", mode=Focused(recent_messages=0))
        assert session.messages() == ()
        mode = Focused(recent_messages=0, summary_override="short")
        await session.configure_slot("default", mode=mode)
        assert len(session.messages()) == 1

    asyncio.run(scene())


@pytest.mark.req("S1")
def test_slot_empty_messages_roundtrip(bench: Bench) -> None:
    """An empty slot is an empty slot after a resume."""

    async def scene() -> None:
        session = await bench.session(session_id="s")
        await session.create_slot("empty")
        await session.close()
        again = await bench.resumed("s")
        assert again.messages("empty") == ()
        assert [slot.slot_id for slot in again.list_slots()] == ["default", "empty"]

    asyncio.run(scene())


@pytest.mark.req("S11")
def test_slot_save_on_readonly_side_effect(bench: Bench) -> None:
    """Settings of a read-only slot can still be changed, and are kept."""

    async def scene() -> None:
        session = await bench.session("a", session_id="s")
        await session.create_slot("notes", SlotConfig(mode=Readonly()))
        await session.configure_slot("notes", system_prompt="a reference")
        await session.close()
        again = await bench.resumed("s")
        assert again.slot_config("notes").system_prompt == "a reference"
        await again.configure_slot("notes", mode=Full())
        assert again.slot_config("notes").mode == Full()

    asyncio.run(scene())


# Deriving


@pytest.mark.req("S6")
def test_derive_full_sees_the_parents_messages(bench: Bench) -> None:
    """A full child sees all of its parent up to the fork, and neither sees the other's later."""

    async def scene() -> None:
        session = await bench.session("a", "b", "c")
        await talk(session, "1")
        await session.derive_slot("child", "default", DeriveStrategy.full())
        await talk(session, "parent later")
        await talk(session, "child later", slot="child")
        assert said(session.messages()) == ["1", "a", "parent later", "b"]
        assert said(session.messages("child")) == ["1", "a", "child later", "c"]

    asyncio.run(scene())


@pytest.mark.req("S6")
def test_derive_focused_sees_the_filtered_messages(bench: Bench) -> None:
    """A focused child never sees what the filter left out, in any mode."""

    async def scene() -> None:
        session = await bench.session(*"abcd")
        await talk(session, "1", "2", "3")
        strategy = DeriveStrategy.focused(Focused(recent_messages=2))
        await session.derive_slot("child", "default", strategy)
        assert said(session.messages("child")) == ["3", "c"]
        await session.configure_slot("child", mode=Full())
        assert said(session.messages("child")) == ["3", "c"]

    asyncio.run(scene())


@pytest.mark.req("S6", "E18")
def test_derived_slot_loads_by_itself_after_saving(bench: Bench) -> None:
    """A child of a deleted parent is whole after a resume."""

    async def scene() -> None:
        session = await bench.session("a", "b", session_id="s")
        await session.create_slot("parent")
        await talk(session, "1", slot="parent")
        await session.derive_slot("child", "parent")
        await talk(session, "2", slot="child")
        await session.delete_slot("parent")
        await session.close()
        again = await bench.resumed("s")
        assert said(again.messages("child")) == ["1", "a", "2", "b"]

    asyncio.run(scene())


@pytest.mark.req("S7")
def test_delete_slot_refuses_default(bench: Bench) -> None:
    """`default` is the session's anchor, also when another slot is current."""

    async def scene() -> None:
        session = await bench.session()
        await session.create_slot("other")
        await session.switch_slot("other")
        with pytest.raises(SlotProtected, match="anchor"):
            await session.delete_slot("default")
        assert session.current_slot == "other"

    asyncio.run(scene())


@pytest.mark.req("S7")
def test_delete_slot_refuses_the_last_one(bench: Bench) -> None:
    """A session keeps at least one slot; deleting the current one makes `default` current."""

    async def scene() -> None:
        session = await bench.session()
        await session.create_slot("other")
        await session.switch_slot("other")
        await session.delete_slot("other")
        assert session.current_slot == "default"
        with pytest.raises(SlotProtected):
            await session.delete_slot("default")
        assert len(session.list_slots()) == 1

    asyncio.run(scene())
