"""What holds over random ledgers: turns, tools, failures, rewinds, branches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.context.projection import project, repair, turns_of, view_of
from agent_magics.core.errors import NothingToCompact
from agent_magics.core.events import (
    LedgerEvent,
)
from agent_magics.core.messages import Assistant
from agent_magics.core.slots import Checkpoint, Focused, Full, Readonly, SlotMode
from tests.context.story import (
    Story,
    assert_nothing_open,
    checkpoint_at,
    sample,
    seqs_of,
    words,
)
from tests.context.strict import assert_strict
from tests.context.telling import Draw, stories, tell

ROOM = Path(__file__).resolve().parent.parent.parent
T = TypeVar("T")


FOCUSED: st.SearchStrategy[SlotMode] = st.builds(
    Focused,
    keep_system=st.booleans(),
    recent_messages=st.integers(0, 6),
    summary_override=st.none() | st.just("they like tea"),
)
WHOLE: list[SlotMode] = [Full(), Readonly()]
MODES = st.sampled_from(WHOLE) | FOCUSED
fuzzed = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def drawn_checkpoint(draw: Draw, story: Story, uid: str) -> Checkpoint | None:
    firsts = [span.first_seq for span in turns_of(story.view(uid))]
    at = draw(st.sampled_from([None, 0, *firsts]))
    return None if at is None else checkpoint_at(at, uid=uid)


@st.composite
def scenes(draw: st.DrawFn) -> dict[str, Any]:
    """A slot of a random story, and everything that a projection of it is asked with."""
    story = draw(stories())
    uid = draw(st.sampled_from(sorted(story.slots)))
    spans = turns_of(story.view(uid))
    is_running = draw(st.booleans())
    running = spans[-1].turn_id if spans and is_running else None
    return {
        "story": story,
        "uid": uid,
        "mode": draw(MODES),
        "checkpoint": drawn_checkpoint(draw, story, uid),
        "running_turn": running,
    }


@pytest.mark.req("inv1")
@fuzzed
@given(scenes())
def test_every_seq_has_exactly_one_fate(scene: dict[str, Any]) -> None:
    """Summarised, retained, or excluded with a reason; none is missed, none is made up."""
    story, uid = scene.pop("story"), scene["uid"]
    projection = story.project(**scene)
    seqs = [event.seq for event in story.view(uid).events]
    assert seqs == sorted(set(seqs))
    assert projection.fates.keys() == story.lineage(uid)
    for fate in projection.fates.values():
        assert fate in {"summarised", "retained"} or fate.startswith("excluded: ")
    sent = {m.seq for m in projection.messages if m.seq is not None}
    sent |= {
        int(call.call_id[1:].partition("-")[0])
        for m in projection.messages
        if isinstance(m, Assistant)
        for call in m.calls
    }
    retained = {seq for seq, fate in projection.fates.items() if fate == "retained"}
    assert sent == retained
    if "summarised" in projection.fates.values():
        assert scene["checkpoint"] is not None
        assert words(projection.messages[0]) == scene["checkpoint"].rendered


@pytest.mark.req("inv3", "C3")
@fuzzed
@given(scenes())
def test_every_projection_is_a_strict_request(scene: dict[str, Any]) -> None:
    """Whatever the ledger holds; projecting twice gives the same, repairing again too."""
    story, running = scene.pop("story"), scene["running_turn"]
    projection = story.project(**scene)
    assert_strict(projection.messages, is_request=running is not None)
    assert repair(projection.messages) == projection.messages
    assert story.project(**scene) == projection
    assert projection.history_tokens >= 0
    assert projection.tool_result_tokens >= 0


@pytest.mark.req("inv2", "inv1", "C8", "C9")
@fuzzed
@given(stories(), st.data())
def test_any_number_of_compactions_loses_nothing_and_says_nothing_twice(
    story: Story, data: st.DataObject
) -> None:
    """Each cut is the first event of a whole turn, nothing open stands before it, and the sources
    of all compactions together are what was summarised, each seq once.
    """
    uid = data.draw(st.sampled_from(sorted(story.slots)))
    checkpoint: Checkpoint | None = None
    summarised: list[int] = []
    for keep in data.draw(st.lists(st.integers(0, 200), min_size=1, max_size=4)):
        try:
            plan = story.plan(uid=uid, keep=keep, checkpoint=checkpoint)
        except NothingToCompact:
            story.turn(uid=uid)
            continue
        view = story.view(uid)
        assert plan.first_retained_seq in {span.first_seq for span in turns_of(view)}
        assert plan.previous == checkpoint
        assert_nothing_open(view.events, plan.first_retained_seq)
        summarised += seqs_of(plan.source)
        checkpoint = checkpoint_at(plan.first_retained_seq, uid=uid)
        story.turn(uid=uid)
    projection = story.project(uid=uid, checkpoint=checkpoint)
    assert len(summarised) == len(set(summarised))
    fates = projection.fates
    assert {fates[seq] for seq in summarised} <= {"summarised"}
    retained = {seq for seq, fate in story.project(uid=uid).fates.items() if fate == "retained"}
    kept = {seq for seq, fate in fates.items() if fate == "retained"}
    assert kept | set(summarised) >= retained


@pytest.mark.req("S6", "inv11", "dec18")
@fuzzed
@given(stories(), st.data())
def test_parent_and_child_stay_apart_whatever_either_does(
    story: Story, data: st.DataObject
) -> None:
    """After a derive, writes, rewinds and clears on one side never show on the other."""
    uid = data.draw(st.sampled_from(sorted(story.slots)))
    ends = [span.last_seq for span in turns_of(story.view(uid))]
    child = story.add_slot("uid-child", parent=uid, fork_seq=ends[-1] if ends else story.seq)
    before = {each: story.project(uid=each) for each in (uid, child)}
    changed = data.draw(st.sampled_from([uid, child]))
    other = child if changed == uid else uid
    for kind in data.draw(st.lists(st.sampled_from(["turn", "tools", "rewind", "clear"]))):
        tell(data.draw, story, kind, changed)
    assert story.project(uid=other) == before[other]
    inherited = {event.seq for event in story.view(child).events if event.slot_uid != child}
    assert inherited <= story.lineage(uid)


@pytest.mark.req("S6", "dec18")
@fuzzed
@given(stories(is_tidy=True), st.data())
def test_a_full_derive_sees_what_its_parent_sees(story: Story, data: st.DataObject) -> None:
    """At the moment of deriving both have the same messages."""
    uid = data.draw(st.sampled_from(sorted(story.slots)))
    ends = [span.last_seq for span in turns_of(story.view(uid))]
    child = story.add_slot("uid-child", parent=uid, fork_seq=ends[-1] if ends else story.seq)
    assert story.project(uid=child).messages == story.project(uid=uid).messages


@pytest.mark.req("inv16", "C3", "E18")
@fuzzed
@given(stories(is_tidy=True), st.data())
def test_a_view_from_the_store_is_the_live_view(story: Story, data: st.DataObject) -> None:
    """Events that went through their stored form give the same view, projection and turns."""
    uid = data.draw(st.sampled_from(sorted(story.slots)))
    encoded = {at: msgspec.msgpack.encode(events) for at, events in story.events.items()}
    reloaded = {
        at: msgspec.msgpack.decode(blob, type=list[LedgerEvent]) for at, blob in encoded.items()
    }
    view = view_of(uid, story.slots, reloaded)
    assert view == story.view(uid)
    assert turns_of(view) == turns_of(story.view(uid))
    assert project(view, mode=Full(), checkpoint=None) == story.project(uid=uid)


@pytest.mark.slow
@pytest.mark.req("inv3", "C3")
def test_another_process_gives_the_same_bytes() -> None:
    """No hash order, clock or state of a process goes into a projection."""
    code = (
        "import msgspec, sys\n"
        "from tests.context.story import sample\n"
        "sys.stdout.buffer.write(msgspec.json.encode(sample()))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=ROOM,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOM)},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {msgspec.json.encode(sample())}
    assert len(json.loads(outputs.pop())) > 10


@pytest.mark.req("C3", "inv16")
@fuzzed
@given(scenes())
def test_the_tail_alone_gives_the_same_messages(scene: dict[str, Any]) -> None:
    """What a turn computes, from the tail, is what the whole lineage would give."""
    view = scene["story"].view(scene["uid"])
    asked = {name: scene[name] for name in ("mode", "checkpoint", "running_turn")}
    whole, tail = project(view, **asked), project(view, **asked, tail_only=True)
    assert tail.messages == whole.messages
    assert tail.history_tokens == whole.history_tokens
    assert tail.tool_result_tokens == whole.tool_result_tokens
    assert tail.fates.items() <= whole.fates.items()
