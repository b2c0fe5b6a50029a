"""Displays without a page: a turn has as many views as it is shown, and those that grow stay."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_magics.core.turns import TextChunk, TurnStarted
from agent_magics.notebook.views.turn import turn_view
from agent_magics.notebook.views.turn.turn_view import KEPT_TURNS, TurnViews
from agent_magics.threads.loop import run
from tests.notebook.views.stage import Stage, until

pytestmark = [pytest.mark.inside, pytest.mark.req("W4")]

Outputs = list[dict[str, Any]]


@pytest.mark.req("N7")
def test_a_turn_that_is_displayed_twice_lives_twice(
    views: TurnViews, told: list[dict[str, Any]]
) -> None:
    """Both displays are told what comes, and the button of each stops the turn."""

    async def scene() -> None:
        first = Stage(views)
        second = Stage(views, turn=first.turn)
        for stage in (first, second):
            await stage.seen()
        told.clear()
        for stage in (first, second):
            stage.feed(TextChunk(text="hello"))
        places = {first.page.place, second.page.place}
        await until(lambda: places <= {place for each in told for place in each["places"]})
        for stage in (first, second):
            stage.press("stop")
        await until(lambda: first.stops == second.stops == ["stop"])
        first.end()
        second.end()

    run(scene())


@pytest.mark.req("N8")
def test_a_question_goes_to_the_newest_display_that_is_watched(
    views: TurnViews, told: object
) -> None:
    """Else to the newest; never to one that has ended."""

    async def scene() -> None:
        first = Stage(views)
        assert views.find("t1") is first.view
        second = Stage(views, turn=first.turn)
        assert views.find("t1") is second.view
        await first.seen()
        assert views.find("t1") is first.view
        await second.seen()
        assert views.find("t1") is second.view
        second.end()
        assert views.find("t1") is first.view
        first.end()
        assert views.find("t1") is None

    run(scene())


def test_a_display_that_grows_is_never_forgotten(
    views: TurnViews, told: list[dict[str, Any]]
) -> None:
    """A long turn behind, while many short ones come and go."""

    async def scene() -> None:
        long = Stage(views, "long")
        await long.seen()
        for number in range(KEPT_TURNS + 5):
            Stage(views, f"t{number}").end()
        assert len(views._views) == KEPT_TURNS
        running = [Stage(views, f"r{number}") for number in range(KEPT_TURNS + 5)]
        for stage in running:
            assert views.find(stage.turn.turn_id) is stage.view
        told.clear()
        long.feed(TextChunk(text="still here"))
        await until(lambda: any(long.page.place in each["places"] for each in told))
        long.press("stop")
        await until(lambda: long.stops == ["stop"])
        for stage in (*running, long):
            stage.end()

    run(scene())


@pytest.mark.req("dec58")
def test_what_a_page_counts_itself_is_not_said(
    views: TurnViews, told: object, outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that finds the turn while it waits leaves the saved output as it is."""
    monkeypatch.setattr(turn_view, "QUIET_S", 0.1)

    async def scene() -> None:
        stage = Stage(views)
        stage.feed(TurnStarted(model="gpt-x", turn_index=1))
        await stage.seen()
        await asyncio.sleep(0.2)
        stage.page._update()
        assert "waiting" not in str(outputs)
        stage.end()

    run(scene())
