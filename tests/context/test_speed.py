"""A long session stays quick: what a turn computes is linear, with a small factor."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from agent_magics.context.projection import turns_of
from agent_magics.core.messages import ToolResult
from tests.context.story import Story, checkpoint_at

EVENTS = 40_000


def best_of_three(work: Callable[[], object]) -> float:
    """Time `work` three times; the best is the least disturbed by other processes."""
    took: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


@pytest.mark.slow
@pytest.mark.req("C3")
def test_forty_thousand_events_are_viewed_and_projected_at_once() -> None:
    """About 0.15 s on a quiet machine; a quadratic step would take minutes."""
    story = Story()
    while story.seq < EVENTS:
        story.tool_turn(str(story.turns))
    view = story.view()
    assert len(view.events) == EVENTS
    assert best_of_three(story.view) < 0.5
    assert best_of_three(lambda: turns_of(view)) < 0.5
    assert best_of_three(story.project) < 1.5
    assert best_of_three(lambda: story.plan(keep=100)) < 2.5


@pytest.mark.slow
@pytest.mark.req("inv3")
def test_one_turn_of_many_calls_is_projected_at_once() -> None:
    """Thousands of calls in a turn, answered in another order, are no trap."""
    story = Story()
    story.ask()
    for number in range(5_000):
        story.call(f"call {number}")
    for number in reversed(range(5_000)):
        story.result(f"call {number}")
    assert best_of_three(story.project) < 2
    results = [m for m in story.project().messages if isinstance(m, ToolResult)]
    assert [result.call_id for result in results[:2]] == ["c2", "c3"]


@pytest.mark.slow
@pytest.mark.req("C3")
def test_a_checkpoint_makes_the_next_request_cheaper() -> None:
    """What is summed up is not translated again: a request is made of the raw tail alone."""
    story = Story()
    while story.seq < EVENTS:
        story.tool_turn()
    view = story.view()
    first = turns_of(view)[-10].first_seq
    checkpoint = checkpoint_at(first)
    whole = best_of_three(lambda: story.project(tail_only=True))
    rest = best_of_three(lambda: story.project(tail_only=True, checkpoint=checkpoint))
    assert rest < whole / 3  # a fourteenth on a quiet machine
