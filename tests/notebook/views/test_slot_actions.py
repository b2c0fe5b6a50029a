"""What the slot tabs send, carried out in a real session, and the sentence that comes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_magics.core.slots import Focused
from agent_magics.notebook.views.slots.slot_actions import ActionNotice, act, read_action
from agent_magics.session.session import Session
from tests.session.conftest import Bench


async def did(session: Session, **message: Any) -> ActionNotice:
    action = read_action(message)
    assert action is not None
    return await act(session, action)


def names(session: Session) -> list[str]:
    return [slot.slot_id for slot in session.list_slots()]


@pytest.mark.req("W1")
def test_each_action_of_the_tabs_is_done_and_told(bench: Bench) -> None:
    """Derive, switch, mode, rename, delete and undo, each with its sentence."""

    async def scene() -> None:
        session = await bench.session("a")
        await session.submit_turn("1")
        assert (await did(session, kind="derive", slot="default", name="b")).text == (
            "b is new, from default"
        )
        assert (await did(session, kind="switch", slot="b")).text == "now in b"
        assert session.current_slot == "b"
        told = await did(session, kind="mode", slot="b", mode="focused", count=4)
        assert told.text == "b is focused 4"
        assert session.slot_config("b").mode == Focused(recent_messages=4)
        assert (await did(session, kind="rename", slot="b", name="c")).text == "b is now called c"
        gone = await did(session, kind="delete", slot="c")
        assert gone.text == "c is deleted, its log is kept; now in default"
        assert names(session) == ["default"]
        assert (await did(session, kind="undo", uid=gone.undo)).text == "c is back"
        assert names(session) == ["default", "c"]

    asyncio.run(scene())


@pytest.mark.req("W1")
@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"kind": "delete", "slot": "default"}, "anchor"),
        ({"kind": "rename", "slot": "b", "name": "a b"}, "' '"),
        ({"kind": "derive", "slot": "b", "name": "b"}, "already a slot"),
        ({"kind": "switch", "slot": "nope"}, "nope"),
        ({"kind": "mode", "slot": "b", "mode": "focused", "count": -1}, "-1"),
        ({"kind": "undo", "uid": "nope"}, "no deleted slot"),
    ],
)
def test_a_refusal_is_one_sentence_and_changes_nothing(
    bench: Bench, message: dict[str, Any], says: str
) -> None:
    """It is told as a refusal."""

    async def scene() -> None:
        session = await bench.session()
        await session.create_slot("b")
        before = session.list_slots()
        told = await did(session, **message)
        assert told.is_refused
        assert says in told.text
        assert "\n" not in told.text
        assert session.list_slots() == before

    asyncio.run(scene())


@pytest.mark.parametrize(
    "message",
    [
        None,
        "delete",
        {},
        {"kind": "whole", "number": 1},
        {"kind": "mode", "slot": "b", "mode": "x"},
    ],
)
def test_what_is_no_action_is_left_alone(message: object) -> None:
    """A page may be of another version."""
    assert read_action(message) is None
