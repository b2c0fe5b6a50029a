"""What comes of an extraction's answer, and of everything that may go wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import SessionConfig
from agent_magics.core.errors import StorageError
from agent_magics.core.events import Metadata
from agent_magics.core.memories import Memory
from agent_magics.core.money import SpendingLimit
from agent_magics.core.ports import Change, Lease
from agent_magics.core.turns import Cancelled, Completed, ErrorNoted, MemoriesChanged
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.ledger.sqlite.store import SqlStore
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
    warned,
)
from tests.session.telling import told

if TYPE_CHECKING:
    from tests.session.conftest import Bench

pytestmark = pytest.mark.req("E16", "dec45")


# What comes of the answer

MINE = memory("likes tea", memory_id="mine", namespace="default", tags=("food",))
THEIRS = memory("likes rice", memory_id="theirs", namespace="other")
KEY = "the key is sk-abcdef1234567890"


@pytest.mark.req("E20.21")
@pytest.mark.parametrize(
    ("given", "changed", "expected"),
    [
        ([], MemoriesChanged(), ["likes tea"]),
        ([create("has a dog")], MemoriesChanged(created=1), ["has a dog", "likes tea"]),
        ([create("likes tea")], MemoriesChanged(), ["likes tea"]),
        (
            [{"action": "update", "targetId": "1", "content": "likes coffee"}],
            MemoriesChanged(updated=1),
            ["likes coffee"],
        ),
        (
            [{"action": "update", "targetId": "nobody", "content": "has a dog"}],
            MemoriesChanged(created=1),
            ["has a dog", "likes tea"],
        ),
        (
            [{"action": "update", "targetId": "theirs", "content": "has a dog"}],
            MemoriesChanged(created=1),
            ["has a dog", "likes tea"],
        ),
        ([{"action": "delete", "targetId": "1"}], MemoriesChanged(deleted=1), []),
        ([{"action": "delete", "targetId": "nobody"}], MemoriesChanged(), ["likes tea"]),
        ([{"action": "delete", "targetId": "theirs"}], MemoriesChanged(), ["likes tea"]),
        ([create(KEY)], MemoriesChanged(), ["likes tea"]),
        ([create("fine", KEY)], MemoriesChanged(), ["likes tea"]),
        (
            [{"action": "update", "targetId": "1", "content": KEY}],
            MemoriesChanged(),
            ["likes tea"],
        ),
        (
            [{"action": "delete", "targetId": "1"},
             {"action": "update", "targetId": "1", "content": "likes coffee"}],
            MemoriesChanged(deleted=1),
            [],
        ),
        ([{"action": "skip"}, 7, create("has a dog")], MemoriesChanged(created=1),
         ["has a dog", "likes tea"]),
        ([create("x" * 3_000)], MemoriesChanged(created=1), ["likes tea", "x" * 999 + "…"]),
        ([create("a\ud800\0b")], MemoriesChanged(created=1), ["a\ufffd\\x00b", "likes tea"]),
    ],
    ids=[
        "nothing", "create", "create what is there", "update", "update an unknown one",
        "update another namespace's", "delete", "delete an unknown one",
        "delete another namespace's", "a key", "a key as a tag", "a key as an update",
        "delete, then update", "nonsense between", "too long", "broken text",
    ],
)  # fmt: skip
def test_operations(
    bench: Bench, given: list[Any], changed: MemoriesChanged, expected: list[str]
) -> None:
    """The model decides what, we do it: in this namespace only, and no secret."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        await store.upsert(MINE)
        await store.upsert(THEIRS)
        session = await bench.session(
            "a", operations(*given), memories=store, memory_checkpoint_interval=1
        )
        events, outcome = await told(session, "hello")
        assert isinstance(outcome, Completed)
        assert outcome.warnings == ()
        said = [event for event in events if isinstance(event, MemoriesChanged)]
        assert said == ([] if changed == MemoriesChanged() else [changed])
        assert await contents(store) == expected
        assert await kept(store, "other") == {"theirs": THEIRS}
        assert len(checkpoints(session)) == 1

    asyncio.run(scene())


def test_an_update_keeps_what_it_doesnt_say(bench: Bench) -> None:
    """Id, birth and tags stay; source and time are new; the system part has the new words."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        await store.upsert(MINE)
        update = {"action": "update", "targetId": "1", "content": "likes coffee"}
        session = await bench.session(
            "a", operations(update), "b", memories=store, memory_checkpoint_interval=1
        )
        await session.submit_turn("hello")
        (now,) = (await kept(store)).values()
        assert (now.memory_id, now.created_at, now.tags) == ("mine", MINE.created_at, ("food",))
        assert (now.content, now.source) == ("likes coffee", "checkpoint")
        assert now.updated_at != MINE.updated_at
        system = str(session.next_request().request.messages[0])
        assert "likes coffee" in system
        assert "likes tea" not in system

    asyncio.run(scene())


def test_what_was_forgotten_meanwhile_stays_forgotten(bench: Bench) -> None:
    """An update of it doesn't bring it back, under any id."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        await store.upsert(MINE)
        update = {"action": "update", "targetId": "1", "content": "likes coffee"}

        def answer(request: ChatRequest) -> dict[str, Any]:
            assert "likes tea" in str(request.messages)
            store._memories.clear()
            return operations(update)

        session = await bench.session("a", answer, memories=store, memory_checkpoint_interval=1)
        await session.submit_turn("hello")
        assert len(asked(bench)) == 1
        assert await contents(store) == []

    asyncio.run(scene())


# What goes wrong


@pytest.mark.req("E20.21")
@pytest.mark.parametrize(
    "step",
    [
        {"text": "I can't.", "purpose": "memory"},
        {"text": '{"memoryOperations": [', "purpose": "memory"},
        {"text": "", "purpose": "memory"},
        {"error": "server", "purpose": "memory"},
        {"text": '{"memoryOp', "error": "lost", "purpose": "memory"},
    ],
    ids=["refusal", "half JSON", "nothing", "server error", "lost"],
)
def test_a_bad_answer_loses_nothing(bench: Bench, step: dict[str, Any]) -> None:
    """A warning, nothing changed; the same turns are read again after the next interval."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        session = await bench.session(
            "a", "b", "c", "d", step, operations(create()),
            memories=store, memory_checkpoint_interval=2, session_id="s",
        )  # fmt: skip
        await session.submit_turn("q0")
        events, outcome = await told(session, "q1")
        assert "Nothing was remembered" in warned(outcome)
        assert not any(isinstance(event, ErrorNoted) for event in events)
        assert (await contents(store), checkpoints(session)) == ([], [])
        await session.submit_turn("q2")
        assert len(asked(bench)) == 1
        _, outcome = await told(session, "q3")
        assert warned(outcome) == ""
        assert [q for q in ("q0", "q1", "q2", "q3") if q not in asked(bench)[1]] == []
        assert await contents(store) == ["likes tea"]

    asyncio.run(scene())


@pytest.mark.req("dec57")
def test_a_spent_session_asks_nothing_more(bench: Bench) -> None:
    """At the limit nobody reads; it is told, and the turn is complete."""

    async def scene() -> None:
        session = await bench.session(
            {"text": "a", "usage": {"input_tokens": 90, "output_tokens": 20}},
            memories=InMemoryMemoryStore(), memory_checkpoint_interval=1,
            max_cost_per_session=SpendingLimit(tokens=100),
        )  # fmt: skip
        _, outcome = await told(session, "hello")
        assert "Nothing was remembered" in warned(outcome)
        assert asked(bench) == []

    asyncio.run(scene())


class Full(InMemoryMemoryStore):
    """A storage that can be read and not written."""

    async def upsert(self, memory: Memory) -> None:
        raise StorageError("The disk is full.")


def test_a_storage_that_fails_is_told(bench: Bench) -> None:
    """As a warning and an event; the turn is complete and the checkpoint where it was."""

    async def scene() -> None:
        session = await bench.session(
            "a", operations(create()), memories=Full(), memory_checkpoint_interval=1
        )
        events, outcome = await told(session, "hello")
        assert "The disk is full." in warned(outcome)
        assert [e.code for e in events if isinstance(e, ErrorNoted)] == ["STORAGE_ERROR"]
        assert checkpoints(session) == []

    asyncio.run(scene())


class NoCheckpoints(SqlStore):
    """A ledger that takes everything but memory checkpoints."""

    async def commit(self, lease: Lease, change: Change) -> Any:
        for event in change.events:
            if isinstance(event.payload, Metadata) and event.payload.key == "memory_checkpoint":
                raise StorageError("The ledger is full.")
        return await super().commit(lease, change)


@pytest.mark.req("E3")
def test_a_checkpoint_that_is_not_recorded_ends_no_turn(bench: Bench) -> None:
    """It is no critical event: a warning, an error event, and the same is read another time."""

    async def scene() -> None:
        agent = await bench.agent(
            "a", "b", operations(create()), operations(), memories=InMemoryMemoryStore(),
            memory_checkpoint_interval=1, store=NoCheckpoints(bench.path),
        )  # fmt: skip
        session = await agent.new_session(SessionConfig(session_id="s"))
        events, outcome = await told(session, "q0")
        assert "The ledger is full." in warned(outcome)
        assert [e.code for e in events if isinstance(e, ErrorNoted)] == ["STORAGE_ERROR"]
        assert checkpoints(session) == []
        await session.submit_turn("q1")
        assert "q0" in asked(bench)[1]

    asyncio.run(scene())


def test_a_stop_ends_the_extraction_not_the_turn(bench: Bench) -> None:
    """The answer is complete; nothing is half remembered."""

    async def scene() -> None:
        store, reached = InMemoryMemoryStore(), Reached(operations(create(), delay_s=5))
        session = await bench.session("a", reached, memories=store, memory_checkpoint_interval=1)
        turn = await session.send_message("hello")
        await reached.wait()
        turn.cancel()
        outcome = await turn.join()
        assert isinstance(outcome, Completed)
        assert await contents(store) == []
        await session.close(force=True)

    asyncio.run(scene())


def test_a_stop_while_an_old_stretch_is_read_stops_the_turn(bench: Bench) -> None:
    """The prompt is recorded, and that it was stopped."""

    async def scene() -> None:
        store, reached = await left_unread(bench), Reached(operations(delay_s=5))
        again = await bench.resumed("s", reached, "b", memories=store)
        turn = await again.send_message("hello")
        await reached.wait()
        turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        assert "hello" in str(again.history()[-2].payload)
        await again.close(force=True)

    asyncio.run(scene())


def test_a_close_that_can_not_extract_closes(bench: Bench) -> None:
    """The model fails: the session is closed, and what was said is read at the next opening."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        failing = {"error": "server", "purpose": "memory"}
        session = await bench.session("a", failing, memories=store, session_id="s")
        await session.submit_turn("I like tea.")
        await session.close()
        assert session.is_closed
        again = await bench.resumed("s", "b", operations(create()), memories=store)
        await again.submit_turn("hello")
        assert await contents(store) == ["likes tea"]

    asyncio.run(scene())


def test_a_close_that_is_stopped_closes(bench: Bench) -> None:
    """Whoever waits for it may go on at once; nothing is half remembered, the lock is free."""

    async def scene() -> None:
        store, reached = InMemoryMemoryStore(), Reached(operations(delay_s=5))
        session = await bench.session("a", reached, memories=store, session_id="s")
        await session.submit_turn("I like tea.")
        closing = asyncio.ensure_future(session.close())
        await reached.wait()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert session.is_closed
        again = await bench.resumed("s", "b", operations(create()), memories=store)
        await again.submit_turn("hello")
        assert await contents(store) == ["likes tea"]

    asyncio.run(scene())


def test_slots_asked_at_once_extract_once(bench: Bench) -> None:
    """Turns that end together don't read the same twice."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        slow = operations(create(), delay_s=0.1)
        session = await bench.session(
            "a", "b", "c", slow, operations(), operations(),
            memories=store, memory_checkpoint_interval=1,
        )  # fmt: skip
        for name in ("one", "two"):
            await session.create_slot(name)
        await session.fan_out("hello", ["default", "one", "two"])
        seen = "".join(asked(bench))
        await session.close()
        assert seen.count("User: hello") <= 3
        assert "".join(asked(bench)).count("User: hello") == 3

    asyncio.run(scene())
