"""Long walks in the pure context: append, compact, derive, rewind, switch mode, reload; looked at
after every step.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.context.clipping import clip_results
from agent_magics.context.compaction import output_limit_for, summary_request
from agent_magics.context.projection import Projection, bounds_of, repair, turns_of
from agent_magics.context.tokens import count_message
from agent_magics.core.errors import CompactError, NothingToCompact
from agent_magics.core.events import (
    Clear,
    LedgerEvent,
    Rewind,
    UserMessage,
)
from agent_magics.core.messages import Content, Text, User
from agent_magics.core.slots import Checkpoint, Focused, Full, Slot, SlotMode
from tests.context.story import (
    ROOT,
    Story,
    assert_nothing_open,
    checkpoint_at,
    seqs_of,
    words,
)
from tests.context.strict import assert_strict
from tests.context.telling import BROKEN, TIDY, TROUBLE, Draw, tell, tools

MOST_SLOTS = 4
OURS = ["running", "focus", "full", "reload", *("compact", "turn") * 6]
STEPS = [*TIDY, *BROKEN, *OURS]
STORED = tuple[dict[str, Slot], dict[str, list[LedgerEvent]], dict[str, Checkpoint | None]]
MODES: list[SlotMode] = [
    Focused(recent_messages=0),
    Focused(recent_messages=3, keep_system=False, summary_override="they like tea"),
    Focused(recent_messages=2),
]


class Walk:
    """A story, and what a session keeps beside its events: modes, checkpoints, what they cover."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.story = Story()
        self.modes: dict[str, SlotMode] = {ROOT: Full()}
        self.active: dict[str, Checkpoint | None] = {ROOT: None}
        self.parents: dict[str, Checkpoint | None] = {}
        self.sources: dict[str, list[int]] = {}
        self.left: dict[int, Checkpoint | None] = {}

    def step(self) -> None:
        kind = self.draw(st.sampled_from(STEPS))
        uid = self.draw(st.sampled_from(sorted(self.story.slots)))
        before = {other: self.project(other) for other in self.story.slots if other != uid}
        match kind:
            case "compact":
                self.compact(uid)
            case "running":
                self.run(uid)
            case "focus" | "full":
                chosen = Full() if kind == "full" else self.draw(st.sampled_from(MODES))
                self.modes[uid] = chosen
            case "reload":
                self.reload()
            case _:
                self.tell(kind, uid)
        for other, projection in before.items():
            assert self.project(other) == projection, f"{kind} in {uid} shows in {other}"
        for each in self.story.slots:
            self.look(each)

    def tell(self, kind: str, uid: str) -> None:
        """Let something happen, and move the checkpoint as a session does."""
        if kind == "derive" and len(self.story.slots) >= MOST_SLOTS:
            return
        told, known = len(self.story.events[uid]), set(self.story.slots)
        tell(self.draw, self.story, kind, uid)
        for event in self.story.events[uid][told:]:
            match event.payload:
                case Rewind(undoes=int(undone)) if undone in self.left:
                    self.left[event.seq] = self.active[uid]
                    self.active[uid] = self.true_of(uid, self.left[undone])
                case Rewind(to_seq=to_seq):
                    self.left[event.seq] = self.active[uid]
                    self.active[uid] = self.before(uid, to_seq)
                case Clear():
                    self.left[event.seq], self.active[uid] = self.active[uid], None
                case _:
                    pass
        for child in set(self.story.slots) - known:
            self.modes[child] = Full()
            made = self.story.slots[child]  # a summary tells of what a focused derive hides
            first = None if made.focus_seq else self.before(uid, made.fork_seq)
            self.active[child] = self.true_of(child, first)

    def before(self, uid: str, seq: int) -> Checkpoint | None:
        found = self.active[uid]
        while found is not None and found.first_retained_seq > seq:
            found = self.parents[found.checkpoint_id]
        return found

    def true_of(self, uid: str, found: Checkpoint | None) -> Checkpoint | None:
        """Find the newest checkpoint that tells of what is in a slot's view, and of all of it."""
        seqs = {event.seq for event in self.story.view(uid).events}
        raw = seqs_with(self.story.project(uid=uid), "retained")
        while found is not None:
            covered = set(self.covered(found))
            if covered <= seqs and {s for s in raw if s < found.first_retained_seq} <= covered:
                return found
            found = self.parents[found.checkpoint_id]
        return None

    def compact(self, uid: str, running: str | None = None) -> None:
        """Compact once; at once again there is nothing to do."""
        keep = self.draw(st.sampled_from([0, 20, 60, 200]))
        how: dict[str, Any] = {"uid": uid, "keep": keep, "running_turn": running}
        try:
            plan = self.story.plan(checkpoint=self.active[uid], **how)
        except NothingToCompact:
            return
        view = self.story.view(uid)
        assert plan.first_retained_seq in {span.first_seq for span in turns_of(view)}
        assert plan.previous == bounds_of(view, self.active[uid]).checkpoint
        assert_nothing_open(view.events, plan.first_retained_seq)
        for window in (1_200, 4_000):
            try:
                request = summary_request(plan, model="m", window=window)
            except CompactError:
                continue
            assert_strict(request.messages, is_request=True)
            weight = sum(map(count_message, request.messages))
            assert weight + output_limit_for(window) <= window
        before = self.project(uid, running)
        made = msgspec.structs.replace(
            checkpoint_at(plan.first_retained_seq, uid=uid), checkpoint_id=f"cp{len(self.parents)}"
        )
        self.parents[made.checkpoint_id] = plan.previous
        self.sources[made.checkpoint_id] = seqs_of(plan.source)
        self.active[uid] = made
        after = self.project(uid, running)
        assert after.history_tokens <= before.history_tokens
        with pytest.raises(NothingToCompact):
            self.story.plan(checkpoint=made, **how)

    def run(self, uid: str) -> None:
        """Run a turn, compact in the middle of it, and look while it runs."""
        told = len(self.story.events[uid])
        self.story.ask(self.draw(st.sampled_from(["question", "rows " * 300, *TROUBLE])), uid=uid)
        running = self.story.turn_id
        self.compact(uid, running)
        for _ in range(self.draw(st.integers(0, 2))):
            tools(self.draw, self.story, uid)
            self.story.steer(self.draw(st.sampled_from(["hurry", *TROUBLE])), uid=uid)
            self.look(uid, running)
        projection = self.project(uid, running)
        asked = {e.seq: said for e in self.story.events[uid][told:] if (said := said_in(e))}
        for messages in (projection.messages, clip_results(projection.messages, 10).messages):
            assert_strict(messages, is_request=True)
            sent = [(m.seq, m.content) for m in messages if isinstance(m, User) and m.seq in asked]
            assert sent == sorted(asked.items())
        self.story.answer(uid=uid)

    def reload(self) -> None:
        """Read everything again from its stored form."""
        before = {uid: self.project(uid) for uid in self.story.slots}
        blob = msgspec.msgpack.encode((self.story.slots, self.story.events, self.active))
        slots, events, active = msgspec.msgpack.decode(blob, type=STORED)
        self.story.slots, self.story.events, self.active = slots, events, active
        assert {uid: self.project(uid) for uid in slots} == before

    def project(self, uid: str, running: str | None = None, **more: Any) -> Projection:
        how = {"checkpoint": self.active[uid], "mode": self.modes[uid], **more}
        return self.story.project(uid=uid, running_turn=running, **how)

    def look(self, uid: str, running: str | None = None) -> None:
        """Check that a slot has lost nothing, told nothing twice and reloads the same."""
        view, projection = self.story.view(uid), self.project(uid, running)
        assert projection.fates.keys() == self.story.lineage(uid)
        retained = seqs_with(projection, "retained")
        assert set(seqs_of(projection.messages)) == retained
        assert_strict(projection.messages, is_request=running is not None)
        assert repair(projection.messages) == projection.messages
        assert self.project(uid, running, tail_only=True).messages == projection.messages
        valid = bounds_of(view, self.active[uid]).checkpoint
        covered = self.covered(valid)
        assert len(covered) == len(set(covered)), "summarised twice"
        if valid is None:
            assert not seqs_with(projection, "summarised")
            return
        assert words(projection.messages[0]) == valid.rendered
        assert valid.first_retained_seq in {span.first_seq for span in turns_of(view)}
        assert seqs_with(projection, "summarised") == set(covered)
        whole = self.project(uid, running, mode=Full())
        raw = self.project(uid, running, mode=Full(), checkpoint=None)
        lost = seqs_with(raw, "retained") - seqs_with(whole, "retained") - set(covered)
        assert not lost, "neither in a summary nor in the tail"

    def covered(self, checkpoint: Checkpoint | None) -> list[int]:
        """List what the summaries of a checkpoint and those before it were made of."""
        seqs: list[int] = []
        while checkpoint is not None:
            seqs += self.sources[checkpoint.checkpoint_id]
            checkpoint = self.parents[checkpoint.checkpoint_id]
        return seqs


def seqs_with(projection: Projection, fate: str) -> set[int]:
    return {seq for seq, told in projection.fates.items() if told == fate}


def said_in(event: LedgerEvent) -> Content:
    """Give what a person said in an event, without blocks that are blank."""
    if not isinstance(event.payload, UserMessage):
        return ()
    blocks = event.payload.content
    return tuple(b for b in blocks if not isinstance(b, Text) or b.text.strip())


def walk(data: st.DataObject, steps: int) -> None:
    going = Walk(data.draw)
    for _ in range(data.draw(st.integers(steps // 2, steps))):
        going.step()


REQ = pytest.mark.req("inv1", "inv2", "inv3", "inv5", "inv9", "inv11", "inv16", "C3", "C8", "C9")
unhurried = [HealthCheck.too_slow, HealthCheck.data_too_large]


@REQ
@settings(max_examples=60, deadline=None, suppress_health_check=unhurried)
@given(st.data())
def test_every_step_of_a_walk_keeps_the_invariants(data: st.DataObject) -> None:
    """Nothing is lost or told twice, requests are strict, compaction ends, prompts are whole."""
    walk(data, 20)


@pytest.mark.slow
@REQ
@settings(max_examples=100, deadline=None, suppress_health_check=unhurried)
@given(st.data())
def test_every_step_of_a_long_walk_keeps_the_invariants(data: st.DataObject) -> None:
    """As above, for longer and more often."""
    walk(data, 50)
