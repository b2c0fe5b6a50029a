"""What the SQLite store does beyond the contract: durability, privacy, its thread, odd rows."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_magics.core.errors import InputValidation, SessionLocked, StorageError
from agent_magics.core.events import Draft, UserMessage
from agent_magics.core.messages import Text
from agent_magics.core.ports import Change
from agent_magics.core.slots import SlotConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import (
    NOON,
    assistant,
    checkpoint,
    loaded,
    new,
    owner,
    refused,
    slot,
    user,
)
from tests.ledger.conftest import Play

Sql = Callable[..., list[Any]]


async def write_three(store: SqlStore) -> None:
    lease = await store.acquire("s", owner(), create=True)
    events = (new(user("one")), new(assistant("two")), new(user("three")))
    await store.commit(lease, Change(events=events, slots=(slot(),), checkpoint=checkpoint()))


@pytest.mark.req("E2")
def test_a_new_process_reads_what_was_written(play: Play) -> None:
    """What one store committed, the next one loads."""

    async def again(store: SqlStore) -> list[int]:
        return [event.seq for event in (await loaded(store)).events]

    play(write_three)
    assert play(again) == [1, 2, 3]


@pytest.mark.req("E2")
def test_seqs_are_never_given_twice(play: Play, sql: Sql) -> None:
    """The head is kept in the session's row, so that a lost last row leaves a gap."""

    async def one_more(store: SqlStore) -> int:
        lease = await store.acquire("s", owner())
        return (await store.commit(lease, Change(events=(new(user("x")),))))[0].seq

    play(write_three)
    sql("DELETE FROM events WHERE seq=3")
    assert play(one_more) == 4


def test_files_are_private(play: Play, path: Path) -> None:
    """The file and what SQLite puts beside it are for their user alone; the folder is made."""

    async def modes(store: SqlStore) -> dict[str, int]:
        await write_three(store)
        files = (one for one in path.parent.rglob("*") if one.is_file())
        return {one.name: stat.S_IMODE(one.stat().st_mode) for one in files}

    found = play(modes)
    assert {"ledger.db", "ledger.db-wal", "ledger.db-shm", "store.lock"} < set(found)
    assert set(found.values()) == {0o600}


def test_a_file_others_could_read_is_closed_to_them(play: Play, path: Path) -> None:
    """A ledger that was copied with wide permissions gets narrow ones when it is opened."""
    play(write_three)
    path.chmod(0o644)
    play(lambda store: store.load("s"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_commit_waits_for_the_disk(play: Play) -> None:
    """WAL and synchronous=FULL hold, also after a draft, which waits for nothing."""

    async def settings(store: SqlStore) -> tuple[Any, Any]:
        lease = await store.acquire("s", owner(), create=True)
        await store.save_draft(lease, Draft(slot_uid="u1", turn_id="t1", text="On"))
        held = store.database._connection
        assert held is not None
        mode = held.raw.execute("PRAGMA journal_mode").fetchone()[0]
        return mode, held.raw.execute("PRAGMA synchronous").fetchone()[0]

    assert play(settings) == ("wal", 2)


def test_one_thread_of_ours_does_the_work(play: Play) -> None:
    """The loop's default executor is never asked: users may have filled it."""

    async def threads(store: SqlStore) -> list[str]:
        await write_three(store)
        await store.list_sessions()
        return [thread.name for thread in threading.enumerate()]

    names = play(threads)
    assert names.count("agent-magics-ledger") == 1
    assert not [name for name in names if name.startswith("asyncio")]


def test_a_store_serves_more_than_one_loop(path: Path) -> None:
    """A store may be asked from any event loop."""
    store = SqlStore(path)
    asyncio.run(write_three(store))
    assert len(asyncio.run(loaded(store)).events) == 3
    asyncio.run(store.aclose())


def test_a_closed_store_says_so(path: Path) -> None:
    """After closing, every call is refused; closing again does nothing."""

    async def scenario() -> str:
        store = SqlStore(path)
        await write_three(store)
        await store.aclose()
        await store.aclose()
        return await refused(StorageError, store.load("s"))

    assert "is closed here" in asyncio.run(scenario())


def test_a_cancelled_acquire_holds_nothing(play: Play, path: Path) -> None:
    """Whoever stops waiting for a session doesn't keep it by accident."""

    async def scenario(store: SqlStore) -> None:
        await store.load("s")
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            waiting = asyncio.ensure_future(store.acquire("s", owner(), create=True))
            await asyncio.sleep(0.1)
            waiting.cancel()
            foreign.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await store.acquire("s", owner(), create=True)

    play(scenario)


def test_two_stores_in_one_process_are_two(play: Play, path: Path) -> None:
    """The same session can't be opened twice in one kernel either (D 44)."""

    async def scenario(store: SqlStore) -> None:
        await write_three(store)
        second = SqlStore(path)
        await refused(SessionLocked, second.acquire("s", owner()))
        await store.aclose()
        assert await second.acquire("s", owner())
        await second.aclose()

    play(scenario)


# Bindings


@pytest.mark.req("N9")
def test_a_notebook_finds_its_session_again(play: Play) -> None:
    """A binding outlives the process, moves with the newest, and goes with its session."""

    async def first(store: SqlStore) -> None:
        for name in ("s", "s2"):
            await store.release(await store.acquire(name, owner(), create=True))
        await store.bind("kernel:1", "s")
        await store.bind("kernel:1", "s2")
        await store.bind("notebook:a.ipynb", "s")

    async def second(store: SqlStore) -> list[str | None]:
        await store.delete_session("s")
        keys = ("kernel:1", "notebook:a.ipynb", "kernel:2")
        return [await store.bound(key) for key in keys]

    play(first)
    assert play(second) == ["s2", None, None]


# Odd rows


@pytest.mark.req("C17", "dec66")
def test_a_broken_event_is_left_out_and_named(
    play: Play, sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    """One payload that can't be read costs that event only; the log has its seq, not its text."""
    play(write_three)
    sql("UPDATE events SET payload=? WHERE seq=2", b"\x81\xa4type\xa6secret")
    state = play(loaded)
    assert [event.seq for event in state.events] == [1, 3]
    assert state.unreadable == (2,)
    assert "seq 2" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("payload", [b"", b"\xff", None, "text", 7, msgspec.msgpack.encode({})])
def test_no_payload_makes_a_session_unopenable(play: Play, sql: Sql, payload: Any) -> None:
    """Whatever stands in the column, the other events load."""
    play(write_three)
    sql("PRAGMA ignore_check_constraints=1")
    sql("UPDATE events SET payload=coalesce(?, x'') WHERE seq=1", payload)
    assert play(loaded).unreadable == (1,)


@pytest.mark.req("C17")
def test_broken_settings_and_checkpoints_become_none(play: Play, sql: Sql) -> None:
    """A slot keeps its lineage with default settings; a checkpoint that can't be read is no one."""
    play(write_three)
    sql("UPDATE slots SET config=x'c1'")
    sql("UPDATE checkpoints SET reason='whim'")
    state = play(loaded)
    assert [(one.uid, one.config) for one in state.slots] == [("u1", SlotConfig())]
    assert state.checkpoints == ()


def test_old_payloads_stay_readable(play: Play, sql: Sql) -> None:
    """A payload without fields that came later gets their defaults; unknown ones do no harm."""
    old = {
        "type": "user_message",
        "content": [{"type": "text", "text": "old"}],
        "a field of the future": 1,
    }
    play(write_three)
    sql("UPDATE events SET payload=? WHERE seq=1", msgspec.msgpack.encode(old))
    assert play(loaded).events[0].payload == UserMessage(content=(Text(text="old"),))


# Places


@pytest.mark.parametrize("location", ["postgresql://host/db", "mysql+driver://host/db"])
def test_other_databases_are_not_yet_ours(location: str) -> None:
    """A URL of another database is refused before anything is tried."""
    with pytest.raises(InputValidation, match="can't be used yet"):
        SqlStore(location)


@pytest.mark.parametrize("location", ["", ":memory:", "sqlite://", "sqlite:///:memory:", "a\0b"])
def test_places_without_a_file_are_refused(location: str) -> None:
    """A ledger needs a file."""
    with pytest.raises(InputValidation, match="names no file"):
        SqlStore(location)


def test_a_url_names_a_file(tmp_path: Path) -> None:
    """An `sqlite:///` URL with four slashes is an absolute path; escapes are read."""
    assert SqlStore(f"sqlite:///{tmp_path}/a%20b.db").path == tmp_path / "a b.db"
    assert SqlStore("sqlite:///here.db").path == Path.cwd() / "here.db"


def test_times_keep_their_microseconds(play: Play) -> None:
    """No time is rounded on its way through the store."""
    play(write_three)
    assert play(loaded).events[0].created_at == NOON
