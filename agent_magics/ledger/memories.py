"""Memories in the ledger's SQLite file, with full-text search (seed 001 § 5.4, E16).

The words of each memory stand in an FTS5 table that is made, and brought up to date, by whoever
searches: a SQLite without FTS5 writes rows that are not yet indexed and ranks them itself. What
is SQLite's own is in this module and `connection`.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select, text, update

from agent_magics.core.memories import Memory
from agent_magics.core.text import clean_text, clean_value
from agent_magics.ledger import rows
from agent_magics.ledger.connection import HeldConnection
from agent_magics.ledger.listing import check_limit
from agent_magics.ledger.memory_terms import index_terms, query_terms, ranked
from agent_magics.ledger.schema import memories as table
from agent_magics.ledger.store import SqlStore

INDEX_VERSION = 1  # of the words in the index: rows of another are indexed again
NOT_INDEXED = 0
MAX_LIMIT = 2**31

_FIELDS = tuple(column for column in table.c if column.name in Memory.__struct_fields__)
_NEWEST = (table.c.updated_at.desc(), table.c.number.desc())
_IS_MADE = "SELECT 1 FROM sqlite_master WHERE name='memory_words'"
_MAKE = "CREATE VIRTUAL TABLE memory_words USING fts5(words, tokenize='porter unicode61')"
_FORGET_WORDS = "DELETE FROM memory_words WHERE rowid=?"
_FORGET_ORPHANS = "DELETE FROM memory_words WHERE rowid NOT IN (SELECT number FROM memories)"
_WRITE_WORDS = "INSERT INTO memory_words(rowid, words) VALUES(?, ?)"
_TIDY = "INSERT INTO memory_words(memory_words) VALUES('optimize')"
_FIND = text(
    "SELECT m.* FROM memory_words JOIN memories m ON m.number = memory_words.rowid"
    " WHERE memory_words MATCH :words AND m.namespace = :namespace"
    " ORDER BY bm25(memory_words), m.updated_at DESC, m.number DESC LIMIT :limit"
)


@functools.cache
def has_full_text() -> bool:
    """Tell whether this Python's SQLite was built with FTS5."""
    with closing(sqlite3.connect(":memory:")) as trial:
        try:
            trial.execute("CREATE VIRTUAL TABLE trial USING fts5(words)")
        except sqlite3.OperationalError:
            return False
    return True


class SqlMemoryStore:
    """`core.ports.MemoryStorage` in an SQLite file.

    `at`: a `SqlStore`, whose file, connection and thread it shares and leaves open; or a path or
    `sqlite:///` URL, whose file it opens at first use and closes with `aclose`. `full_text` None:
    FTS5 where SQLite has it.
    """

    def __init__(self, at: SqlStore | Path | str, *, full_text: bool | None = None) -> None:
        self._is_shared = isinstance(at, SqlStore)
        self._ledger = at if isinstance(at, SqlStore) else SqlStore(at)
        self._full_text = has_full_text() if full_text is None else full_text

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        limit = min(check_limit(limit), MAX_LIMIT)
        terms = query_terms(query)
        if not terms:
            return ()
        if self._full_text:
            return await self._ledger.on_connection(
                lambda held: _found(held, clean_text(namespace), terms, limit)
            )
        every = await self.list_by_namespace(namespace)
        return ranked(query, ((memory, _said(memory.content, memory.tags)) for memory in every))[
            :limit
        ]

    async def list_recent(self, namespace: str, limit: int) -> Sequence[Memory]:
        limit = min(check_limit(limit), MAX_LIMIT)
        return await self._ledger.on_connection(lambda held: _newest(held, namespace, limit))

    async def list_by_namespace(self, namespace: str) -> Sequence[Memory]:
        return await self._ledger.on_connection(lambda held: _newest(held, namespace, None))

    async def upsert(self, memory: Memory) -> None:
        cleaned: Memory = clean_value(memory)
        await self._ledger.on_connection(lambda held: _upsert(held, cleaned))

    async def delete(self, memory_id: str) -> None:
        await self._ledger.on_connection(lambda held: _delete(held, clean_text(memory_id)))

    async def aclose(self) -> None:
        if not self._is_shared:
            await self._ledger.aclose()


def every_memory(core: Connection) -> tuple[Memory, ...]:
    """Read the memories of all namespaces, the one that changed last first."""
    return _memories(core.execute(select(*_FIELDS).order_by(*_NEWEST)).mappings())


def _newest(held: HeldConnection, namespace: str, limit: int | None) -> tuple[Memory, ...]:
    query = select(*_FIELDS).where(table.c.namespace == clean_text(namespace))
    with held.read():
        return _memories(held.core.execute(query.order_by(*_NEWEST).limit(limit)).mappings())


def _memories(found: Iterable[Mapping[Any, Any]]) -> tuple[Memory, ...]:
    return tuple(
        Memory(
            memory_id=row["memory_id"],
            namespace=row["namespace"],
            content=row["content"],
            source=row["source"],
            created_at=rows.moment_of(row["created_at"]),
            updated_at=rows.moment_of(row["updated_at"]),
            tags=_read_tags(row["tags"]),
        )
        for row in found
    )


def _read_tags(stored: str) -> tuple[str, ...]:
    return msgspec.json.decode(stored, type=tuple[str, ...])


def _said(content: str, tags: Sequence[str]) -> str:
    return " ".join([content, *tags])


def _upsert(held: HeldConnection, memory: Memory) -> None:
    """Write by id; the namespace and the birth of a memory never change."""
    updated_at = rows.micros(memory.updated_at)
    texts = {
        "content": memory.content,
        "tags": msgspec.json.encode(memory.tags).decode(),
        "source": memory.source,
        "updated_at": updated_at,
        "indexed": NOT_INDEXED,
    }
    this = table.c.memory_id == memory.memory_id
    with held.write():
        before = held.core.execute(select(table.c.content).where(this)).scalar()
        if before is None:
            born = {
                "memory_id": memory.memory_id,
                "namespace": memory.namespace,
                "created_at": rows.micros(memory.created_at),
            }
            held.core.execute(insert(table).values(**texts, **born))
        elif before == memory.content:
            held.core.execute(update(table).where(this).values(updated_at=updated_at))
        else:
            held.core.execute(update(table).where(this).values(**texts))


def _delete(held: HeldConnection, memory_id: str) -> None:
    """Forget for good: its words leave the index's pages too, and freed pages are overwritten."""
    this = table.c.memory_id == memory_id
    with held.write():
        number = held.core.execute(select(table.c.number).where(this)).scalar()
        if number is None:
            return
        held.raw.execute("PRAGMA secure_delete=ON")
        held.core.execute(delete(table).where(this))
        if has_full_text() and held.raw.execute(_IS_MADE).fetchone():
            held.raw.execute(_FORGET_WORDS, (number,))
            held.raw.execute(_TIDY)


def _found(
    held: HeldConnection, namespace: str, terms: Sequence[str], limit: int
) -> tuple[Memory, ...]:
    _bring_up(held)
    words = " OR ".join(f'"{term}"' for term in terms)  # no term has a quote in it
    values = {"words": words, "namespace": namespace, "limit": limit}
    with held.read():
        return _memories(held.core.execute(_FIND, values).mappings())


def _bring_up(held: HeldConnection) -> None:
    """Make the index where it is missing; index what was written since the last search."""
    late = table.c.indexed != INDEX_VERSION
    with held.read():
        is_made = held.raw.execute(_IS_MADE).fetchone() is not None
        if is_made and held.core.execute(select(table.c.number).where(late)).first() is None:
            return
    with held.write():
        if held.raw.execute(_IS_MADE).fetchone() is None:  # another process may have been quicker
            held.raw.execute(_MAKE)
        held.raw.execute(_FORGET_ORPHANS)
        query = select(table.c.number, table.c.content, table.c.tags).where(late)
        for number, content, tags in held.core.execute(query).all():
            held.raw.execute(_FORGET_WORDS, (number,))
            words = index_terms(_said(content, _read_tags(tags)))
            held.raw.execute(_WRITE_WORDS, (number, words))
        held.core.execute(update(table).where(late).values(indexed=INDEX_VERSION))
