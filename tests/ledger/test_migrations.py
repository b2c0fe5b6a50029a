"""Older files are brought to our schema, once, with their events as they were."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from agent_magics.core.errors import StorageError
from agent_magics.core.events import AssistantMessage, UserMessage
from agent_magics.core.messages import text_of
from agent_magics.core.ports import Change
from agent_magics.ledger.sqlite import schema
from agent_magics.ledger.sqlite.catalog import SqliteCatalog
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.memories import SqlMemoryStore
from agent_magics.ledger.sqlite.migrations import upgrade as upgrading
from agent_magics.ledger.sqlite.migrations.upgrade import upgrade
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, new, owner, refused, user
from tests.ledger.conftest import Play

Sql = Callable[..., list[Any]]
RELEASED = Path(__file__).parent / "data" / "ledger_0_1_0.sql"
TEXTS = ("first", "second", "third")
NEXT = """
from alembic import op

revision, down_revision, branch_labels, depends_on = "3", "2", None, None


def upgrade():
    op.execute("CREATE TABLE added (words TEXT)")
"""


@pytest.fixture
def released(path: Path) -> Path:
    """A file as 0.1.0 wrote it, from its own dump."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as ledger:
        ledger.executescript(RELEASED.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def next_schema(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A schema of the future, one revision behind ours."""
    folder = tmp_path / "100 % revisions"
    shutil.copytree(Path(upgrading.__file__).parent, folder)
    (folder / "versions" / "v0003_next.py").write_text(NEXT)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(upgrading, "upgrade", partial(upgrade, folder=folder))


async def open_and_write(store: SqlStore) -> list[str]:
    lease = await store.acquire("s", owner())
    await store.commit(lease, Change(events=(new(user("fourth")),)))
    said = [event.payload for event in (await loaded(store)).events]
    return [text_of(p.content) for p in said if isinstance(p, UserMessage | AssistantMessage)]


def test_a_ledger_of_the_first_release_opens(play: Play, released: Path, sql: Sql) -> None:
    """Every part of it is there, its events keep every byte, and the numbers go on after them."""
    events = "SELECT seq, kind, payload, created_at FROM events WHERE seq < 5 ORDER BY seq"
    before = sql(events)

    async def scenario(store: SqlStore) -> list[str]:
        state = await loaded(store)
        assert state.row.title == "churn"
        assert [slot.slot_id for slot in state.slots] == ["default", "option-a"]
        assert [each.checkpoint_id for each in state.checkpoints] == ["c1"]
        assert [draft.text for draft in state.drafts] == ["half an ans"]
        assert await store.bound("notebook:a.ipynb") == "s"
        (kept,) = await SqlMemoryStore(store).search("ns", "tea", 5)
        assert kept.memory_id == "m1"
        return await open_and_write(store)

    assert play(scenario) == [*TEXTS, "fourth"]
    assert sql(events) == before
    assert SqliteCatalog(released).names() == ("churn",)


@pytest.mark.parametrize("version", ["0", "1"])
def test_what_was_never_released_is_one_sentence(
    play: Play, released: Path, sql: Sql, version: str
) -> None:
    """No release wrote such a file; it is named and stays as it is."""
    sql("UPDATE schema_version SET version_num=?", version)
    everything = "SELECT * FROM events ORDER BY seq"
    before = sql(everything)
    said = play(lambda store: refused(StorageError, store.load("s")))
    assert "before the first release" in said
    assert str(released) in said
    assert "AgentMagics.store" in said
    assert sql(everything) == before
    assert sql("SELECT version_num FROM schema_version") == [(version,)]


def test_revisions_and_new_files_are_the_same(path: Path, sql: Sql) -> None:
    """The revisions together make exactly the tables of `schema.py`, and end at its version."""
    path.parent.mkdir()
    held = LedgerConnection(path, busy_timeout_s=1, network=None)
    upgrade(held.core)
    held.close()
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.VERSION_TABLE, "compare_type": True}
        )
        differences = compare_metadata(context, schema.metadata)
    engine.dispose()
    assert [one for one in differences if schema.VERSION_TABLE not in str(one)] == []
    assert sql("SELECT version_num FROM schema_version") == [(str(schema.SCHEMA_VERSION),)]


@pytest.mark.usefixtures("next_schema")
def test_an_older_file_is_brought_to_our_schema(play: Play, released: Path, sql: Sql) -> None:
    """Once, with its events as they were."""
    assert play(open_and_write) == [*TEXTS, "fourth"]
    assert sql("SELECT version_num FROM schema_version") == [("3",)]
    assert sql("SELECT count(*) FROM added") == [(0,)]
    assert released.exists()


@pytest.mark.usefixtures("next_schema", "released")
def test_a_migration_that_fails_changes_nothing(play: Play, path: Path, sql: Sql) -> None:
    """What stands in the way is named; the file is as it was and opens once that is gone."""
    sql("CREATE TABLE added (in_the_way)")
    tables = "SELECT name, sql FROM sqlite_master ORDER BY name"
    before = sql(tables)
    said = play(lambda store: refused(StorageError, store.load("s")))
    assert str(path) in said
    assert "added" in said
    assert sql(tables) == before
    sql("DROP TABLE added")
    assert len(play(open_and_write)) == 4


@pytest.mark.usefixtures("next_schema", "released")
def test_two_stores_migrate_once(path: Path) -> None:
    """Whoever comes second waits and finds it done."""

    async def both() -> list[int]:
        stores = [SqlStore(path), SqlStore(path)]
        states = await asyncio.gather(*(loaded(store) for store in stores))
        for store in stores:
            await store.aclose()
        return [len(state.events) for state in states]

    assert asyncio.run(both()) == [4, 4]


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
