"""Which events a slot sees: lineage, rewinds, clears, and how they fall into turns."""

from __future__ import annotations

import pytest

from agent_magics.context.view import turns_of
from agent_magics.core.messages import Assistant, System, User
from tests.context.story import ROOT, Story, said


def seqs(story: Story, uid: str = ROOT) -> list[int]:
    return [event.seq for event in story.view(uid).events]


@pytest.mark.req("dec25")
def test_a_rewind_takes_later_events_out_of_view() -> None:
    """What follows `to_seq` left, and is named as rewound."""
    story = Story()
    first = story.turn("one")
    story.turn("two")
    story.rewind(first)
    story.turn("three")
    view = story.view()
    assert [event.seq for event in view.events] == [1, 2, 6, 7]
    assert view.left == {3: "excluded: rewound", 4: "excluded: rewound"}


@pytest.mark.req("dec25")
def test_a_clear_takes_everything_out_of_view() -> None:
    """After a clear the slot is empty, and goes on from there."""
    story = Story()
    story.turn("one")
    story.clear()
    story.turn("two")
    view = story.view()
    assert [event.seq for event in view.events] == [4, 5]
    assert view.left == {1: "excluded: cleared", 2: "excluded: cleared"}


@pytest.mark.req("dec51", "dec54")
def test_undoing_a_rewind_brings_back_what_it_removed() -> None:
    """Redo: nothing is ever gone."""
    story = Story()
    first = story.turn("one")
    story.turn("two")
    rewind = story.rewind(first)
    story.rewind(first, undoes=rewind)
    assert seqs(story) == [1, 2, 3, 4]
    assert story.view().left == {}


@pytest.mark.req("dec54")
def test_undo_steps_are_redone_one_by_one() -> None:
    """Each redo brings back what its undo removed, no more."""
    story = Story()
    ends = [story.turn(str(number)) for number in range(3)]
    first_undo = story.rewind(ends[1])
    second_undo = story.rewind(ends[0])
    story.rewind(ends[0], undoes=second_undo)
    assert seqs(story) == [1, 2, 3, 4]
    story.rewind(ends[1], undoes=first_undo)
    assert seqs(story) == [1, 2, 3, 4, 5, 6]


@pytest.mark.req("dec25")
def test_undoing_a_clear_brings_the_history_back() -> None:
    """The other branch, begun since, leaves as `to_seq` says."""
    story = Story()
    story.turn("one")
    clear = story.clear()
    story.turn("two")
    story.rewind(0, undoes=clear)
    view = story.view()
    assert [event.seq for event in view.events] == [1, 2]
    assert view.left == {4: "excluded: rewound", 5: "excluded: rewound"}


@pytest.mark.req("dec25")
def test_what_comes_back_out_of_order_stands_where_it_was_said() -> None:
    """Events are by rising seq, whichever rewind is undone first."""
    story = Story()
    story.turn("one")
    clear = story.clear()
    story.turn("two")
    story.rewind(story.seq, undoes=clear)
    assert seqs(story) == [1, 2, 4, 5]


@pytest.mark.req("S6", "inv11", "dec18")
def test_parent_and_child_never_see_what_the_other_says_later() -> None:
    """A child sees its parent up to and including the fork, then only itself."""
    story = Story()
    story.turn("shared")
    child = story.add_slot("child", parent=ROOT)
    story.turn("parent later")
    story.turn("child later", uid=child)
    assert seqs(story) == [1, 2, 3, 4]
    assert seqs(story, child) == [1, 2, 5, 6]


@pytest.mark.req("S6", "inv11", "dec18")
@pytest.mark.parametrize("change", ["rewind", "clear", "undo"])
def test_what_a_parent_removes_later_stays_in_the_child(change: str) -> None:
    """Rewinds and clears of the parent are the parent's."""
    story = Story()
    story.turn("one")
    story.turn("two")
    child = story.add_slot("child", parent=ROOT)
    if change == "clear":
        story.clear()
    else:
        rewind = story.rewind(2)
        if change == "undo":
            story.rewind(2, undoes=rewind)
    assert seqs(story, child) == [1, 2, 3, 4]


@pytest.mark.req("dec18")
def test_a_child_of_a_rewound_parent_sees_it_as_it_stood() -> None:
    """What had left before the fork is not inherited."""
    story = Story()
    story.turn("one")
    story.turn("two")
    story.rewind(2)
    story.turn("three")
    child = story.add_slot("child", parent=ROOT)
    assert seqs(story, child) == [1, 2, 6, 7]


@pytest.mark.req("dec18")
def test_an_earlier_fork_sees_only_so_much() -> None:
    """`fork_seq` is inclusive."""
    story = Story()
    story.turn("one")
    story.turn("two")
    child = story.add_slot("child", parent=ROOT, fork_seq=2)
    assert seqs(story, child) == [1, 2]


@pytest.mark.req("S6")
def test_deep_branches_are_bounded_at_every_fork() -> None:
    """A grandchild forked before its parent's own events inherits only the grandparent's."""
    story = Story()
    story.turn("one")
    story.turn("two")
    child = story.add_slot("child", parent=ROOT)
    story.turn("child's own", uid=child)
    early = story.add_slot("early", parent=child, fork_seq=2)
    late = story.add_slot("late", parent=child)
    story.turn("late's own", uid=late)
    assert seqs(story, early) == [1, 2]
    assert seqs(story, late) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.req("dec25")
def test_a_child_rewinds_into_inherited_history_for_itself_only() -> None:
    """The parent keeps what its child gave up."""
    story = Story()
    story.turn("one")
    story.turn("two")
    child = story.add_slot("child", parent=ROOT)
    story.rewind(2, uid=child)
    assert seqs(story, child) == [1, 2]
    assert seqs(story) == [1, 2, 3, 4]


@pytest.mark.req("dec19")
def test_the_focus_of_any_ancestor_holds() -> None:
    """A grandchild can't see what its focused parent was never shown."""
    story = Story()
    story.turn("one")
    story.turn("two")
    story.add_slot("child", parent=ROOT, focus_seq=3)
    story.add_slot("grandchild", parent="child")
    assert story.view("grandchild").focus_seq == 3
    assert story.view().focus_seq is None


def test_a_broken_lineage_gives_what_is_there() -> None:
    """A missing parent, or a circle, ends the lineage."""
    story = Story()
    story.add_slot("orphan", parent="gone")
    story.turn("alone", uid="orphan")
    story.add_slot("ring", parent="ring")
    assert seqs(story, "orphan") == [1, 2]
    assert seqs(story, "ring") == []


@pytest.mark.req("dec8")
def test_turns_count_along_the_lineage_and_rewound_numbers_come_again() -> None:
    """A child of turn 2 goes on at 3; turn ids are never given again."""
    story = Story()
    story.turn("one")
    end = story.turn("two")
    story.turn("lost")
    story.rewind(end)
    child = story.add_slot("child", parent=ROOT, fork_seq=end)
    story.turn("three", uid=child)
    story.turn("three again")
    for uid, turn_id in ((child, "turn-4"), (ROOT, "turn-5")):
        spans = turns_of(story.view(uid))
        assert [span.index for span in spans] == [1, 2, 3]
        assert spans[-1].turn_id == turn_id


def test_a_turn_has_its_borders_tokens_and_state() -> None:
    """A span says where a turn begins and ends, what it weighs, and whether it is over."""
    story = Story()
    story.turn("one", tokens=7)
    story.ask("two", tokens=5)
    story.steer("and this")
    first, second = turns_of(story.view(), running=story.turn_id)
    assert (first.first_seq, first.last_seq, first.tokens, first.is_finished) == (1, 2, 14, True)
    assert (second.first_seq, second.last_seq, second.is_finished) == (3, 4, False)
    assert all(span.is_finished for span in turns_of(story.view()))


@pytest.mark.req("C8")
def test_events_without_turn_ids_are_grouped_by_roles() -> None:
    """A user's message begins a turn once the one before has been answered."""
    story = Story()
    user, reply = User(content=said("q")), Assistant(content=said("a"))
    story.imported([System(text="s"), reply, user, user, reply, reply, user])
    spans = turns_of(story.view())
    assert [(span.first_seq, span.last_seq) for span in spans] == [(1, 6), (7, 7)]


@pytest.mark.req("C8", "B4")
def test_a_note_without_a_turn_stays_with_the_turn_before_it() -> None:
    """What was carried over between two turns doesn't count as one."""
    story = Story()
    story.note("carried", note="bridge", alone=True)
    story.turn("one")
    story.note("carried", note="bridge", alone=True)
    story.turn("two")
    spans = turns_of(story.view())
    assert [(span.turn_id, span.first_seq, span.last_seq) for span in spans] == [
        ("turn-1", 1, 4),
        ("turn-2", 5, 6),
    ]


def test_imported_history_and_later_turns_are_told_apart() -> None:
    """A turn with an id begins after the imported ones."""
    story = Story()
    story.imported([User(content=said("q")), Assistant(content=said("a"))])
    story.turn("one")
    story.imported([User(content=said("q"))])
    assert [s.turn_id for s in turns_of(story.view())] == [None, "turn-1", None]
