"""Budgets and cut points, as far as they need no session."""

from __future__ import annotations

import pytest

from agent_magics.context.budget import Limits, limits_for, should_compact
from agent_magics.context.compaction import summary_request
from agent_magics.context.projection import turns_of
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import NothingToCompact
from agent_magics.core.events import AssistantMessage, ToolAnswered, ToolCalled, UserMessage
from agent_magics.core.messages import Assistant, ToolOutput, ToolResult
from agent_magics.core.slots import SlotConfig
from tests.context.story import Story, checkpoint_at, said, words
from tests.context.strict import assert_strict


def limits(window: int) -> Limits:
    return limits_for(window, AgentConfig(default_model="x:y"), SlotConfig())


def told(*turn_tokens: int) -> Story:
    """Tell turns of two events each; turn n begins at seq 2n-1 and has the given tokens."""
    story = Story()
    for number, tokens in enumerate(turn_tokens, 1):
        story.turn(f"q{number}", f"a{number}", tokens=tokens // 2)
    return story


# Budget


@pytest.mark.req("C4", "C20.2")
def test_default_threshold_of_128k() -> None:
    """128,000 - 16,384, with 20,000 kept."""
    given = limits(128_000)
    assert (given.threshold, given.reserve, given.keep) == (111_616, 16_384, 20_000)


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("window", "reserve", "keep"), [(8_000, 4_000, 2_000), (30_000, 15_000, 7_500), (2, 1, 0)]
)
def test_small_windows_scale_reserve_and_keep_recent(window: int, reserve: int, keep: int) -> None:
    """Half of the window, and half of the threshold."""
    given = limits(window)
    assert (given.reserve, given.keep) == (reserve, keep)
    assert (given.configured_reserve, given.configured_keep) == (16_384, 20_000)


@pytest.mark.req("C4", "C20.2")
@pytest.mark.parametrize("window", [8_000, 128_000])
def test_the_threshold_itself_does_not_trigger_and_one_more_does(window: int) -> None:
    """Over it, not on it."""
    given = limits(window)
    assert not should_compact(given.threshold, given)
    assert should_compact(given.threshold + 1, given)


# Cut points


@pytest.mark.req("C8", "inv2")
def test_whole_turns_are_kept_from_the_tail_by_tokens() -> None:
    """A turn that would pass the limit goes, and every older one with it."""
    story = told(10, 10, 100, 40, 40)
    assert story.plan(keep=80).first_retained_seq == 7
    assert story.plan(keep=179).first_retained_seq == 7
    assert story.plan(keep=180).first_retained_seq == 5


@pytest.mark.req("C8")
def test_at_least_the_newest_turn_is_kept() -> None:
    """However large it is."""
    plan = told(10, 10, 9_000).plan(keep=1)
    assert (plan.first_retained_seq, plan.kept_turns) == (5, 1)


@pytest.mark.req("C8", "dec12")
def test_steering_is_kept_with_its_turn() -> None:
    """And goes with it: no cut stands before a steering message."""
    story = told(10)
    asked = story.ask("go", tokens=10)
    steered = story.steer("in euros")
    story.answer(tokens=10)
    kept = story.plan(keep=1)
    assert kept.first_retained_seq == asked
    story.turn("later", tokens=10)
    gone = story.plan(keep=1, checkpoint=checkpoint_at(asked))
    assert steered in {message.seq for message in gone.source}
    assert gone.first_retained_seq > steered


@pytest.mark.req("C8", "C20.8", "inv2")
@pytest.mark.parametrize("keep", [0, 5, 20, 40, 60])
def test_parallel_calls_and_all_their_results_are_not_parted(keep: int) -> None:
    """On either side of the cut stand whole exchanges."""
    story = told(10)
    for number in range(4):
        story.ask(f"look {number}")
        for call_id in "abc":
            story.call(call_id)
        for call_id in "cab":
            story.result(call_id, f"seen {call_id}")
        story.answer("so")
    plan = story.plan(keep=keep)
    tail = story.project(checkpoint=checkpoint_at(plan.first_retained_seq)).messages
    for messages in (plan.source, tail):
        assert_strict(messages)
        calls = sum(len(m.calls) for m in messages if isinstance(m, Assistant))
        results = [m for m in messages if isinstance(m, ToolResult)]
        assert len(results) == calls
        assert all(result.content.startswith("seen") for result in results)


@pytest.mark.req("C8")
def test_old_messages_without_a_turn_id_are_grouped_by_roles() -> None:
    """A prompt begins a turn; its calls, results and answer belong to it."""
    story = Story()
    story.turn_id = None
    starts = []
    for number in range(3):
        starts.append(story.write(UserMessage(content=said(f"q{number}")), tokens=10))
        story.write(ToolCalled(call_id="x", tool_name="f", arguments={}), tokens=10)
        output = ToolOutput(content="r")
        story.write(ToolAnswered(call_id="x", tool_name="f", output=output), tokens=10)
        story.write(AssistantMessage(content=said(f"a{number}")), tokens=10)
    assert [span.first_seq for span in turns_of(story.view())] == starts
    plan = story.plan(keep=1)
    assert plan.first_retained_seq == starts[-1]
    assert_strict(plan.source)


@pytest.mark.req("C9", "C20.6")
def test_a_repeated_compaction_takes_the_middle_after_the_last_summary() -> None:
    """Previous summary + what was newly left behind; nothing that it covers is read again."""
    story = told(10, 10, 10, 10, 10)
    plan = story.plan(keep=1, checkpoint=checkpoint_at(5, "Tea was chosen."))
    assert [message.seq for message in plan.source] == [5, 6, 7, 8]
    asked = words(summary_request(plan, model="m", window=8_000).messages[-1])
    assert "Tea was chosen." in asked
    assert "q3" in asked
    assert "q2" not in asked


@pytest.mark.req("C9")
def test_nothing_new_to_compact_is_a_no_op() -> None:
    """The boundary would be where it is."""
    story = told(10, 10, 10)
    first = story.plan(keep=1).first_retained_seq
    with pytest.raises(NothingToCompact):
        story.plan(keep=1, checkpoint=checkpoint_at(first))
