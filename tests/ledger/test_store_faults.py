"""What goes wrong with a file is one sentence that names it, and loses nothing (style: Errors)."""

# ruff: noqa: ASYNC220, ASYNC240  nothing else runs in these loops

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import StorageError
from agent_magics.core.ports import Change
from agent_magics.ledger.sqlite import errors, schema
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import assistant, loaded, new, owner, refused, user
from tests.ledger.conftest import Play

Sql = Callable[..., list[Any]]
TALK = Change(events=(new(user("q")), new(assistant("a"))))
LONG = Change(events=(new(user("q")), new(assistant("x" * 400_000))))


async def start(store: SqlStore) -> None:
    lease = await store.acquire("s", owner(), create=True)
    await store.commit(lease, TALK)


async def try_to_open(store: SqlStore) -> str:
    return await refused(StorageError, store.acquire("s", owner(), create=True))


def test_a_full_disk_says_what_was_lost(play: Play, path: Path) -> None:
    """The sentence of experience.md; what was there stays, and after freeing space it goes on."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        await store.commit(lease, TALK)
        held = store.database._connection
        assert held is not None
        (pages,) = held.raw.execute("PRAGMA page_count").fetchone()
        held.raw.execute(f"PRAGMA max_page_count={pages + 1}")
        before = await loaded(store)
        assert await refused(StorageError, store.commit(lease, LONG)) == (
            f"The ledger at {path} can't be written (disk full). The answer above was shown but"
            " not recorded: free space and run the cell again."
        )
        question = Change(events=(*LONG.events[:1], new(user("y" * 400_000))))
        assert "Nothing was recorded" in await refused(StorageError, store.commit(lease, question))
        assert await loaded(store) == before
        held.raw.execute("PRAGMA max_page_count=100000")
        written = await store.commit(lease, LONG)
        assert [event.seq for event in written] == [3, 4]

    play(scenario)


def test_a_foreign_lock_is_waited_for_then_named(play: Play, path: Path) -> None:
    """A database viewer that keeps the file is told apart; once it lets go, writing goes on."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            foreign.execute("BEGIN EXCLUSIVE")
            said = await refused(StorageError, store.commit(lease, TALK))
            foreign.execute("ROLLBACK")
        assert f"{path} is locked by another program" in said
        assert (await loaded(store)).events == ()
        assert len(await store.commit(lease, TALK)) == 2

    play(scenario)


def test_a_foreign_lock_that_ends_in_time_is_not_noticed(play: Play, path: Path) -> None:
    """Waiting is for that."""

    async def scenario(store: SqlStore) -> int:
        lease = await store.acquire("s", owner(), create=True)
        holder = (
            "import sqlite3, sys, time\n"
            "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "held.execute('BEGIN IMMEDIATE')\n"
            "print('held', flush=True)\n"
            "time.sleep(0.1)\n"
            "held.execute('ROLLBACK')\n"
        )
        command = [sys.executable, "-c", holder, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            return len(await store.commit(lease, TALK))

    assert play(scenario) == 2


@pytest.mark.parametrize("content", [b"# my notes\n" * 400, b"\0" * 9000, b"SQLite format 3\0oops"])
def test_a_file_that_is_no_ledger_is_left_alone(play: Play, path: Path, content: bytes) -> None:
    """Another kind of file is named and not changed."""
    path.parent.mkdir()
    path.write_bytes(content)
    assert str(path) in play(try_to_open)
    assert path.read_bytes() == content


def test_a_damaged_ledger_says_so(play: Play, path: Path) -> None:
    """Pages that were overwritten are found when they are read, and told."""
    play(start)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    said = play(try_to_open)
    assert f"The ledger at {path} is damaged" in said
    assert "restore the file" in said


def test_another_programs_database_is_left_alone(play: Play, path: Path, sql: Sql) -> None:
    """A database that isn't ours keeps its tables and gets none of ours."""
    path.parent.mkdir()
    sql("CREATE TABLE cookies (name)")
    assert "database of another program" in play(try_to_open)
    assert sql("SELECT name FROM sqlite_master") == [("cookies",)]


def test_a_newer_ledger_is_not_touched(play: Play, sql: Sql) -> None:
    """What a later agent-magics wrote is refused with the way out."""
    play(start)
    sql("UPDATE schema_version SET version_num='7'")
    said = play(try_to_open)
    assert f"newer agent-magics (schema 7, this one knows {schema.SCHEMA_VERSION})" in said
    assert "Upgrade" in said


def test_a_deleted_ledger_is_noticed(play: Play, path: Path) -> None:
    """Writing into a file that nobody can find any more is an error, not a success."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        path.unlink()
        said = await refused(StorageError, store.commit(lease, TALK))
        assert "was deleted or replaced" in said
        path.write_bytes(b"")
        assert "was deleted or replaced" in await refused(StorageError, store.load("s"))

    play(scenario)


def test_a_place_that_cannot_be_made_is_named(play: Play, path: Path) -> None:
    """A file where the folder should be is told with the path."""
    path.parent.write_text("a file")
    assert str(path) in play(try_to_open)


def test_a_failed_open_is_tried_again(play: Play, path: Path) -> None:
    """Once the trouble is gone, the same store works."""

    async def scenario(store: SqlStore) -> None:
        path.parent.mkdir()
        path.write_bytes(b"# my notes\n" * 400)
        await try_to_open(store)
        path.unlink()
        await start(store)

    play(scenario)


# Root may write everywhere, so the process first does its imports, then becomes nobody.
READ_ONLY = """
import asyncio, os, sys, tempfile
from agent_magics.core.errors import StorageError
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import owner

async def open_at(path):
    store = SqlStore(path, busy_timeout_s=0.3)
    try:
        await store.acquire("s", owner(), create=True)
    except StorageError as error:
        print(error.message)
    await store.aclose()

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(open_at(folder + "/warm.db"))
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
asyncio.run(open_at(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX permissions")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode"), [(0o555, 0o666), (0o777, 0o444)], ids=["folder", "file"]
)
def test_what_is_read_only_is_named(root: Path, folder_mode: int, file_mode: int) -> None:
    """A file or folder without the right to write is one sentence with the way out."""
    with tempfile.TemporaryDirectory() as folder:  # others can't reach pytest's own folders
        path = Path(folder) / "ledger.db"
        path.touch()
        path.chmod(file_mode)
        path.parent.chmod(folder_mode)
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        path.parent.chmod(0o700)
    assert done.stderr == ""
    assert f"{path} can't be written (the file or its folder is read-only)" in done.stdout
    assert "choose another place with AgentMagics.store" in done.stdout


def test_every_foreign_error_has_a_sentence() -> None:
    """Errors without a rule of their own keep their text and name the file."""
    said = errors.storage_error(sqlite3.OperationalError("odd"), Path("here.db"))
    assert said.message == "The ledger at here.db failed: odd. Nothing was recorded."
    no_space = errors.storage_error(OSError(28, "No space left on device"), Path("here.db"))
    assert "disk full" in no_space.message
