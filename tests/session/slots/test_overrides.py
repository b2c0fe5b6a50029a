"""An automatic `summary_override` follows the turns it was made of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import SummaryConfig
from agent_magics.core.events import SlotChanged
from agent_magics.core.messages import User, text_of
from agent_magics.core.slots import Focused
from agent_magics.session.session import Session

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SOON = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=1)


def summary(text: str) -> dict[str, Any]:
    return {"text": text, "purpose": "summary"}


async def summed_up(bench: Bench, *more: Any) -> Session:
    """Make a focused session of three turns, of which the second and third were summed up."""
    steps: list[Any] = ["short", "b " * 30, summary("two."), "c " * 30, summary("three."), *more]
    session = await bench.session(*steps, summary_config=SOON, session_id="s")
    await session.configure_slot("default", mode=Focused(recent_messages=1))
    for prompt in ("1", "2 " * 30, "3"):
        await session.submit_turn(prompt)
    return session


def override(session: Session) -> str | None:
    mode = session.slot_config().mode
    assert isinstance(mode, Focused)
    return mode.summary_override


def ends(session: Session) -> list[int]:
    return [0, *(span.last_seq for span in session.turns())]


@pytest.mark.req("dec25", "Y3")
@pytest.mark.parametrize(("turns", "left"), [(2, "two."), (1, None), (0, None)])
def test_a_rewind_takes_the_summary_of_what_it_removes(
    bench: Bench, turns: int, left: str | None
) -> None:
    """The newest one made of what stays takes its place; an undo brings back what was."""

    async def scene() -> None:
        session = await summed_up(bench)
        assert override(session) == "three."
        before = session.messages()
        gone = await session.rewind(to_seq=ends(session)[turns])
        assert override(session) == left
        said = [event.payload for event in session._open_session.loaded.events]
        told = [each.config for each in said if isinstance(each, SlotChanged) and each.config]
        assert told[-1].mode == session.slot_config().mode
        await session.rewind(to_seq=ends(session)[-1], undoes=gone)
        assert override(session) == "three."
        assert session.messages() == before
        await session.close()
        again = await bench.resumed("s", summary_config=SOON)
        assert again.messages() == before

    asyncio.run(scene())


@pytest.mark.req("dec25")
def test_a_clear_takes_the_automatic_summary(bench: Bench) -> None:
    """Nothing that was said is told, not in other words either."""

    async def scene() -> None:
        session = await summed_up(bench)
        gone = await session.clear()
        assert override(session) is None
        assert session.messages() == ()
        await session.rewind(to_seq=0, undoes=gone)
        assert override(session) == "three."

    asyncio.run(scene())


@pytest.mark.req("dec25", "S10")
def test_what_a_person_set_stays(bench: Bench) -> None:
    """A summary of one's own is a setting; what was set after a rewind is not undone with it."""

    async def scene() -> None:
        session = await summed_up(bench)
        await session.configure_slot("default", mode=Focused(summary_override="mine"))
        gone = await session.rewind(to_seq=0)
        assert override(session) == "mine"
        await session.rewind(to_seq=0, undoes=gone)
        assert override(session) == "mine"
        gone = await session.rewind(to_seq=0)
        await session.configure_slot("default", mode=Focused())
        await session.rewind(to_seq=0, undoes=gone)
        assert override(session) is None

    asyncio.run(scene())


@pytest.mark.req("dec25", "Y2", "dec39")
def test_the_next_summary_builds_on_what_is_in_view_only(bench: Bench) -> None:
    """Neither the removed turns nor the summary of them are read again."""

    async def scene() -> None:
        session = await summed_up(bench, "d " * 30, summary("four."))
        await session.rewind(to_seq=ends(session)[1])
        await session.submit_turn("4")
        asked = [r for r in bench.provider.requests if r.purpose == "summary"][-1]
        assert isinstance(asked.messages[-1], User)
        text = text_of(asked.messages[-1].content)
        assert "three." not in text
        assert "two." not in text
        assert "User: 1" in text
        assert "User: 4" in text
        assert override(session) == "four."

    asyncio.run(scene())
