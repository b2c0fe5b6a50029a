"""Older files are brought to our schema, once, with their events as they were."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from agent_magics.core.errors import StorageError
from agent_magics.core.events import encode_payload
from agent_magics.core.ports import Change
from agent_magics.ledger import schema
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.migrations.upgrade import upgrade
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, new, owner, refused, user
from tests.ledger.conftest import Play

Sql = Callable[..., list[Any]]
TEXTS = ("first", "second", "third")


def make_older(path: Path, *, version: str) -> None:
    """Make a file of an older schema with one session of three messages."""
    path.parent.mkdir()
    held = LedgerConnection(path, busy_timeout_s=1, network=None)
    upgrade(held.core, version)
    held.raw.execute(
        "INSERT INTO sessions (session_id, created_at, updated_at, message_count, epoch)"
        " VALUES ('s', 0, 0, 3, 5)"
    )
    for seq, text in enumerate(TEXTS, start=1):
        held.raw.execute(
            "INSERT INTO events (session_id, seq, kind, payload, created_at)"
            " VALUES ('s', ?, 'user_message', ?, 0)",
            (seq, encode_payload(user(text))),
        )
    if version != "0":  # which counts them by itself when it is brought up
        held.raw.execute("UPDATE sessions SET head_seq=3")
    held.close()


async def open_and_write(store: SqlStore) -> list[Any]:
    lease = await store.acquire("s", owner())
    await store.commit(lease, Change(events=(new(user("fourth")),)))
    state = await loaded(store)
    return [(event.seq, event.payload) for event in state.events]


@pytest.mark.parametrize("version", ["0", "1"])
def test_an_older_file_is_brought_to_our_schema(
    play: Play, path: Path, sql: Sql, version: str
) -> None:
    """An older file opens; its events keep every byte and the numbers go on after them."""
    make_older(path, version=version)
    events = "SELECT seq, kind, payload, created_at FROM events WHERE seq < 4 ORDER BY seq"
    before = sql(events)
    expected = [(seq, user(text)) for seq, text in enumerate((*TEXTS, "fourth"), start=1)]
    assert play(open_and_write) == expected
    assert sql(events) == before
    assert sql("SELECT version_num FROM schema_version") == [(str(schema.SCHEMA_VERSION),)]


def test_migrated_and_new_files_are_the_same(path: Path) -> None:
    """The revisions together make exactly the tables of `schema.py`."""
    make_older(path, version="head")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.VERSION_TABLE, "compare_type": True}
        )
        differences = compare_metadata(context, schema.metadata)
    engine.dispose()
    assert [one for one in differences if schema.VERSION_TABLE not in str(one)] == []


def test_the_newest_revision_is_our_version(path: Path, sql: Sql) -> None:
    """`SCHEMA_VERSION` is what the revisions end at."""
    make_older(path, version="head")
    assert sql("SELECT version_num FROM schema_version") == [(str(schema.SCHEMA_VERSION),)]


def test_a_migration_that_fails_changes_nothing(play: Play, path: Path, sql: Sql) -> None:
    """What stands in the way is named; the file is as it was and opens once that is gone."""
    make_older(path, version="0")
    sql("CREATE TABLE bindings (in_the_way)")
    tables = "SELECT name, sql FROM sqlite_master ORDER BY name"
    before = sql(tables)
    said = play(lambda store: refused(StorageError, store.load("s")))
    assert str(path) in said
    assert "bindings" in said
    assert sql(tables) == before
    sql("DROP TABLE bindings")
    assert len(play(open_and_write)) == 4


def test_two_stores_migrate_once(path: Path) -> None:
    """Whoever comes second waits and finds it done."""
    make_older(path, version="0")

    async def both() -> list[int]:
        stores = [SqlStore(path), SqlStore(path)]
        states = await asyncio.gather(*(loaded(store) for store in stores))
        for store in stores:
            await store.aclose()
        return [len(state.events) for state in states]

    assert asyncio.run(both()) == [3, 3]


def test_two_stores_make_one_file(path: Path) -> None:
    """Two first opens of a new place at the same time are no trouble."""

    async def both() -> list[object]:
        stores = [SqlStore(path) for _ in range(4)]
        opened = await asyncio.gather(
            *(
                store.acquire(f"s{number}", owner(), create=True)
                for number, store in enumerate(stores)
            )
        )
        for store in stores:
            await store.aclose()
        return list(opened)

    assert len(asyncio.run(both())) == 4
    with closing(sqlite3.connect(path)) as ledger:
        assert ledger.execute("SELECT count(*) FROM sessions").fetchone() == (4,)


@pytest.mark.req("dec59")
def test_alembic_is_not_imported_for_a_file_of_ours(root: Path, tmp_path: Path) -> None:
    """Opening a new or current ledger doesn't pay for migrations."""
    import subprocess
    import sys

    script = (
        "import asyncio, sys\n"
        "from agent_magics.ledger.sqlite.store import SqlStore\n"
        "async def main():\n"
        "    store = SqlStore(sys.argv[1])\n"
        "    await store.load('s')\n"
        "    await store.aclose()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "ledger.db")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
