"""Names, forks, static slots and what a filter may let through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.projection import Projection, project
from agent_magics.context.view import SlotHistory
from agent_magics.core.errors import (
    InputValidation,
    SlotAlreadyExists,
    SlotNotFound,
    SlotReadonly,
)
from agent_magics.core.messages import Assistant, Text, ToolResult, User
from agent_magics.core.slots import (
    Derived,
    DeriveStrategy,
    Focused,
    Full,
    Readonly,
    SlotConfig,
    Static,
)
from agent_magics.core.turns import ToolStarted
from agent_magics.session.slots import listing
from agent_magics.tools.schema import tool
from tests.session.telling import said, talk

if TYPE_CHECKING:
    from tests.session.conftest import Bench


# Other rules


@pytest.mark.req("S8")
def test_a_slot_in_which_nothing_happened_is_not_counted_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views ask for the list at each change; a long notebook with many slots must not feel it."""
    counted: list[str] = []

    def counting(view: SlotHistory, **rest: Any) -> Projection:
        counted.append(view.slot_uid)
        return project(view, **rest)

    async def scene() -> None:
        session = await bench.session("one", "two", "three")
        await talk(session, "q")
        await session.derive_slot("side", "default")
        await session.derive_slot("other", "side")
        uids = {slot.slot_id: slot.uid for slot in session.list_slots()}
        monkeypatch.setattr(listing, "project", counting)
        await talk(session, "r", slot="side")
        after = {slot.slot_id: slot for slot in session.list_slots()}
        assert counted == [uids["side"]]
        assert [after[name].turns for name in ("default", "side", "other")] == [1, 1, 0]
        await session.rename_slot("side", "aside")
        await session.switch_slot("other")
        described = {slot.slot_id: slot for slot in session.list_slots()}
        assert [slot.parent_id for slot in described.values()] == [None, "default", "aside"]
        assert [name for name, slot in described.items() if slot.is_current] == ["other"]
        assert described["aside"].tokens == after["side"].tokens

    asyncio.run(scene())


@pytest.mark.req("S4")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "needs a name"),
        ("x" * 129, "129 characters"),
        ("a b", "' '"),
        ("a:b", "':'"),
        ("a/b", "'/'"),
        ("a\u200bb", "'\\\\u200b'"),
    ],
    ids=["empty", "long", "blank", "colon", "slash", "zero width"],
)
def test_a_bad_name_names_the_character(bench: Bench, name: str, says: str) -> None:
    """A name that can't be used is refused with the reason, and nothing is made."""

    async def scene() -> None:
        session = await bench.session()
        with pytest.raises(InputValidation, match=says):
            await session.create_slot(name)
        assert len(session.list_slots()) == 1

    asyncio.run(scene())


@pytest.mark.req("S4")
def test_names_of_any_script_are_allowed(bench: Bench) -> None:
    """Letters and digits of any script make a name."""

    async def scene() -> None:
        session = await bench.session()
        for name in ("方案-甲", "вариант_2", "a.b-c_9", "हिन्दी"):
            await session.create_slot(name)
        with pytest.raises(SlotAlreadyExists):
            await session.create_slot("a.b-c_9")

    asyncio.run(scene())


@pytest.mark.req("S5")
def test_an_unknown_slot_names_the_nearest(bench: Bench) -> None:
    """A typing mistake is answered with what it was meant to be."""

    async def scene() -> None:
        session = await bench.session()
        await session.create_slot("option-a")
        with pytest.raises(SlotNotFound, match="Did you mean option-a"):
            await session.switch_slot("optoin-a")

    asyncio.run(scene())


@pytest.mark.req("S3")
def test_a_static_slot_lives_in_this_process_only(bench: Bench) -> None:
    """Given messages are read-only, gone after a resume, and kept by a slot derived from them."""

    async def scene() -> None:
        session = await bench.session("ok", session_id="s")
        given = (User(content=(Text(text="rule one"),)), Assistant(content=(Text(text="yes"),)))
        await session.create_slot("rules", SlotConfig(source=Static(messages=given)))
        assert session.messages("rules") == given
        with pytest.raises(SlotReadonly):
            await session.submit_turn("q", slot="rules")
        await session.derive_slot("live", "rules")
        await session.switch_slot("rules")
        await talk(session, "go", slot="live")
        await session.close()
        again = await bench.resumed("s")
        assert [slot.slot_id for slot in again.list_slots()] == ["default", "live"]
        assert again.current_slot == "default"
        assert said(again.messages("live")) == ["rule one", "yes", "go", "ok"]

    asyncio.run(scene())


@pytest.mark.req("S3", "S6", "dec19")
def test_a_slot_derived_from_a_static_one_is_as_it_was_asked_for(bench: Bench) -> None:
    """Strategy, settings and parent are those of any child, live and after a resume."""

    async def scene() -> None:
        session = await bench.session(session_id="s")
        given = tuple(User(content=(Text(text=text),)) for text in "abc")
        await session.create_slot("rules", SlotConfig(source=Static(messages=given)))
        strategy = DeriveStrategy.focused(Focused(recent_messages=1))
        await session.derive_slot(
            "live", "rules", strategy, config=SlotConfig(system_prompt="be brief")
        )
        live = session.slot_config("live")
        assert (live.mode, live.system_prompt) == (strategy.kept, "be brief")
        assert live.source == Derived(parent_id="rules", strategy=strategy)
        assert said(session.messages("live")) == ["c"]
        listed = session.list_slots()[-1]
        assert listed.parent_id == "rules"
        await session.close()
        again = await bench.resumed("s")
        assert again.list_slots()[-1] == listed
        assert said(again.messages("live")) == ["c"]

    asyncio.run(scene())


@pytest.mark.req("S6", "dec18")
def test_a_running_turn_has_no_end_to_derive_at(bench: Bench) -> None:
    """What it has recorded so far is refused as `at_seq`."""

    @tool
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "done"

    async def scene() -> None:
        session = await bench.session({"calls": [{"name": "slow"}]}, "ok", tools=[slow])
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, ToolStarted):
                with pytest.raises(InputValidation, match="nearest ends: 0"):
                    await session.derive_slot(
                        "child", "default", at_seq=session.turns()[-1].last_seq
                    )
        assert len(session.list_slots()) == 1

    asyncio.run(scene())


@pytest.mark.req("S6")
def test_derive_at_a_turn_takes_its_end_only(bench: Bench) -> None:
    """`at_seq` ends a turn; a seq in the middle names the two nearest ends."""

    async def scene() -> None:
        session = await bench.session(*"abc")
        await talk(session, "1", "2", "3")
        first, second, _ = session.turns()
        await session.derive_slot("early", "default", at_seq=first.last_seq)
        assert said(session.messages("early")) == ["1", "a"]
        nearest = f"{first.last_seq} and {second.last_seq}"
        with pytest.raises(InputValidation, match=nearest):
            await session.derive_slot("bad", "default", at_seq=second.first_seq)

    asyncio.run(scene())


@pytest.mark.req("dec19", "inv18")
def test_a_kept_note_does_not_widen_what_a_focused_child_inherits(bench: Bench) -> None:
    """A system note that the filter keeps never lets older messages into the child's view."""

    async def scene() -> None:
        over_limit = {"calls": [{"name": "x"}] * 2}
        session = await bench.session(over_limit, "closing", "b", "c", max_tool_calls_per_turn=1)
        await (await session.send_message("old secret")).join()
        await talk(session, "2", "3")
        await session.derive_slot(
            "child", "default", DeriveStrategy.focused(Focused(recent_messages=2))
        )
        await session.configure_slot("child", mode=Full())
        assert said(session.messages("child")) == ["3", "c"]

    asyncio.run(scene())


@pytest.mark.req("inv3")
def test_given_messages_are_repaired_before_they_are_sent(bench: Bench) -> None:
    """A static slot's broken pairs become a request that a strict server accepts."""

    async def scene() -> None:
        session = await bench.session()
        given = (
            User(content=(Text(text="q"),)),
            ToolResult(call_id="lost", tool_name="f", content="orphan"),
        )
        await session.create_slot("rules", SlotConfig(source=Static(messages=given)))
        assert said(session.messages("rules")) == ["q"]

    asyncio.run(scene())


@pytest.mark.req("S4", "S5", "S7", "dec7")
def test_changes_that_meet_come_one_after_the_other(bench: Bench) -> None:
    """Each sees what the one before has made: no name twice, nothing lost, no turn in a ghost."""

    async def scene() -> None:
        session = await bench.session()
        twice = await asyncio.gather(
            session.create_slot("a"), session.create_slot("a"), return_exceptions=True
        )
        assert [type(result) for result in twice] == [type(None), SlotAlreadyExists]
        await asyncio.gather(
            session.configure_slot("a", system_prompt="P"),
            session.configure_slot("a", mode=Readonly()),
            session.rename_slot("a", "b"),
        )
        config = session.slot_config("b")
        assert (config.system_prompt, config.mode) == ("P", Readonly())
        gone = await asyncio.gather(
            session.delete_slot("b"),
            session.switch_slot("b"),
            session.send_message("q", slot="b"),
            session.compact("b"),
            return_exceptions=True,
        )
        assert [type(result) for result in gone] == [type(None), *[SlotNotFound] * 3]
        assert session.current_slot == "default"

    asyncio.run(scene())


@pytest.mark.req("S7", "E18")
def test_a_delete_is_taken_back(bench: Bench) -> None:
    """The slot is there again with its talk, its mode and its children, also after a resume."""

    async def scene() -> None:
        session = await bench.session("a", "b", session_id="s")
        await session.create_slot("kept")
        await talk(session, "1", slot="kept")
        await session.configure_slot("kept", mode=Readonly())
        uid = {slot.slot_id: slot.uid for slot in session.list_slots()}["kept"]
        await session.delete_slot("kept")
        await session.restore_slot(uid)
        await session.close()
        again = await bench.resumed("s")
        assert said(again.messages("kept")) == ["1", "a"]
        assert again.slot_config("kept").mode == Readonly()

    asyncio.run(scene())


@pytest.mark.req("S7")
def test_a_slot_comes_back_only_where_it_was_deleted_and_its_name_is_free(bench: Bench) -> None:
    """Neither a living slot nor one whose name is used again is restored."""

    async def scene() -> None:
        session = await bench.session()
        await session.create_slot("name")
        uid = {slot.slot_id: slot.uid for slot in session.list_slots()}["name"]
        with pytest.raises(InputValidation, match="no deleted slot"):
            await session.restore_slot(uid)
        await session.delete_slot("name")
        await session.create_slot("name")
        with pytest.raises(SlotAlreadyExists):
            await session.restore_slot(uid)
        assert [slot.slot_id for slot in session.list_slots()] == ["default", "name"]

    asyncio.run(scene())
