"""Memories in the ledger's file: what is SQLite's own, beside the contract."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.core.errors import StorageError
from agent_magics.ledger.search_terms import MAX_QUERY_TERMS, index_terms, query_terms, ranked
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.memories import SqlMemoryStore, _delete
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, memory, owner, refused
from agent_magics.testing.memories import ids
from tests.ledger.conftest import Play

pytestmark = pytest.mark.req("E16")

Sql = Callable[..., list[Any]]


def test_it_shares_the_ledgers_file_and_leaves_it_open(play: Play, sql: Sql) -> None:
    """One file, one connection: closing the memories closes no session."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        memories = SqlMemoryStore(store)
        await memories.upsert(memory())
        await memories.aclose()
        assert (await loaded(store)).row.epoch == lease.epoch
        assert ids(await memories.list_recent("ns", 5)) == ["m1"]

    play(scenario)
    assert sql("SELECT memory_id FROM memories") == [("m1",)]


def test_what_is_remembered_outlives_the_process(path: Path) -> None:
    """Another store on the same file finds it by its words."""

    async def scenario() -> None:
        first = SqlMemoryStore(path)
        await first.upsert(memory())
        await first.aclose()
        second = SqlMemoryStore(path)
        assert ids(await second.search("ns", "tea", 5)) == ["m1"]
        await second.aclose()
        assert "is closed here" in await refused(StorageError, second.search("ns", "tea", 5))

    asyncio.run(scenario())


def test_deleting_a_session_forgets_nothing(play: Play) -> None:
    """Memories last across sessions; only their own delete takes them."""

    async def scenario(store: SqlStore) -> None:
        lease = await store.acquire("s", owner(), create=True)
        memories = SqlMemoryStore(store)
        await memories.upsert(memory(source="session:s"))
        await store.release(lease)
        await store.delete_session("s")
        assert ids(await memories.list_recent("ns", 5)) == ["m1"]

    play(scenario)


def test_inflections_are_found(path: Path) -> None:
    """The index knows that "prefers" and "prefer" are one word."""

    async def scenario() -> None:
        store = SqlMemoryStore(path)
        await store.upsert(memory("Prefers long flights"))
        assert ids(await store.search("ns", "does the user prefer flying? flight", 5)) == ["m1"]
        await store.aclose()

    asyncio.run(scenario())


def test_what_was_written_without_an_index_is_indexed_later(path: Path) -> None:
    """A Python whose SQLite has no FTS5 may write too; a number used again misleads nobody."""

    async def scenario() -> None:
        full, plain = SqlMemoryStore(path), SqlMemoryStore(path, full_text=False)
        await full.upsert(memory())
        assert ids(await full.search("ns", "tea", 5)) == ["m1"]
        await plain.upsert(memory("likes coffee", minute=1))
        await plain.upsert(memory("black tea", memory_id="m2"))
        for store in (full, plain):
            assert ids(await store.search("ns", "coffee", 5)) == ["m1"]
            assert ids(await store.search("ns", "tea", 5)) == ["m2"]
        await full.aclose()
        await plain.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize("full_text", [True, False], ids=["searched", "never searched"])
def test_forgotten_words_leave_the_file(path: Path, *, full_text: bool) -> None:
    """After a delete the file has them neither in a row nor in the index."""

    async def scenario() -> None:
        store = SqlMemoryStore(path, full_text=full_text)
        for number in range(20):
            word = "zzyzx" if number == 7 else "other"
            await store.upsert(memory(f"drives to {word} {number}", memory_id=f"m{number}"))
        assert ids(await store.search("ns", "zzyzx", 5)) == ["m7"]
        await store.delete("m7")
        await store.aclose()

    asyncio.run(scenario())
    files = [path, *path.parent.glob(f"{path.name}-*")]
    assert [file.name for file in files if b"zzyzx" in file.read_bytes()] == []


def test_forgotten_words_are_overwritten_by_every_sqlite(path: Path) -> None:
    """Many SQLites leave the bytes of deleted rows in the file unless they are told not to."""

    async def scenario() -> None:
        store = SqlMemoryStore(path, full_text=False)
        await store.upsert(memory("drives to zzyzx", memory_id="m7"))
        await store.aclose()

    asyncio.run(scenario())
    held = LedgerConnection(path, busy_timeout_s=1, network=None)
    held.raw.execute("PRAGMA secure_delete=OFF")  # as SQLite is built without a distribution's care
    _delete(held, "m7")
    held.close()
    assert b"zzyzx" not in path.read_bytes()


def test_a_store_that_fails_says_so(path: Path, sql: Sql) -> None:
    """Trouble with the file is one sentence of ours, and the rows are as they were."""

    async def scenario() -> None:
        store = SqlMemoryStore(path)
        await store.upsert(memory())
        sql("DROP TABLE memories")
        for work in (
            store.upsert(memory()),
            store.search("ns", "tea", 5),
            store.list_recent("ns", 5),
            store.delete("m1"),
        ):
            assert str(path) in await refused(StorageError, work)
        await store.aclose()

    asyncio.run(scenario())


def test_two_processes_worth_of_stores_index_once(path: Path) -> None:
    """Whoever makes the index second finds it made."""

    async def scenario() -> None:
        stores = [SqlMemoryStore(path) for _ in range(3)]
        await stores[0].upsert(memory())
        found = await asyncio.gather(*(store.search("ns", "tea", 5) for store in stores))
        assert [ids(each) for each in found] == [["m1"]] * 3
        for store in stores:
            await store.aclose()

    asyncio.run(scenario())
    with sqlite3.connect(path) as ledger:
        assert ledger.execute("SELECT count(*) FROM memory_words").fetchone() == (1,)
    ledger.close()


def test_a_long_query_is_read_at_both_ends() -> None:
    """What a person asks stands before or after what they pasted."""
    pasted = " ".join(f"w{number}" for number in range(5_000))
    terms = query_terms(f"Which tea {pasted} is greenest")
    assert {"tea", "greenest"} <= set(terms)
    assert len(terms) == MAX_QUERY_TERMS


@given(st.text())
def test_terms_are_safe_to_quote(text: str) -> None:
    """No term of any text has a quote, a blank or anything else that a query would read."""
    with_index = index_terms(text).split(" ") if index_terms(text) else []
    for term in (*query_terms(text), *with_index):
        assert term
        assert not any(character.isspace() or character in "\"'*()^:-+" for character in term)


@given(st.text(min_size=1))
def test_a_text_is_found_by_itself(text: str) -> None:
    """Whatever words a text has, all of it as a query finds it."""
    assert ranked(text, [(1, text)]) == ([1] if query_terms(text) else [])


def test_a_term_of_the_index_is_what_sqlite_reads(path: Path) -> None:
    """Marks and ligatures go the same way in the index and in the query."""

    async def scenario() -> None:
        store = SqlMemoryStore(path)
        words = {"hi": "हिन्दी बोलते हैं", "ar": "يحب الشاي الأخضر", "de": "Größenwahn", "fi": "ﬁne"}
        for name, content in words.items():
            await store.upsert(memory(content, memory_id=name))
        for name, query in {
            "hi": "हिन्दी",
            "ar": "الشاي",
            "de": "GRÖSSENWAHN",
            "fi": "fine",
        }.items():
            assert ids(await store.search("ns", query, 5)) == [name]
        await store.aclose()

    asyncio.run(scenario())
    with sqlite3.connect(path) as ledger:
        assert ledger.execute("SELECT count(*) FROM memory_words").fetchone() == (4,)
    ledger.close()
