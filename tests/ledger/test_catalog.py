"""The catalog finds what is bound before anything is opened, and never fails."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filelock import FileLock

from agent_magics.core.catalog import SessionOverview
from agent_magics.core.ports import Change
from agent_magics.ledger.sqlite import catalog, schema
from agent_magics.ledger.sqlite.catalog import SqliteCatalog
from agent_magics.ledger.sqlite.lock_files import is_held, lease_lock_of, store_lock_of
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import assistant, new, owner, slot, user
from tests.ledger.conftest import Play

pytestmark = pytest.mark.req("dec59", "N9")
Sql = Callable[..., list[Any]]
SEEN = SessionOverview(
    session_id="s", title="churn", slots=2, turns=2, current_slot="option-a", name="churn"
)


async def start(store: SqlStore) -> None:
    lease = await store.acquire("s", owner(), create=True)
    gone = new(user("x"), turn="t2", slot="u2")
    change = Change(
        events=(new(user("q")), new(assistant("a")), gone),
        slots=(slot(), slot("u2", "option-a")),
        current_slot_uid="u2",
        title="churn",
    )
    await store.commit(lease, change)
    await store.bind("notebook:a.ipynb", "s")


def test_the_first_key_that_is_bound_counts(play: Play, path: Path) -> None:
    """Keys are asked in the order given."""
    play(start)
    assert SqliteCatalog(path).overview(["kernel:1", "notebook:a.ipynb"]) == SEEN
    assert SqliteCatalog(path).overview(["kernel:1"]) is None
    assert SqliteCatalog(path).overview([]) is None


def test_an_open_store_can_be_looked_at(play: Play, path: Path) -> None:
    """What another kernel has just committed is seen."""

    async def scenario(store: SqlStore) -> SessionOverview | None:
        await start(store)
        return SqliteCatalog(path).overview(["notebook:a.ipynb"])

    assert play(scenario) == msgspec.structs.replace(SEEN, is_held=True)


def test_what_this_process_has_open_is_in_nobodys_way(play: Play, path: Path) -> None:
    """Nobody is told to take their own session."""

    async def scenario(store: SqlStore) -> SessionOverview | None:
        mine = owner(os.getpid(), host=platform.node())
        await start(store)
        await store.acquire("s", mine, take=True)
        return SqliteCatalog(path).overview(["notebook:a.ipynb"])

    assert play(scenario) == SEEN


def test_a_title_names_a_session_that_has_it_alone(play: Play, path: Path, sql: Sql) -> None:
    """Among all sessions, however many there are."""
    play(start)
    for number in range(150):
        sql(
            "INSERT INTO sessions (session_id, title, created_at, updated_at, current_slot_uid,"
            " epoch, head_seq, message_count) SELECT ?, ?, created_at, updated_at + ?,"
            " current_slot_uid, epoch, head_seq, message_count FROM sessions WHERE session_id='s'",
            *(f"x{number}", f"title {number}", number + 1),
        )
    seen = SqliteCatalog(path).overview([], session_id="s")
    assert seen is not None
    assert seen.name == "churn"
    sql("UPDATE sessions SET title='churn' WHERE session_id='x149'")
    seen = SqliteCatalog(path).overview([], session_id="x149")
    assert seen is not None
    assert seen.name == "x149"
    assert "churn" not in SqliteCatalog(path).names()
    assert len(SqliteCatalog(path).names()) == 100


def test_an_id_goes_before_every_key(play: Play, path: Path) -> None:
    """A session that is named needs no binding."""
    play(start)
    assert SqliteCatalog(path).overview([], session_id="s") == SEEN
    assert SqliteCatalog(path).overview(["notebook:a.ipynb"], session_id="other") is None


def test_an_owner_that_died_holds_nothing(play: Play, path: Path) -> None:
    """What a killed process left behind is no owner."""
    play(start)
    (epoch,) = epochs(path)
    lease_lock_of(path, "s", epoch).touch()
    assert SqliteCatalog(path).overview(["notebook:a.ipynb"]) == SEEN


def test_looking_keeps_nobody_out(play: Play, path: Path) -> None:
    """Sessions are opened while somebody looks all the time: no look is taken for an owner."""
    play(start)
    is_over = threading.Event()

    def look() -> int:
        looks = 0
        while not is_over.is_set():
            (epoch,) = epochs(path)
            lease_lock_of(path, "s", epoch).touch()  # an owner that died leaves it
            looks += sum(not is_held(path, "s", epoch) for _ in range(200))
        return looks

    async def scenario(store: SqlStore) -> None:
        for _ in range(200):
            await store.release(await store.acquire("s", owner()))

    with ThreadPoolExecutor() as threads:
        looking = threads.submit(look)
        try:
            play(scenario)
        finally:
            is_over.set()
        assert looking.result() > 10


def test_while_the_stores_lock_is_held_nothing_is_said(play: Play, path: Path) -> None:
    """And nobody waits."""
    play(start)
    (epoch,) = epochs(path)
    with FileLock(lease_lock_of(path, "s", epoch)):
        assert is_held(path, "s", epoch)
        with FileLock(store_lock_of(path)):
            assert not is_held(path, "s", epoch)


def epochs(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as ledger:
        return [epoch for (epoch,) in ledger.execute("SELECT epoch FROM sessions")]


def test_nothing_is_made(tmp_path: Path) -> None:
    """A store that isn't there stays so."""
    assert SqliteCatalog(tmp_path / "no" / "ledger.db").overview(["kernel:1"]) is None
    assert SqliteCatalog(tmp_path / "ledger.db").overview(["kernel:1"]) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", ["other file", "other schema", "no table", "folder", "locked"])
def test_anything_odd_is_nothing(play: Play, path: Path, sql: Sql, odd: str) -> None:
    """No trouble with a file stops the extension from loading."""
    play(start)
    match odd:
        case "other file":
            path.write_bytes(b"# notes\n" * 2000)
        case "other schema":
            sql("UPDATE schema_version SET version_num='7'")
        case "no table":
            sql("DROP TABLE bindings")
        case "folder":
            path.unlink()
            path.mkdir()
        case "locked":
            sql("PRAGMA journal_mode=delete")
            with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
                foreign.execute("BEGIN EXCLUSIVE")
                assert SqliteCatalog(path).overview(["notebook:a.ipynb"]) is None
            return
    assert SqliteCatalog(path).overview(["notebook:a.ipynb"]) is None


def test_it_knows_the_schema_of_the_store() -> None:
    """The newest version that it knows is the store's."""
    assert catalog._SCHEMA_VERSIONS[-1] == str(schema.SCHEMA_VERSION)


def test_it_needs_the_standard_library_only(root: Path) -> None:
    """No database toolkit is imported for a glance."""
    script = (
        "import sys, agent_magics.ledger.backends\n"
        "heavy = {'sqlalchemy', 'alembic', 'filelock', 'pandas', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
