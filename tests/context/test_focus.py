"""Focused slots: a filter on reading, counted in messages as sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.context.prompt import interruption_note, render_override
from agent_magics.core.messages import Assistant, ToolResult, User
from agent_magics.core.slots import Focused, Full
from tests.context.story import Story, checkpoint_at, words
from tests.context.strict import assert_strict


def shown(story: Story, mode: Focused, **settings: Any) -> list[str]:
    projection = story.project(mode=mode, **settings)
    assert_strict(projection.messages)
    return [words(message) for message in projection.messages]


@pytest.mark.req("S9", "dec22")
@pytest.mark.parametrize(
    ("count", "kept"),
    [
        (1, ["a2"]),
        (2, ["q2", "a2"]),
        (3, ["a1", "q2", "a2"]),
        (4, ["q1", "a1", "q2", "a2"]),
        (99, ["q1", "a1", "q2", "a2"]),
    ],
)
def test_the_last_messages_are_kept(count: int, kept: list[str]) -> None:
    """`recent_messages` counts messages; where the first isn't a user's a note opens."""
    story = Story()
    story.turn("q1", "a1")
    story.turn("q2", "a2")
    messages = shown(story, Focused(recent_messages=count))
    assert [text for text in messages if not text.startswith("[Note")] == kept


@pytest.mark.req("S9", "dec22")
def test_zero_leaves_only_the_system_notes_and_the_summary() -> None:
    """No message of the conversation is sent."""
    story = Story()
    story.begin()
    story.note("Plot.")
    story.turn("q", "a")
    kept = shown(story, Focused(recent_messages=0, summary_override="tea"))
    assert kept == [
        "[Note: the user called a skill; its text follows.]\nPlot.",
        render_override("tea"),
    ]
    bare = shown(story, Focused(recent_messages=0, keep_system=False, summary_override="tea"))
    assert bare == [render_override("tea")]


@pytest.mark.req("S9", "dec22")
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_cut_inside_an_exchange_moves_back_to_its_call(count: int) -> None:
    """Answer, two results, call with its word: a cut at a result keeps the call."""
    story = Story()
    story.ask("q")
    story.answer("looking")
    story.call("x")
    story.call("y")
    story.result("x", "one")
    story.result("y", "two")
    story.answer("done")
    kept = shown(story, Focused(recent_messages=count))
    assert [t for t in kept if not t.startswith("[Note")] == ["looking", "one", "two", "done"]


@pytest.mark.req("dec22")
@pytest.mark.parametrize("keep_system", [True, False])
def test_system_notes_are_kept_or_dropped_wherever_they_stand(*, keep_system: bool) -> None:
    """They don't count, and stay in their order where they stay."""
    story = Story()
    story.begin()
    story.note("old skill")
    story.turn("q1", "a1")
    story.begin()
    story.note("new skill")
    story.steer("q2")
    story.answer("a2")
    kept = shown(story, Focused(recent_messages=2, keep_system=keep_system))
    skills = [text.split("\n")[1] for text in kept if "skill;" in text]
    assert skills == (["old skill", "new skill"] if keep_system else [])
    assert kept[-2:] == ["q2", "a2"]


@pytest.mark.req("S10", "dec21", "Y3")
def test_the_override_stands_after_the_kept_messages() -> None:
    """With a running turn it comes before that turn, whose prompt stays last."""
    story = Story()
    story.turn("q1", "a1")
    mode = Focused(recent_messages=2, summary_override="they like tea")
    assert shown(story, mode) == ["q1", "a1", render_override("they like tea")]
    story.ask("q2")
    messages = story.project(mode=mode, running_turn=story.turn_id).messages
    assert [words(m) for m in messages] == ["q1", "a1", render_override("they like tea"), "q2"]
    assert isinstance(messages[2], User)


@pytest.mark.req("dec21")
def test_a_filter_never_touches_the_running_turn() -> None:
    """Its prompt, calls and results are all sent, and don't use up the count."""
    story = Story()
    story.turn("q1", "a1")
    story.ask("q2")
    for call_id in "xyz":
        story.call(call_id)
        story.result(call_id)
    projection = story.project(mode=Focused(recent_messages=1), running_turn=story.turn_id)
    assert [words(m) for m in projection.messages][1:] == ["a1", "q2", *["", "found"] * 3]
    assert projection.fates[1] == "excluded: focus"


@pytest.mark.req("dec21", "inv1")
def test_a_checkpoint_bounds_first_and_focus_picks_then() -> None:
    """Summary, last messages of the tail, override; the rest is out of focus."""
    story = Story()
    for number in range(3):
        story.turn(f"q{number}", f"a{number}")
    mode = Focused(recent_messages=2, summary_override="tea")
    projection = story.project(mode=mode, checkpoint=checkpoint_at(3))
    assert [words(m) for m in projection.messages][1:] == ["q2", "a2", render_override("tea")]
    assert projection.fates == {
        1: "summarised",
        2: "summarised",
        3: "excluded: focus",
        4: "excluded: focus",
        5: "retained",
        6: "retained",
    }


@pytest.mark.req("dec22", "E12")
def test_an_interruption_note_goes_with_its_message_and_does_not_count() -> None:
    """A note without what it is about would mean nothing."""
    story = Story()
    story.ask("q1")
    story.answer("half", cause="stopped")
    story.turn("q2", "a2")
    note = interruption_note("stopped")
    assert shown(story, Focused(recent_messages=2)) == ["q2", "a2"]
    assert shown(story, Focused(recent_messages=3))[1:] == ["half", note, "q2", "a2"]


@pytest.mark.req("S9")
def test_switching_back_restores_everything() -> None:
    """Focus is a filter on reading; the view is the same as before."""
    story = Story()
    story.turn()
    story.tool_turn()
    before = story.project(mode=Full())
    story.project(mode=Focused(recent_messages=1))
    assert story.project(mode=Full()) == before


@pytest.mark.req("dec19", "S6")
@pytest.mark.parametrize("mode", [Full(), Focused(recent_messages=99)])
def test_nothing_before_the_focus_of_a_derive_is_ever_seen(mode: Full | Focused) -> None:
    """In the child, in its children, in any mode, and not through a parent's summary either."""
    story = Story()
    story.turn("secret", "hidden")
    story.turn("shared", "known")
    story.add_slot("child", parent="uid-root", focus_seq=3)
    story.add_slot("grandchild", parent="child")
    for uid in ("child", "grandchild"):
        projection = story.project(uid=uid, mode=mode, checkpoint=checkpoint_at(3, "the secret"))
        assert [words(m) for m in projection.messages] == ["shared", "known"]
        assert projection.fates[1] == projection.fates[2] == "excluded: focus"
    own = story.project(uid="uid-root", mode=mode, focus_seq=3)
    assert [words(m) for m in own.messages] == ["shared", "known"]


@pytest.mark.req("S9", "dec22")
@given(
    count=st.integers(0, 12),
    keep_system=st.booleans(),
    kinds=st.lists(st.sampled_from("tqs"), max_size=6),
)
def test_at_least_so_many_messages_are_kept_and_at_most_an_exchange_more(
    *, count: int, keep_system: bool, kinds: list[str]
) -> None:
    """The last N messages as sent are always among what is kept."""
    story = Story()
    for kind in kinds:
        if kind == "t":
            story.tool_turn()
        else:
            story.turn()
            if kind == "s":
                story.note("a skill")
    full = [m for m in story.project().messages if "skill;" not in words(m)]
    mode = Focused(recent_messages=count, keep_system=keep_system)
    focused = story.project(mode=mode).messages
    assert_strict(focused)
    kept = [m for m in focused if m.seq is not None and "skill;" not in words(m)]
    assert kept == full[len(full) - len(kept) :]
    assert min(count, len(full)) <= len(kept) <= count + 1
    if len(kept) > count:
        assert isinstance(kept[0], Assistant)
        assert isinstance(kept[1], ToolResult)
