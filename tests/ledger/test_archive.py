"""A store that is only read, and the frames over all of its sessions."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import agent_magics
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import AgentError, StorageError
from agent_magics.dataframes.columns import COLUMNS
from agent_magics.ledger.sqlite.archive import Archive
from agent_magics.ledger.sqlite.memories import SqlMemoryStore
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.testing import memory

READER = "import agent_magics, sys; print(len(agent_magics.frames(sys.argv[1]).events()))"
# Modes hold root back in nothing; what nobody can't read any more is imported before.
HELD_BACK = """
import agent_magics, os, sys
agent_magics.frames(sys.argv[1]).events()
if os.getuid() == 0:
    os.setuid(65534)
print(len(agent_magics.frames(sys.argv[2]).events()))
"""


async def written(path: Path, *, meanwhile: Any = None) -> list[str]:
    """Fill a store with two sessions; `meanwhile` is called while the second is open."""
    store = SqlStore(path)
    agent = await (
        AgentBuilder(AgentConfig(default_model="scripted:m"))
        .register_model_provider(ScriptedProvider(["a", "b", "c"]))
        .register_session_storage(store)
        .build()
    )
    names = []
    for title in ("first", "second"):
        session = await agent.new_session(SessionConfig(title=title))
        names.append(session.session_id)
        await session.submit_turn(f"about {title}")
        if title == "second" and meanwhile is not None:
            meanwhile()
            await session.submit_turn("more")
        await session.close()
    await SqlMemoryStore(store).upsert(memory("likes tea", namespace="a"))
    await SqlMemoryStore(store).upsert(memory("likes rice", memory_id="m9", namespace="b"))
    await agent.shutdown()
    await store.aclose()
    return names


@pytest.mark.req("D1")
def test_frames_hold_all_sessions_of_a_store(tmp_path: Path) -> None:
    """The oldest first, by path or URL; memories of every namespace."""
    path = tmp_path / "ledger.db"
    names = asyncio.run(written(path))
    frames = agent_magics.frames(path)
    assert frames.turns()["session_id"].tolist() == names
    assert frames.turns()["session"].tolist() == ["first", "second"]
    assert set(frames.memories()["namespace"]) == {"a", "b"}
    by_url = agent_magics.frames(f"sqlite:///{path}")
    assert by_url.events().equals(frames.events())
    for name, columns in COLUMNS.items():
        frame = getattr(frames, name)()
        assert {n: str(dtype) for n, dtype in frame.dtypes.items()} == dict(columns)


@pytest.mark.req("D1", "dec44")
def test_a_store_is_read_while_another_writes_it(tmp_path: Path) -> None:
    """A second process reads it in the middle of a session, and the session goes on."""
    path = tmp_path / "ledger.db"
    counts: list[int] = []

    def read() -> None:
        command = [sys.executable, "-c", READER, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        counts.append(int(done.stdout))

    asyncio.run(written(path, meanwhile=read))
    assert 0 < counts[0] < len(agent_magics.frames(path).events())


@pytest.mark.req("D1")
def test_reading_changes_nothing(tmp_path: Path) -> None:
    """The file stays as it is, byte for byte, and nothing of ours is made beside it."""
    path = tmp_path / "ledger.db"
    asyncio.run(written(path))
    shutil.rmtree(path.with_name("ledger.db.locks"))
    before = path.read_bytes()
    assert len(agent_magics.frames(path).turns()) == 2
    assert path.read_bytes() == before
    assert not path.with_name("ledger.db.locks").exists()


@pytest.mark.req("D1")
@pytest.mark.skipif(sys.platform == "win32", reason="file modes hold nobody back there")
def test_a_store_that_can_not_be_written_is_read(tmp_path: Path) -> None:
    """On a mounted copy, say: SQLite has nowhere to put its own files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        asyncio.run(written(path))
        shutil.copy(path, tmp_path / "other.db")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            command = [sys.executable, "-c", HELD_BACK, str(tmp_path / "other.db"), str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        finally:
            path.parent.chmod(0o755)
    assert (done.returncode, int(done.stdout or 0) > 0) == (0, True), done.stderr


@pytest.mark.req("D1")
def test_a_store_that_is_not_there_yet_has_no_sessions(tmp_path: Path) -> None:
    """The default one, before its first session; a path that was named must be right."""
    assert len(agent_magics.frames().events()) == 0
    assert len(agent_magics.frames().memories()) == 0
    missing = tmp_path / "typo.db"
    with pytest.raises(StorageError, match="There is no ledger at"):
        agent_magics.frames(missing).events()
    assert not missing.exists()


def made(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


VERSION = "CREATE TABLE schema_version (version_num TEXT)"
ODD = {
    "not a database": ((), "not a ledger"),
    "of another program": (("CREATE TABLE t (a)",), "database of another program"),
    "newer": ((VERSION, "INSERT INTO schema_version VALUES ('99')"), "newer agent-magics"),
    "older": ((VERSION, "INSERT INTO schema_version VALUES ('0')"), "older agent-magics"),
    "odd": ((VERSION, "INSERT INTO schema_version VALUES ('x')"), "database of another program"),
    "empty": ((VERSION,), "database of another program"),
}


@pytest.mark.req("D1")
@pytest.mark.parametrize("case", ODD)
def test_what_is_no_ledger_is_one_sentence(case: str, tmp_path: Path) -> None:
    """The sentence names the file and what to do."""
    statements, words = ODD[case]
    path = made(tmp_path / "odd.db", *statements)
    if not statements:
        path.write_bytes(b"no database at all " * 400)
    with pytest.raises(StorageError, match=words) as raised:
        agent_magics.frames(path).events()
    assert str(path) in raised.value.message


@pytest.mark.req("D1")
def test_a_ledger_of_before_the_first_release_is_refused(tmp_path: Path) -> None:
    """In a sentence, as where it is opened to be written."""
    path = tmp_path / "ledger.db"
    asyncio.run(written(path))
    made(path, "UPDATE schema_version SET version_num='1'")
    with pytest.raises(StorageError, match="before the first release"):
        Archive(path).memories()


def test_a_store_of_another_kind_is_refused() -> None:
    """Before anything is read."""
    with pytest.raises(AgentError, match="can't be used yet"):
        agent_magics.frames("postgresql://host/db")
