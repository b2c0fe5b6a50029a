"""The tests of seed 002 § 20.3 that need no session, each under its name there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from agent_magics.core.errors import CompactionStale, StorageError
from agent_magics.core.events import Clear, Metadata
from agent_magics.core.ports import Change, Lease, SessionState
from agent_magics.core.slots import Slot
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import checkpoint, loaded, new, owner, refused, slot, user
from tests.ledger.conftest import Play

Sql = Callable[..., list[Any]]
MARKER = Metadata(key="context_compaction", value={"checkpoint_id": "c1"})


def activated(generation: int = 1) -> Slot:
    made = slot(generation=generation)
    return msgspec.structs.replace(made, checkpoint_id="c1")


def commit_of_a_checkpoint(expected: int = 0) -> Change:
    return Change(
        events=(new(MARKER),),
        slots=(activated(),),
        checkpoint=checkpoint(),
        expected_generation={"u1": expected},
    )


async def begun(store: SqlStore) -> Lease:
    lease = await store.acquire("s", owner(), create=True)
    said = tuple(new(user(text)) for text in ("a", "b", "c"))
    await store.commit(lease, Change(events=said, slots=(slot(),)))
    return lease


@pytest.mark.req("C2")
def test_a_new_store_has_the_schema_of_checkpoints(play: Play, sql: Sql) -> None:
    """Every field of seed 002 § 6.2, and the active one and the generation with the slot."""
    play(begun)
    columns = {row[1] for row in sql("PRAGMA table_info(checkpoints)")}
    assert columns >= {
        *("checkpoint_id", "session_id", "generation", "parent_checkpoint_id", "summary"),
        *("first_retained_seq", "source_max_seq", "reason", "provider", "model"),
        *("tokens_before", "tokens_after", "degraded", "created_at"),
    }
    assert {"checkpoint_id", "generation"} <= {row[1] for row in sql("PRAGMA table_info(slots)")}


@pytest.mark.req("C2", "C13", "inv4", "C20.5", "C20.9")
@pytest.mark.parametrize("table", ["slots", "events", "checkpoints"])
def test_a_checkpoint_and_the_active_pointer_are_committed_as_one(
    play: Play, sql: Sql, table: str
) -> None:
    """Where one of the rows can't be written, none of the others is."""

    async def scenario(store: SqlStore) -> tuple[SessionState, SessionState]:
        lease = await begun(store)
        before = await loaded(store)
        sql(
            f"CREATE TRIGGER broken BEFORE INSERT ON {table}"
            " BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
        await refused(StorageError, store.commit(lease, commit_of_a_checkpoint()))
        failed = await loaded(store)
        assert failed == before
        sql("DROP TRIGGER broken")
        await store.commit(lease, commit_of_a_checkpoint())
        return before, await loaded(store)

    before, after = play(scenario)
    assert after.checkpoints == (checkpoint(),)
    assert after.slots == (activated(),)
    assert after.events[:-1] == before.events
    assert after.events[-1].payload == MARKER


@pytest.mark.req("C13", "inv4", "C20.9")
def test_a_wrong_generation_rolls_everything_back(play: Play, sql: Sql) -> None:
    """No row, no pointer, no event, and no seq is used up."""

    async def scenario(store: SqlStore) -> tuple[SessionState, SessionState, int]:
        lease = await begun(store)
        before = await loaded(store)
        await refused(CompactionStale, store.commit(lease, commit_of_a_checkpoint(expected=7)))
        after = await loaded(store)
        (event,) = await store.commit(lease, Change(events=(new(user("d")),)))
        return before, after, event.seq

    before, after, seq = play(scenario)
    assert after == before
    assert seq == before.events[-1].seq + 1
    assert sql("SELECT count(*) FROM checkpoints") == [(0,)]


@pytest.mark.req("C13", "dec25")
@pytest.mark.parametrize("table", ["slots", "events"])
def test_a_clear_and_the_end_of_its_checkpoint_are_one(play: Play, sql: Sql, table: str) -> None:
    """The slot never has a checkpoint of what was cleared, nor lacks one of what wasn't."""
    cleared = Change(
        events=(new(Clear(left_checkpoint_id="c1")),),
        slots=(slot(generation=2),),
        expected_generation={"u1": 1},
    )

    async def scenario(store: SqlStore) -> SessionState:
        lease = await begun(store)
        await store.commit(lease, commit_of_a_checkpoint())
        before = await loaded(store)
        sql(
            f"CREATE TRIGGER broken BEFORE INSERT ON {table}"
            " BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
        await refused(StorageError, store.commit(lease, cleared))
        assert await loaded(store) == before
        sql("DROP TRIGGER broken")
        await store.commit(lease, cleared)
        return await loaded(store)

    after = play(scenario)
    assert [(one.checkpoint_id, one.generation) for one in after.slots] == [(None, 2)]
    assert isinstance(after.events[-1].payload, Clear)


@pytest.mark.req("C2", "S7", "dec17")
def test_deleting_a_session_takes_its_checkpoints_and_deleting_a_slot_keeps_them(
    play: Play, sql: Sql
) -> None:
    """A slot's deletion is a mark; only a session's takes rows away."""
    count = "SELECT count(*) FROM checkpoints"

    async def scenario(store: SqlStore) -> None:
        lease = await begun(store)
        await store.commit(lease, commit_of_a_checkpoint())
        gone = msgspec.structs.replace(activated(generation=2), deleted=True)
        await store.commit(lease, Change(slots=(gone,)))
        assert sql(count) == [(1,)]
        assert (await loaded(store)).checkpoints == (checkpoint(),)
        await store.release(lease)
        await store.delete_session("s")

    play(scenario)
    assert sql(count) == [(0,)]
