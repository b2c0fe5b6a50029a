"""Long walks of a real session with automatic compaction inside, looked at after every step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.context.projection import bounds_of
from agent_magics.core.errors import AgentError
from agent_magics.core.events import (
    SPOKEN,
    AssistantMessage,
    LedgerEvent,
    Payload,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import text_of
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.state.loaded import LoadedSession
from tests.context.story import assert_nothing_open
from tests.context.strict import assert_strict
from tests.session.marking import MARK, words_of
from tests.session.walking import DONE, LUCK, SAID, Walker

if TYPE_CHECKING:
    from tests.session.conftest import Bench

STEP = st.tuples(
    st.sampled_from([*SAID, *DONE, *("talk", "compact") * 5, *("undo", "derive") * 2]),
    st.integers(0, 23),
    st.sampled_from(LUCK),
)
Steps = list[tuple[str, int, str]]


async def walk(bench: Bench, steps: Steps) -> None:
    walker = await Walker.begin(bench)
    try:
        for name, number, luck in steps:
            with suppress(AgentError):  # a refusal is an answer, too; what it left is looked at
                await walker.step(name, number, luck)
            await look(walker)
    finally:
        await walker.aclose()


async def look(walker: Walker) -> None:
    """Check what must hold of every slot after every step."""
    live = walker.session._open_session.loaded
    await check_reloaded(walker, live)
    for slot in live.living.values():
        fates = walker.session.fates(slot.slot_id)
        assert fates.keys() == lineage_of(live, slot)
        assert_strict(walker.session.messages(slot.slot_id))
        check_boundary(live, slot)
        check_marks(walker, slot, fates)


async def check_reloaded(walker: Walker, live: LoadedSession) -> None:
    """What the store would give another process is what lives here."""
    state = await walker.store.load(walker.session.session_id)
    assert state is not None
    stored = LoadedSession(state)
    assert stored.events == live.events
    assert stored.slots == live.slots
    assert stored.checkpoints == live.checkpoints
    assert stored.current_uid == live.current_uid
    for slot in live.living.values():
        assert stored.view(slot) == live.view(slot)
        assert stored.turns(slot) == live.turns(slot)


def lineage_of(loaded: LoadedSession, slot: Slot) -> set[int]:
    """Find every spoken seq of a slot and of what it was derived from, in view or not."""
    found: set[int] = set()
    at: Slot | None = slot
    bound = float("inf")
    while at is not None:
        own = [e for e in loaded.events if e.slot_uid == at.uid and e.seq <= bound]
        found |= {event.seq for event in own if isinstance(event.payload, SPOKEN)}
        bound = min(bound, at.fork_seq)
        at = loaded.slots.get(at.parent_uid or "")
    return found


def check_boundary(loaded: LoadedSession, slot: Slot) -> None:
    """The tail begins with a whole turn, after an overflow with a whole step."""
    checkpoint, view = loaded.checkpoint_of(slot), loaded.view(slot)
    if checkpoint is None or bounds_of(view, checkpoint, slot.focus_seq).checkpoint is None:
        return
    first = checkpoint.first_retained_seq
    begins = first in {span.first_seq for span in loaded.turns(slot)}
    assert begins or (checkpoint.reason == "overflow" and begins_step(view.events, first))
    assert_nothing_open(view.events, first)


def begins_step(events: Sequence[LedgerEvent], seq: int) -> bool:
    """Tell whether an assistant's message with its calls begins there."""
    at = next(at for at, event in enumerate(events) if event.seq == seq)
    match events[at].payload:
        case AssistantMessage():
            return True
        case ToolCalled():
            return at == 0 or isinstance(events[at - 1].payload, (ToolAnswered, UserMessage))
        case _:
            return False


def check_marks(walker: Walker, slot: Slot, fates: dict[int, str]) -> None:
    """What is retained is in the tail, what is summarised in the summary, once, and nowhere else
    is what is excluded: nothing is lost, nothing is told twice.
    """
    loaded = walker.session._open_session.loaded
    messages = walker.session.messages(slot.slot_id)
    tail = Counter(m for each in messages if each.seq for m in MARK.findall(words_of(each)))
    ours = Counter(m for each in messages if not each.seq for m in MARK.findall(words_of(each)))
    told_all = not is_lossy(walker, loaded.checkpoint_of(slot))
    for event in loaded.events:
        if event.seq not in fates:
            continue
        fate = fates[event.seq]
        for mark in MARK.findall(text_in(event.payload)):
            where = (tail[mark], ours[mark])
            allowed = [(int(fate == "retained"), int(fate == "summarised"))]
            if fate == "summarised" and not told_all:
                allowed.append((0, 0))
            assert where in allowed, f"{mark} is {fate} and stands {where} times in tail, summary"


def is_lossy(walker: Walker, checkpoint: Checkpoint | None) -> bool:
    checkpoints = walker.session._open_session.loaded.checkpoints
    while checkpoint is not None:
        if checkpoint.checkpoint_id in walker.lossy:
            return True
        checkpoint = checkpoints.get(checkpoint.parent_checkpoint_id or "")
    return False


def text_in(payload: Payload) -> str:
    match payload:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return text_of(content)
        case ToolAnswered(output=output):
            return output.content
        case _:
            return ""


REQ = pytest.mark.req(
    *("inv1", "inv2", "inv3", "inv5", "inv8", "inv9", "inv11", "inv16"),
    *("C3", "C4", "C8", "C12", "C15", "C17", "dec18", "dec25", "dec36"),
)
on_a_file = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@REQ
@settings(max_examples=12, deadline=None, suppress_health_check=on_a_file)
@given(steps=st.lists(STEP, min_size=8, max_size=24))
def test_every_step_of_a_sessions_walk_keeps_the_invariants(bench: Bench, steps: Steps) -> None:
    """Whatever is said, refused, compacted, branched, taken back or opened again."""
    asyncio.run(walk(bench, steps))


@pytest.mark.slow
@REQ
@settings(max_examples=30, deadline=None, suppress_health_check=on_a_file)
@given(steps=st.lists(STEP, min_size=20, max_size=60))
def test_every_step_of_a_sessions_long_walk_keeps_the_invariants(
    bench: Bench, steps: Steps
) -> None:
    """As above, for longer and more often."""
    asyncio.run(walk(bench, steps))
