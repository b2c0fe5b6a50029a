"""Columns without a page: one output for several turns, rendered as seldom as one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_magics.core.turns import TextChunk
from agent_magics.notebook.cell.columns import Columns
from agent_magics.notebook.views.turn.turn_view import TurnViews
from agent_magics.threads.loop import run
from tests.notebook.views.stage import Stage

pytestmark = [pytest.mark.inside, pytest.mark.req("W4")]

Outputs = list[dict[str, Any]]


def columns(views: TurnViews, *slots: str) -> list[Stage]:
    """Put turns side by side."""
    pages = Columns(slots, is_live=True, anchor=views.anchor).pages
    return [Stage(views, slot, page=page) for slot, page in pages.items()]


def text_of(outputs: Outputs) -> str:
    return str(outputs[-1]["data"]["text/markdown"])


@pytest.mark.req("B5")
@pytest.mark.parametrize("count", [1, 2, 4])
def test_columns_are_rendered_as_seldom_as_one_page(
    views: TurnViews, outputs: Outputs, count: int
) -> None:
    """However many stream, they are one output, which a page renders whole."""

    async def scene() -> None:
        stages = columns(views, *"abcd"[:count])
        for _ in range(500):
            for stage in stages:
                stage.feed(TextChunk(text="word "))
        assert len(outputs) == 1
        await asyncio.sleep(0.35)  # what came after the first update
        assert 2 <= len(outputs) <= 4
        for stage in stages:
            assert text_of(outputs).count("word") == 500 * count
            stage.end()
        ended = len(outputs)
        await asyncio.sleep(0.35)
        assert len(outputs) == ended

    run(scene())
    assert {output["transient"]["display_id"] for output in outputs} == {
        outputs[0]["transient"]["display_id"]
    }
    assert [output["update"] for output in outputs] == [False] + [True] * (len(outputs) - 1)


@pytest.mark.req("B5")
def test_the_rate_of_columns_is_by_all_their_text(views: TurnViews, outputs: Outputs) -> None:
    """Four of 20 KB are rendered as one of 80 KB: at most once a second."""

    async def scene() -> None:
        stages = columns(views, *"abcd")
        for stage in stages:
            stage.feed(TextChunk(text="x " * 10_000))
        before, began = len(outputs), asyncio.get_running_loop().time()
        for _ in range(50):
            for stage in stages:
                stage.feed(TextChunk(text="y "))
            await asyncio.sleep(0.01)
        took_s = asyncio.get_running_loop().time() - began
        assert len(outputs) - before <= took_s
        for stage in stages:
            stage.end()

    run(scene())


@pytest.mark.req("B5")
def test_watched_columns_are_seldom_rendered(
    views: TurnViews, told: object, outputs: Outputs
) -> None:
    """The page draws all of them itself; what ends is shown at once, the rest stays."""

    async def scene() -> None:
        first, second = columns(views, "a", "b")
        for stage in (first, second):
            stage.feed(TextChunk(text="begin "))
            await stage.seen()
        await asyncio.sleep(0.15)  # a timer from before
        before = len(outputs)
        for _ in range(50):
            first.feed(TextChunk(text="word "))
            second.feed(TextChunk(text="other "))
            await asyncio.sleep(0.005)
        assert len(outputs) == before
        first.end()
        assert len(outputs) == before + 1
        assert text_of(outputs).count("other") == 50
        assert f"am-turn--{second.page.place}" in text_of(outputs)
        assert f"am-turn--{first.page.place}" not in text_of(outputs)
        second.feed(TextChunk(text="more "))
        await asyncio.sleep(0.15)
        assert len(outputs) == before + 1
        second.end()

    run(scene())
    assert "am-turn" not in text_of(outputs)
    assert "more" in text_of(outputs)
