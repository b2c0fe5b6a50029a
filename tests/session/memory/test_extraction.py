"""What is said in a session is read for memories: when, and what of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import CompactionConfig, SummaryConfig
from agent_magics.core.errors import InvalidModelConfig
from agent_magics.core.events import Usage
from agent_magics.core.turns import Completed, MemoriesChanged
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.testing import memory
from tests.session.extracting import (
    Reached,
    asked,
    checkpoints,
    contents,
    create,
    kept,
    left_unread,
    operations,
)
from tests.session.telling import told

if TYPE_CHECKING:
    from tests.session.conftest import Bench

pytestmark = pytest.mark.req("E16", "dec45")


# When


def test_every_n_turns_of_all_slots_together(bench: Bench) -> None:
    """The sum over the slots counts; one call then, with what was said since the last."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        answers = [f"a{number}" for number in range(9)]
        session = await bench.session(
            *answers, operations(create()), operations(),
            memories=store, memory_checkpoint_interval=3,
        )  # fmt: skip
        await session.create_slot("other")
        counts = []
        for number, slot in enumerate(["default", "other", "default", "other", "other", "default"]):
            await session.submit_turn(f"q{number}", slot=slot)
            counts.append(len(asked(bench)))
        assert counts == [0, 0, 1, 1, 1, 2]
        first, second = asked(bench)
        assert first == (
            "In the slot default:\n\nUser: q0\n\nAssistant: a0\n\nUser: q2\n\nAssistant: a2\n\n"
            "In the slot other:\n\nUser: q1\n\nAssistant: a1\n</conversation>"
        )
        assert [text for text in ("q0", "q1", "q2") if text in second] == []
        assert [text for text in ("q3", "q4", "q5") if text not in second] == []
        assert await contents(store) == ["likes tea"]

    asyncio.run(scene())


def test_it_is_announced_counted_and_marked(bench: Bench) -> None:
    """An event says what changed, the cost has its purpose, the ledger how far it was read."""

    async def scene() -> None:
        usage = {"input_tokens": 70, "output_tokens": 9}
        store = InMemoryMemoryStore()
        session = await bench.session(
            "a", operations(create("likes tea", "food"), usage=usage),
            memories=store, memory_checkpoint_interval=1, session_id="s",
        )  # fmt: skip
        events, outcome = await told(session, "I like tea.")
        assert [e for e in events if isinstance(e, MemoriesChanged)] == [MemoriesChanged(created=1)]
        assert isinstance(outcome, Completed)
        assert (outcome.warnings, outcome.reply.usage) == ((), None)
        spent = [e for e in session._open_session.loaded.events if isinstance(e.payload, Usage)]
        assert [(e.payload.purpose, e.payload.input_tokens) for e in spent] == [  # type: ignore[union-attr]
            ("turn", None), ("memory", 70),
        ]  # fmt: skip
        assert spent[1].turn_id == outcome.reply.turn_id
        (mark,) = checkpoints(session)
        assert mark["last_seq"] >= session.history()[-1].seq
        assert (mark["turn_index"], mark["is_on"]) == (1, True)
        assert (mark["about"], mark["slug"]) == ("On tea.", "tea")
        (made,) = (await kept(store)).values()
        assert (made.content, made.tags, made.source) == ("likes tea", ("food",), "checkpoint")
        assert made.namespace == "default"

    asyncio.run(scene())


def test_at_close_what_is_left_is_read(bench: Bench) -> None:
    """Once, with the session as its source; a second close and a resumed session read nothing."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        session = await bench.session("a", operations(create()), memories=store, session_id="s")
        await session.submit_turn("I like tea.")
        await session.close()
        await session.close()
        assert [each.source for each in (await kept(store)).values()] == ["session:s"]
        assert len(asked(bench)) == 1
        again = await bench.resumed("s", "b", memories=store)
        assert again.history()[-1].seq == session.history()[-1].seq
        await again.submit_turn("hello")
        assert asked(bench) == []

    asyncio.run(scene())


def test_nothing_new_makes_no_call(bench: Bench) -> None:
    """A session in which nothing was said is closed without a word to a model."""

    async def scene() -> None:
        session = await bench.session("a", operations(), memories=InMemoryMemoryStore(),
                                      memory_checkpoint_interval=1, session_id="s")  # fmt: skip
        await session.submit_turn("hello")
        assert len(asked(bench)) == 1
        await session.close()
        assert len(asked(bench)) == 1
        empty = await bench.session(memories=InMemoryMemoryStore(), session_id="empty")
        await empty.close()
        assert bench.provider.requests == []

    asyncio.run(scene())


def test_a_forced_close_leaves_it_to_the_next_opening(bench: Bench) -> None:
    """Nothing is asked on the way out; the next first turn reads it before it asks, and says so."""

    async def scene() -> None:
        store = await left_unread(bench)
        assert asked(bench) == []
        again = await bench.resumed("s", "b", operations(create()), "c", memories=store)
        assert asked(bench) == []  # opening asks nothing
        events, outcome = await told(again, "And now?")
        assert isinstance(outcome, Completed)
        assert outcome.warnings == (
            "The last close left 1 turn unread; one request remembers them now.",
        )
        assert MemoriesChanged(created=1) in events
        assert [r.purpose for r in bench.provider.requests] == ["memory", "turn"]
        assert "And now?" not in asked(bench)[0]
        assert [each.source for each in (await kept(store)).values()] == ["session:s"]
        await again.submit_turn("more")
        assert len(asked(bench)) == 1

    asyncio.run(scene())


def test_a_session_that_was_only_looked_at_reads_nothing(bench: Bench) -> None:
    """Opened and closed without a question, it leaves what was left to the next first turn."""

    async def scene() -> None:
        store = await left_unread(bench)
        again = await bench.resumed("s", operations(), memories=store)
        await again.close()
        assert bench.provider.requests == []

    asyncio.run(scene())


def test_a_stretch_that_is_being_read_is_not_read_again(bench: Bench) -> None:
    """A turn that ends in another slot meanwhile waits for its own time."""

    async def scene() -> None:
        store, reached = await left_unread(bench), Reached(operations(delay_s=0.2))
        again = await bench.resumed(
            "s", reached, *"bcdef", memories=store, memory_checkpoint_interval=1
        )
        await again.create_slot("other")
        first = await again.send_message("first")
        await reached.wait()
        await again.submit_turn("meanwhile", slot="other")
        await first.join()
        assert "".join(asked(bench)).count("I like tea.") == 1

    asyncio.run(scene())


@pytest.mark.parametrize("step", [{"error": "auth"}, {"text": "…", "error": "lost"}], ids=str)
def test_a_turn_that_failed_reads_nothing(bench: Bench, step: dict[str, Any]) -> None:
    """It counts; the next turn that is completed reads what it left."""

    async def scene() -> None:
        session = await bench.session(
            step, "b", operations(), memories=InMemoryMemoryStore(), memory_checkpoint_interval=1
        )
        await told(session, "hello")
        assert asked(bench) == []
        await session.submit_turn("again")
        assert len(asked(bench)) == 1

    asyncio.run(scene())


def test_off_reads_nothing(bench: Bench) -> None:
    """No checkpoint, no call at the close; what there is is still recalled."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        await store.upsert(memory("likes rice", namespace="default"))
        session = await bench.session(
            "a", memories=store, memory_extraction=False, memory_checkpoint_interval=1
        )
        await session.submit_turn("I like tea.")
        await session.close()
        assert [r.purpose for r in bench.provider.requests] == ["turn"]
        assert checkpoints(session) == []
        assert "likes rice" in str(bench.provider.requests[0].messages[0])

    asyncio.run(scene())


def test_what_was_said_while_it_was_off_is_never_read(bench: Bench) -> None:
    """Turning it on begins with the next turn; turning it off again leaves it off."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        off: dict[str, Any] = {"memories": store, "memory_extraction": False}
        on: dict[str, Any] = {"memories": store, "memory_checkpoint_interval": 1}
        session = await bench.session("a", session_id="s", **off)
        await session.submit_turn("secretly I like tea")
        await session.close()
        session = await bench.resumed("s", "b", operations(), **on)
        _, outcome = await told(session, "openly I like rice")
        assert outcome.warnings == ()
        assert len(asked(bench)) == 1
        assert "secretly" not in asked(bench)[0]
        assert "openly" in asked(bench)[0]
        await session.close()
        session = await bench.resumed("s", "c", **off)
        await session.submit_turn("secretly again")
        await session.close()
        session = await bench.resumed("s", "d", operations(), **on)
        await session.submit_turn("openly again")
        assert "secretly" not in asked(bench)[0]

    asyncio.run(scene())


@pytest.mark.req("dec33")
def test_it_sets_nothing_else_off(bench: Bench) -> None:
    """Neither a compaction nor a summary, and none of them an extraction."""

    async def scene() -> None:
        soon = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=1)
        session = await bench.session(
            "a " * 40, {"text": "They like trains.", "purpose": "summary"},
            operations(create("x " * 200)),
            memories=InMemoryMemoryStore(), summary_config=soon, memory_checkpoint_interval=1,
        )  # fmt: skip
        await session.submit_turn("do you like trains?")
        purposes = [request.purpose for request in bench.provider.requests]
        assert sorted(purposes) == ["memory", "summary", "turn"]

    asyncio.run(scene())


@pytest.mark.req("E22")
def test_the_memory_model_reads(bench: Bench) -> None:
    """`memory_model` where it is set, which must be there; else the slot's own."""

    async def scene() -> None:
        session = await bench.session(
            "a", operations(), memories=InMemoryMemoryStore(), memory_model="scripted:reader"
        )
        await session.submit_turn("hello")
        await session.close()
        assert [r.model for r in bench.provider.requests] == ["test", "reader"]
        with pytest.raises(InvalidModelConfig):
            await bench.agent(memory_model="nobody:x")
        session = await bench.session("a", operations(), memories=InMemoryMemoryStore())
        await session.configure_slot("default", model="scripted:own")
        await session.submit_turn("hello")
        await session.close()
        assert [r.model for r in bench.provider.requests] == ["own", "own"]

    asyncio.run(scene())


# From what


@pytest.mark.req("E20.4")
def test_compaction_hides_and_repeats_nothing(bench: Bench) -> None:
    """After a compaction each turn is read exactly once, in its own words."""

    async def scene() -> None:
        headings = "\n".join(
            f"## {heading}\nnone" for heading in
            ("Objective", "Constraints", "Progress", "Decisions", "Files and Operations",
             "Tool Results and Failures", "Outstanding Work", "Exact Facts",
             "Recent User Corrections")
        )  # fmt: skip
        steps = [f"a{number} " + "word " * 300 for number in range(8)]
        session = await bench.session(
            *steps, {"text": headings, "purpose": "compaction"}, operations(), operations(),
            operations(), memories=InMemoryMemoryStore(), memory_checkpoint_interval=3,
            compaction=CompactionConfig(keep_recent_tokens=400),
            session_id="s",
        )  # fmt: skip
        for number in range(2):
            await session.submit_turn(f"q{number}")
        await session.compact()
        for number in range(2, 5):
            await session.submit_turn(f"q{number}")
        await session.close()
        read = "\n".join(asked(bench))
        assert len(asked(bench)) == 2
        assert [read.count(f"User: q{number}\n") for number in range(5)] == [1] * 5
        assert "Objective" not in read

    asyncio.run(scene())


def test_rewound_turns_are_not_read(bench: Bench) -> None:
    """What left the view before it was read stays out."""

    async def scene() -> None:
        session = await bench.session("a", "b", "c", operations(), memories=InMemoryMemoryStore())
        await session.submit_turn("keep this")
        end = session.history()[-1].seq
        await session.submit_turn("take this back")
        await session.rewind(to_seq=end)
        await session.submit_turn("and this")
        await session.close()
        (read,) = asked(bench)
        assert "keep this" in read
        assert "and this" in read
        assert "take this back" not in read

    asyncio.run(scene())


@pytest.mark.parametrize("is_deleted", [False, True], ids=["living", "deleted"])
def test_what_slots_share_is_read_once(bench: Bench, *, is_deleted: bool) -> None:
    """An inherited turn stands with the slot that said it, and with its child once that is gone."""

    async def scene() -> None:
        session = await bench.session("a", "b", "c", operations(), memories=InMemoryMemoryStore())
        await session.create_slot("parent")
        await session.submit_turn("said above", slot="parent")
        await session.derive_slot("child", "parent")
        await session.submit_turn("said below", slot="child")
        if is_deleted:
            await session.delete_slot("parent")
        await session.create_slot("gone")
        await session.submit_turn("said in a slot that goes", slot="gone")
        await session.delete_slot("gone")
        await session.close()
        (read,) = asked(bench)
        assert read.count("said above") == read.count("said below") == 1
        assert "a slot that goes" not in read
        teller = read.partition("User: said above")[0].split("In the slot ")[-1]
        assert teller.startswith("child" if is_deleted else "parent")

    asyncio.run(scene())


def test_a_running_turn_bounds_what_is_read(bench: Bench) -> None:
    """Up to just before the oldest running one; what came after is read the next time."""

    async def scene() -> None:
        reached = Reached({"text": "slow", "delay_s": 0.2})
        steps = ["early", reached, "quick", operations(), operations()]
        session = await bench.session(
            *steps, memories=InMemoryMemoryStore(), memory_checkpoint_interval=1
        )
        await session.create_slot("other")
        first = await session.send_message("before")
        await first.join()
        slow = await session.send_message("runs long", slot="other")
        await reached.wait()
        await session.submit_turn("meanwhile")
        assert [("before" in read, "meanwhile" in read) for read in asked(bench)] == [(True, False)]
        await slow.join()
        last = asked(bench)[-1]
        assert "runs long" in last
        assert "meanwhile" in last
        assert "before" not in last

    asyncio.run(scene())


def test_private_reasoning_is_not_read(bench: Bench) -> None:
    """It is in no transcript."""

    async def scene() -> None:
        session = await bench.session(
            {"reasoning": "they seem thirsty", "text": "Tea?"}, operations(),
            memories=InMemoryMemoryStore(),
        )  # fmt: skip
        await session.submit_turn("hello")
        await session.close()
        assert "Tea?" in asked(bench)[0]
        assert "thirsty" not in asked(bench)[0]

    asyncio.run(scene())
