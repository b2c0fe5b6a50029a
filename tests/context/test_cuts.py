"""Where a checkpoint may begin in overflow recovery, and what a request with it looks like."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.context.cuts import Cut, fewest_behind, recovery_cuts, running_cuts
from agent_magics.context.degrade import degraded_text
from agent_magics.context.projection import Projection, repair, turns_of
from agent_magics.core.errors import NothingToCompact
from agent_magics.core.events import SystemMessage, ToolCalled, UserMessage
from agent_magics.core.messages import Assistant, Message, ToolResult
from agent_magics.core.slots import Focused
from tests.context.story import Story, checkpoint_at, said, words
from tests.context.strict import assert_strict


def giant(iterations: int, *, is_running: bool = False) -> Story:
    """Tell a small turn (seqs 1 and 2) and one of many iterations: 3, then 4-6, 7-9, …"""
    story = Story()
    story.turn("small", "turn")
    story.ask("do much")
    for number in range(iterations):
        story.answer(f"step {number}")
        story.call(f"c{number}")
        story.result(f"c{number}", f"found {number}")
    if not is_running:
        story.answer("all done")
    return story


def cuts_of(story: Story, start: int = 0, running: str | None = None) -> list[Cut]:
    view = story.view()
    return recovery_cuts(view, turns_of(view, running), start, running)


@pytest.mark.req("dec35", "inv2")
def test_a_checkpoint_may_begin_at_turns_and_at_iterations_of_the_newest() -> None:
    """The last complete turn is cut at its assistant's messages; older ones stay whole."""
    story = giant(2)
    assert cuts_of(story) == [Cut(3), Cut(4, True, 0), Cut(7, True, 1), Cut(10, True, 2)]
    story.turn("small", "again")
    assert cuts_of(story) == [Cut(3), Cut(11), Cut(12, True, 0)]


@pytest.mark.req("dec35", "dec9")
def test_a_turn_that_said_nothing_is_not_the_one_that_is_cut() -> None:
    """Behind it, the newest turn with words is."""
    story = giant(1)
    story.ask("lost")
    story.answer("", cause="connection lost")
    story.ask("now")
    assert [cut.seq for cut in cuts_of(story, running=story.turn_id)] == [3, 4, 7, 8, 10]


@pytest.mark.req("dec35", "C9")
def test_a_second_cut_lies_behind_the_first() -> None:
    """Only what is newly left behind is counted."""
    assert cuts_of(giant(3), start=7) == [Cut(10, True, 1), Cut(13, True, 2)]


@pytest.mark.req("inv2")
def test_no_cut_stands_between_a_call_and_its_results() -> None:
    """Several calls at once, results in any order, a word of the user between, one result late."""
    story = Story()
    story.ask()
    story.call("a")
    story.call("b")
    story.steer("hurry")
    story.result("b")
    story.answer("meanwhile")
    story.result("a")
    second = story.answer("and now")
    story.call("a")
    story.result("a")
    assert [cut.seq for cut in cuts_of(story)] == [2, second]


@pytest.mark.req("dec35")
@pytest.mark.parametrize("first", [0, 1, 4, 9])
def test_the_fewest_behind_are_found(first: int) -> None:
    """The first that fits; the last where none does; none of none."""
    cuts = [Cut(seq) for seq in range(10)]
    assert fewest_behind(cuts, lambda cut: cut.seq >= first) == Cut(first)
    assert fewest_behind(cuts, lambda _: False) == Cut(9)
    assert fewest_behind([], lambda _: True) is None


@pytest.mark.req("C9", "dec35", "inv1")
def test_a_plan_may_cut_the_newest_turn_where_it_is_told_to() -> None:
    """The source ends and the tail begins there; the next plan goes on behind it."""
    story = giant(3)
    plan = story.plan(cut=Cut(10, is_inside=True, iterations=2))
    assert (plan.first_retained_seq, plan.is_turn_cut) == (10, True)
    assert (plan.summarised_turns, plan.kept_turns) == (1, 1)
    assert [m.seq for m in plan.source] == [1, 2, 3, 4, 6, 7, 9]
    checkpoint = checkpoint_at(10)
    with pytest.raises(NothingToCompact):
        story.plan(keep=1, checkpoint=checkpoint)
    story.turn("next", "turn")
    later = story.plan(keep=1, checkpoint=checkpoint)
    assert [m.seq for m in later.source] == [10, 12, 13]
    assert (later.summarised_turns, later.is_turn_cut) == (1, False)
    assert later.source_tokens < plan.source_tokens


@pytest.mark.req("C9", "inv1", "dec9")
def test_a_prompt_alone_behind_the_cut_is_in_the_source() -> None:
    """A turn whose message alone is summarised hasn't failed."""
    story = Story()
    story.ask("very long")
    story.answer("short")
    plan = story.plan(cut=Cut(2, is_inside=True))
    assert [words(message) for message in plan.source] == ["very long"]


@pytest.mark.req("C3", "C15", "inv9")
def test_a_cut_in_the_running_turn_leaves_what_the_user_said() -> None:
    """Prompt, skill and steering are sent, the old calls aren't, the newest ones are."""
    story = giant(2, is_running=True)
    story.note("be terse", note="skill")
    story.steer("in euros")
    story.answer("step 2")
    story.call("c2")
    story.result("c2")
    running = story.turn_id
    assert running is not None
    cuts = running_cuts(story.view(), running)
    assert [(cut.seq, cut.iterations) for cut in cuts] == [(7, 1), (12, 2)]
    projection = story.project(checkpoint=checkpoint_at(12), running_turn=running)
    assert [m.seq for m in projection.messages] == [None, 3, 10, 11, 12, 14]
    assert [projection.fates[seq] for seq in (3, 4, 9, 11)] == [
        "retained",
        "summarised",
        "summarised",
        "retained",
    ]


@pytest.mark.req("dec21", "dec35")
def test_focus_picks_from_what_an_iteration_leaves() -> None:
    """The filter works on the tail, whatever it begins with."""
    story = giant(4)
    mode = Focused(recent_messages=2)
    projection = story.project(checkpoint=checkpoint_at(10), mode=mode)
    assert [m.seq for m in projection.messages] == [None, 13, 15, 16]


@pytest.mark.req("C15")
@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"turns": 1}, "1 older turn is not shown"),
        ({"turns": 1_234}, "1,234 older turns are not shown"),
        (
            {"turns": 0, "inside": "an older turn"},
            "the beginning of the turn that goes on below is not shown",
        ),
        (
            {"turns": 2, "inside": "an older turn", "iterations": 1},
            (
                "2 older turns and the beginning of the turn that goes on below"
                " (the first message of the assistant, with its tool results) are not shown"
            ),
        ),
        (
            {"turns": 0, "inside": "this turn", "iterations": 12},
            (
                "the beginning of this turn (the first 12 messages of the assistant, with their"
                " tool results) is not shown"
            ),
        ),
    ],
)
def test_what_is_left_out_is_told_and_nothing_claimed(how: dict[str, Any], what: str) -> None:
    """Behind the summary that was there before."""
    text = degraded_text(previous_summary=" They like tea. ", **how)
    assert text.startswith("They like tea.\n\n[Earlier conversation omitted")
    assert f"recovery: {what} and not summarised. The ledger has all of it.]" in text


class Iteration(NamedTuple):
    """Ids are used again; at trouble 0 a result is missing, at 1 an answer stands between them."""

    has_word: bool
    ids: list[str]
    has_steering: bool
    order: Random
    trouble: int


ITERATIONS = st.lists(
    st.builds(
        Iteration,
        has_word=st.booleans(),
        ids=st.lists(st.sampled_from("xyz"), max_size=3, unique=True),
        has_steering=st.booleans(),
        order=st.randoms(use_true_random=False),
        trouble=st.integers(0, 9),
    ),
    max_size=5,
)
fuzzed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def long_turns(draw: st.DrawFn) -> Story:
    """Tell up to three turns of iterations; the last may have no end."""
    story = Story()
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 4)):
            story.ask("q " * draw(st.integers(0, 3)) or " ")
        else:
            story.turn_id = None
            story.write(UserMessage(content=said("before there were ids")))
        for iteration in draw(ITERATIONS):
            iterate(story, iteration)
        if draw(st.booleans()):
            story.answer("done")
    return story


def iterate(story: Story, iteration: Iteration) -> None:
    if iteration.has_word or not iteration.ids:
        story.answer("looking" if iteration.has_word else "")
    for call_id in iteration.ids:
        story.call(call_id)
    if iteration.has_steering:
        story.steer("hurry")
    answered = list(iteration.ids)
    iteration.order.shuffle(answered)
    for at, call_id in enumerate(answered):
        if at or iteration.trouble != 0:
            story.result(call_id)
        if iteration.trouble == 1:
            story.answer("between")


def events_sent(messages: tuple[Message, ...]) -> list[int]:
    """Find the seqs that messages stand for, calls included, in the order of sending."""
    seqs: list[int] = []
    for message in messages:
        own = [] if message.seq is None else [message.seq]
        calls = message.calls if isinstance(message, Assistant) else ()
        seqs += dict.fromkeys([*own, *(int(call.call_id[1:]) for call in calls)])
    return seqs


@pytest.mark.req("inv1", "inv2", "inv3", "dec35", "C3", "C9")
@fuzzed
@given(long_turns(), st.data())
def test_any_cut_gives_a_strict_request_and_loses_nothing(
    story: Story, data: st.DataObject
) -> None:
    """Cut after cut: what the summaries are made of and the tail are the raw history, once each."""
    raw = {s for s, fate in story.project().fates.items() if fate == "retained"}
    covered: list[int] = []
    checkpoint = None
    for _ in range(3):
        cuts = cuts_of(story, checkpoint.first_retained_seq if checkpoint else 0)
        if not cuts:
            break
        cut = data.draw(st.sampled_from(cuts))
        assert_nothing_open(story, cut)
        try:
            plan = story.plan(cut=cut, checkpoint=checkpoint)
        except NothingToCompact:  # all that is behind it has failed
            continue
        assert plan.is_turn_cut == cut.is_inside
        assert_strict(repair(plan.source))
        covered += events_sent(plan.source)
        checkpoint = checkpoint_at(cut.seq)
        projection = story.project(checkpoint=checkpoint)
        assert_same_alone(story, projection, checkpoint=checkpoint)
        assert_strict(projection.messages)
        assert projection.fates.keys() == story.lineage()
        sent = events_sent(projection.messages)
        assert len({*covered, *sent}) == len([*covered, *sent]), "said twice"
        assert {*covered, *sent} >= raw, "lost"
        assert min(sent, default=cut.seq) >= cut.seq
        assert {projection.fates[seq] for seq in sent} <= {"retained"}
        assert {projection.fates[seq] for seq in covered} <= {"summarised"}
    story.ask("lost")
    story.answer("", cause="failed")
    story.ask("and then")
    later = story.project(checkpoint=checkpoint, running_turn=story.turn_id)
    assert_same_alone(story, later, checkpoint=checkpoint, running_turn=story.turn_id)
    assert words(later.messages[-1]) == "and then"


@pytest.mark.req("inv3", "inv9", "C15", "dec35")
@fuzzed
@given(long_turns(), st.data())
def test_any_cut_in_the_running_turn_sends_all_that_the_user_said(
    story: Story, data: st.DataObject
) -> None:
    """And its newest iteration, as a strict request; nothing of what is behind the cut."""
    running = story.turn_id
    if running is None:
        return
    view = story.view()
    cuts = running_cuts(view, running)
    if not cuts:
        return
    cut = data.draw(st.sampled_from(cuts))
    assert_nothing_open(story, cut)
    how: dict[str, Any] = {"checkpoint": checkpoint_at(cut.seq), "running_turn": running}
    projection = story.project(**how)
    assert_same_alone(story, projection, **how)
    assert_strict(projection.messages, is_request=True)
    own = [event for event in view.events if event.turn_id == running]
    asked = [e.seq for e in own if isinstance(e.payload, UserMessage | SystemMessage)]
    whole = {m.seq: m for m in story.project(running_turn=running).messages}
    sent = {m.seq: m for m in projection.messages}
    assert {seq: sent[seq] for seq in asked if seq in whole} == {
        seq: whole[seq] for seq in asked if seq in whole
    }
    others = [s for s in events_sent(projection.messages) if s not in asked]
    assert others == [s for s in events_sent(tuple(whole.values())) if s in others]
    assert min(others) == cut.seq
    assert max(cut.seq for cut in cuts) in sent or isinstance(
        next(e for e in own if e.seq == cuts[-1].seq).payload, ToolCalled
    )


def assert_same_alone(story: Story, projection: Projection, **how: Any) -> None:
    """Fail where the tail alone would give other messages than the whole lineage."""
    alone = story.project(tail_only=True, **how)
    assert alone.messages == projection.messages
    assert alone.fates.items() <= projection.fates.items()
    assert alone.history_tokens == projection.history_tokens


def assert_nothing_open(story: Story, cut: Cut) -> None:
    """Fail where a result behind a cut answers a call before it."""
    whole = story.project()
    at = {
        call.call_id: m.seq for m in whole.messages if isinstance(m, Assistant) for call in m.calls
    }
    for message in whole.messages:
        if isinstance(message, ToolResult) and message.seq is not None and message.seq >= cut.seq:
            called = at[message.call_id]
            assert called is not None
            assert called >= cut.seq, "a call is parted from its result"
