"""Several processes at one store: side by side, one after the other, killed in the middle."""

# ruff: noqa: ASYNC222  nothing else runs in these loops

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import SessionLocked, StorageError
from agent_magics.core.events import Draft
from agent_magics.core.ports import Change
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, new, owner, refused, user
from tests.ledger.conftest import Play

Start = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def start(path: Path, root: Path) -> Start:
    """Start a writing process."""

    def started(session: str, what: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.ledger.writer", str(path), session, what]
        return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)

    return started


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.req("inv12")
def test_12_two_processes_lose_no_row(start: Start, play: Play) -> None:
    """500 appends each to two sessions of one store: all there, in order, no lock error."""
    processes = {name: start(name, "500") for name in ("a", "b")}
    said = {name: process.communicate()[0].split() for name, process in processes.items()}
    assert said == {"a": ["open"], "b": ["open"]}
    for name in processes:

        async def texts(store: SqlStore, name: str = name) -> list[Any]:
            return [event.payload for event in (await loaded(store, name)).events]

        assert play(texts) == [user(f"{name} {number}") for number in range(500)]


@pytest.mark.req("inv12", "dec44", "N9")
def test_12_a_second_process_is_told_who_writes(start: Start, play: Play) -> None:
    """One session has one writer; the other reads its pid, and may look at it."""
    holder = start("s", "hold")
    assert first_line(holder) == "open"

    async def scenario(store: SqlStore) -> str:
        assert (await loaded(store)).row.session_id == "s"
        await refused(SessionLocked, store.delete_session("s"))
        return await refused(SessionLocked, store.acquire("s", owner()))

    assert f"pid {holder.pid} on this machine, since " in play(scenario).replace("here", "this")
    kill(holder)


@pytest.mark.req("dec44")
def test_a_session_can_be_taken_from_a_living_process(start: Start, play: Play) -> None:
    """After a take the other process's next write fails and says who has it now."""
    holder = start("s", "storm")
    assert first_line(holder) == "open"

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(4242), take=True)
        told = holder.communicate(timeout=10)[0]
        assert "SESSION_LOCKED" in told
        assert "pid 4242" in told
        before = (await loaded(store)).events
        await store.commit(lease, Change(events=(new(user("mine")),)))
        after = (await loaded(store)).events
        assert after[:-1] == before
        assert after[-1].payload == user("mine")

    play(scenario)


@pytest.mark.req("inv10", "dec44", "dec62")
def test_10_a_killed_writer_leaves_a_valid_ledger(start: Start, play: Play, sql: Any) -> None:
    """kill -9 at any write: the lock is free, the seqs have no gap, the draft is there."""
    writer = start("s", "storm")
    assert first_line(writer) == "open"
    time.sleep(0.3)
    kill(writer)

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner())
        state = await loaded(store)
        seqs = [event.seq for event in state.events]
        assert seqs == list(range(1, len(seqs) + 1))
        assert state.row.message_count == len(seqs) > 0
        assert state.drafts == (Draft(slot_uid="u1", turn_id="t1", text="half an answ"),)
        (written,) = await store.commit(lease, Change(events=(new(user("on")),)))
        assert written.seq == len(seqs) + 1

    play(scenario)
    assert sql("PRAGMA integrity_check") == [("ok",)]


def test_lock_files_do_not_pile_up(start: Start, play: Play, path: Path) -> None:
    """A killed writer's lock file goes when the session is opened next."""
    writer = start("s", "hold")
    assert first_line(writer) == "open"
    kill(writer)

    async def scenario(store: SqlStore) -> int:
        await store.acquire("s", owner())
        return len(list(path.with_name("ledger.db.locks").iterdir()))

    assert play(scenario) == 2
    assert [one.name for one in path.with_name("ledger.db.locks").iterdir()] == ["store.lock"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only systems that fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.req("dec50", "E2")
def test_a_forked_child_never_touches_the_ledger(play: Play) -> None:
    """A child is refused with a sentence, and its end takes nothing from its parent."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        change = Change(events=(new(user("from the child")),))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                store.commit(lease, change).send(None)  # no loop: it must fail before it waits
            except StorageError as error:
                os.write(writing, error.message.encode())
            finally:
                del store
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as said:
            assert "forked process" in said.read()
        await store.commit(lease, Change(events=(new(user("from the parent")),)))
        assert [event.payload for event in (await loaded(store)).events] == [
            user("from the parent")
        ]

    play(scenario)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only systems that fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.req("dec50")
def test_a_forked_child_does_not_keep_the_lock(start: Start, play: Play, path: Path) -> None:
    """The session is free once its owner let go, also while a forked child lives on."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent is done
            os._exit(0)
        kept = path.with_name("ledger.db.locks")
        (file,) = [one for one in kept.iterdir() if one.name != "store.lock"]
        held = file.rename(kept / "kept.lock")
        store.database.locks._held.pop("s")[1].release()
        import filelock

        with filelock.FileLock(held, timeout=0):
            pass
        os.write(writing, b"x")
        os.waitpid(child, 0)
        for end in (reading, writing):
            os.close(end)
        assert lease

    play(scenario)
