"""Views that follow a session: told of news, sharing the loop, and ended with it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

import pytest

from agent_magics.session.state.followers import SHARE_OF_LOOP, Followers
from tests.session.conftest import Bench

SLOW_S = 0.01


class Seen:
    """A view that counts what it is told; `trouble`: what it raises then."""

    def __init__(self, *, grows: bool = False, slow_s: float = 0, trouble: str = "") -> None:
        self.grows = grows
        self.refreshed = self.ended = 0
        self._slow_s = slow_s
        self._trouble = trouble

    def refresh(self) -> None:
        time.sleep(self._slow_s)
        self.refreshed += 1
        if self._trouble:
            raise ValueError(self._trouble)

    def end(self) -> None:
        self.ended += 1
        if self._trouble:
            raise ValueError(self._trouble)


@pytest.mark.req("W1", "W2")
def test_a_view_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The next ones are refreshed, the next change comes, the end is told; its words aren't."""
    first, broken, last = Seen(), Seen(trouble="a secret"), Seen()

    async def scene() -> None:
        following = Followers({})
        for view in (first, broken, last):
            following.follow(view)
        for _ in range(2):
            following.changed()
            await asyncio.sleep(0.3)
        following.end()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    assert [view.refreshed for view in (first, broken, last)] == [2, 2, 2]
    assert [view.ended for view in (first, broken, last)] == [1, 1, 1]
    assert "a view failed: ValueError" in caplog.text
    assert "secret" not in caplog.text
    assert "never retrieved" not in caplog.text


@pytest.mark.req("W1", "W2")
def test_all_views_together_take_their_share_of_the_loop() -> None:
    """Twenty slow ones wait as long as one that is twenty times as slow."""
    views = [Seen(slow_s=SLOW_S) for _ in range(20)]

    async def scene() -> None:
        following = Followers({})
        for view in views:
            following.follow(view)
        following.changed()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        following.changed()
        await asyncio.sleep(len(views) * SLOW_S * SHARE_OF_LOOP / 4)
        following.end()

    asyncio.run(scene())
    assert {view.refreshed for view in views} == {1}


@pytest.mark.req("W2")
def test_only_what_grows_is_refreshed_while_turns_stream() -> None:
    """Without news; and nothing is any more once it has left."""
    running: Mapping[str, object] = {"u1": object()}

    async def scene(view: Seen) -> int:
        following = Followers(running)
        leave = following.follow(view)
        following.changed()
        await asyncio.sleep(0.5)
        leave()
        leave()
        seen = view.refreshed
        following.changed()
        await asyncio.sleep(0.3)
        assert view.refreshed == seen
        return seen

    assert asyncio.run(scene(Seen(grows=True))) > 1
    assert asyncio.run(scene(Seen())) == 1


def test_a_session_refreshes_and_ends_who_follows_it(bench: Bench) -> None:
    """On its loop, after a change; who comes after the end hears of it at once."""
    early, late = Seen(), Seen()

    async def scene() -> None:
        session = await bench.session("a")
        session.follow(early)
        await session.create_slot("b")
        await asyncio.sleep(0.1)
        assert early.refreshed == 1
        await session.close()
        await session.close()
        session.follow(late)

    asyncio.run(scene())
    assert (early.ended, late.ended) == (1, 1)
    assert (early.refreshed, late.refreshed) == (1, 0)
