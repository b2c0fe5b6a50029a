"""What changes between turns: gathered once a turn, sent before its prompt, never stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.errors import FixedContextExceedsBudget
from agent_magics.core.messages import User, text_of
from agent_magics.core.slots import Focused, SlotConfig
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from agent_magics.session.session import Session
    from tests.session.conftest import Bench


@tool
def one() -> str:
    """Give one."""
    return "1"


class News:
    """A source that tells each slot what it has not seen."""

    name = "kernel"

    def __init__(self, text: str = "x: int") -> None:
        self.text = text
        self.seen: dict[str, str] = {}

    def current(self, slot_uid: str) -> str:
        return "" if self.seen.get(slot_uid) == self.text else self.text

    def mark_seen(self, slot_uid: str) -> None:
        self.seen[slot_uid] = self.text


def said(bench: Bench, at: int = -1) -> list[str]:
    """Give what the user's side of a request says, a reference block as its third line."""
    texts = [
        text_of(message.content)
        for message in bench.provider.requests[at].messages
        if isinstance(message, User)
    ]
    return [text.split("\n")[3].strip() if text.startswith("[Current") else text for text in texts]


@pytest.mark.req("dec4", "inv9", "E17")
def test_the_block_stands_before_the_prompt_in_every_request_of_the_turn(bench: Bench) -> None:
    """It stays the same though its source goes on; the prompt is verbatim; nothing is stored."""
    news = News()

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "one"}]}, "a", "b", "c", references=(news,), tools=(one,)
        )
        await session.submit_turn("q")
        assert said(bench, 0) == said(bench, 1) == ["x: int", "q"]
        assert bench.provider.requests[0].messages[:3] == bench.provider.requests[1].messages[:3]
        assert "x: int" not in str(session.history())
        await session.submit_turn("r")
        assert said(bench) == ["q", "r"]
        news.text = "y: str"
        await session.submit_turn("s")
        assert said(bench) == ["q", "r", "y: str", "s"]

    asyncio.run(scene())


@pytest.mark.req("dec4")
def test_what_a_tool_changes_is_told_with_the_next_turn(bench: Bench) -> None:
    """A source that has news while a turn runs doesn't move the prefix of that turn."""
    news = News()

    @tool
    def change() -> str:
        """Change something."""
        news.text = "z: list"
        return "done"

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "change"}]}, "a", "b", references=(news,), tools=(change,)
        )
        await session.submit_turn("q")
        assert said(bench) == ["x: int", "q"]
        await session.submit_turn("r")
        assert said(bench) == ["q", "z: list", "r"]

    asyncio.run(scene())


@pytest.mark.req("dec4")
def test_each_slot_is_told_for_itself(bench: Bench) -> None:
    """What one slot has seen is still new in another."""

    async def scene() -> None:
        session = await bench.session("a", "b", references=(News(),))
        await session.create_slot("other")
        await session.submit_turn("q")
        await session.submit_turn("q", slot="other")
        assert said(bench) == ["x: int", "q"]

    asyncio.run(scene())


@pytest.mark.req("dec4", "C18")
def test_when_idle_it_shows_as_it_would_be_sent(bench: Bench) -> None:
    """`next_request` has it last, `context_info` weighs it, `messages` is history alone."""
    news = News("word " * 300)

    async def scene() -> None:
        session = await bench.session("a", references=(news,))
        before = session.context_info()
        assert before.parts["dynamic"] > 300
        assert before.used == sum(before.parts.values())
        last = session.next_request().request.messages[-1]
        assert isinstance(last, User)
        assert text_of(last.content).startswith("[Current state]")
        assert session.messages() == ()
        await session.submit_turn("q")
        assert session.context_info().parts["dynamic"] == 0
        assert len(session.messages()) == 2

    asyncio.run(scene())


@pytest.mark.req("dec4", "C6")
def test_a_measured_count_holds_for_the_same_news_only(bench: Bench) -> None:
    """The block is part of the digest: other news make it another request."""
    news = News()

    async def scene() -> None:
        session = await bench.session("a", references=(news,))
        await session.submit_turn("q")
        quiet = session.next_request().digest
        news.text = "y: str"
        loud = session.next_request().digest
        news.text = "x: int"
        assert quiet != loud
        assert session.next_request().digest == quiet

    asyncio.run(scene())


@pytest.mark.req("dec4", "S9", "dec21")
def test_no_focus_takes_it_away(bench: Bench) -> None:
    """A slot that keeps no message still gets the news of its running turn."""

    async def scene() -> None:
        news = News()
        session = await bench.session("a", "b", references=(news,))
        await session.create_slot("narrow", SlotConfig(mode=Focused(recent_messages=0)))
        await session.submit_turn("q", slot="narrow")
        news.text = "y: str"
        await session.submit_turn("r", slot="narrow")
        assert said(bench) == ["y: str", "r"]

    asyncio.run(scene())


@pytest.mark.req("dec4", "dec12")
def test_steering_stays_behind_the_prompt(bench: Bench) -> None:
    """The block doesn't move when the person adds to the running turn."""

    async def scene() -> None:
        session: Session
        held = asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            await held.wait()
            return "waited"

        session = await bench.session(
            {"calls": [{"name": "wait"}]}, "a", references=(News(),), tools=(wait,)
        )
        turn = await session.send_message("q")
        await turn.steer("and quickly")
        held.set()
        await turn.join()
        assert said(bench) == ["x: int", "q", "and quickly"]

    asyncio.run(scene())


@pytest.mark.req("dec34", "C7")
def test_news_that_leave_no_room_are_named(bench: Bench) -> None:
    """They count among what is sent with every request of the turn."""

    async def scene() -> None:
        session = await bench.session("a", references=(News("word " * 3000),), context_limit=2000)
        with pytest.raises(FixedContextExceedsBudget, match=r"dynamic 3,\d+"):
            await session.submit_turn("q")
        assert bench.provider.requests == []

    asyncio.run(scene())


@pytest.mark.req("dec4", "dec16")
def test_a_source_that_fails_is_left_out(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """The others are told, and the log has a line."""

    class Broken(News):
        def current(self, slot_uid: str) -> str:
            raise ValueError("no kernel")

        def mark_seen(self, slot_uid: str) -> None:
            raise ValueError("no kernel")

    async def scene() -> None:
        session = await bench.session("a", references=(Broken(), News()))
        assert (await session.submit_turn("q")).text == "a"
        assert said(bench) == ["x: int", "q"]
        assert session.context_info().parts["dynamic"] == 0

    asyncio.run(scene())
    assert "a reference source failed: ValueError: no kernel" in caplog.text


@pytest.mark.req("dec4", "inv10")
def test_what_was_not_recorded_was_not_seen(bench: Bench) -> None:
    """A turn that may not start leaves the news new."""
    from agent_magics.core.hooks import Abort, HookPayload
    from agent_magics.session.extensions.plugins import PluginBase

    class Closed(PluginBase):
        is_shut = True

        def turn_start(self, _: HookPayload) -> Abort | None:
            return Abort(reason="shut") if self.is_shut else None

    closed = Closed()

    async def scene() -> None:
        session = await bench.session("a", references=(News(),), plugins=(closed,))
        await (await session.send_message("q")).join()
        closed.is_shut = False
        await session.submit_turn("r")
        assert said(bench) == ["x: int", "r"]

    asyncio.run(scene())
