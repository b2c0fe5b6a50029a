"""Memories in the ledger's file, with full-text search.

The words of each memory stand in an FTS5 table that is made, and brought up to date, by whoever
searches: a SQLite without FTS5 writes rows that are not yet indexed and ranks them itself.
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
from agent_magics.ledger import records
from agent_magics.ledger.listing import check_limit
from agent_magics.ledger.search_terms import index_terms, query_terms, ranked
from agent_magics.ledger.sqlite.connection import LedgerConnection
from agent_magics.ledger.sqlite.database import Database
from agent_magics.ledger.sqlite.schema import memories as table
from agent_magics.ledger.sqlite.store import SqlStore

INDEX_VERSION = 1  # of the words in the index: rows of another are indexed again
NOT_INDEXED = 0
MAX_LIMIT = 2**31  # SQLite takes no larger one

_FIELDS = tuple(column for column in table.c if column.name in Memory.__struct_fields__)
_NEWEST = (table.c.updated_at.desc(), table.c.number.desc())
_HAS_INDEX = "SELECT 1 FROM sqlite_master WHERE name='memory_words'"
_CREATE_INDEX = "CREATE VIRTUAL TABLE memory_words USING fts5(words, tokenize='porter unicode61')"
_DELETE_WORDS = "DELETE FROM memory_words WHERE rowid=?"
_DELETE_ORPHANS = "DELETE FROM memory_words WHERE rowid NOT IN (SELECT number FROM memories)"
_WRITE_WORDS = "INSERT INTO memory_words(rowid, words) VALUES(?, ?)"
_OPTIMIZE = "INSERT INTO memory_words(memory_words) VALUES('optimize')"
_FIND = text(
    "SELECT m.* FROM memory_words JOIN memories m ON m.number = memory_words.rowid"
    " WHERE memory_words MATCH :words AND m.namespace = :namespace"
    " ORDER BY bm25(memory_words), m.updated_at DESC, m.number DESC LIMIT :limit"
)


@functools.cache
def has_full_text() -> bool:
    """Return whether this Python's SQLite was built with FTS5."""
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
        self._database = at.database if isinstance(at, SqlStore) else Database(at)
        self._full_text = has_full_text() if full_text is None else full_text

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        limit = min(check_limit(limit), MAX_LIMIT)
        terms = query_terms(query)
        if not terms:
            return ()
        if self._full_text:
            return await self._database.on_connection(
                lambda ledger: _found(ledger, clean_text(namespace), terms, limit)
            )
        every = await self.list_by_namespace(namespace)
        return ranked(
            query, ((memory, _searched_text(memory.content, memory.tags)) for memory in every)
        )[:limit]

    async def list_recent(self, namespace: str, limit: int) -> Sequence[Memory]:
        limit = min(check_limit(limit), MAX_LIMIT)
        return await self._database.on_connection(lambda ledger: _newest(ledger, namespace, limit))

    async def list_by_namespace(self, namespace: str) -> Sequence[Memory]:
        return await self._database.on_connection(lambda ledger: _newest(ledger, namespace, None))

    async def upsert(self, memory: Memory) -> None:
        cleaned: Memory = clean_value(memory)
        await self._database.on_connection(lambda ledger: _upsert(ledger, cleaned))

    async def delete(self, memory_id: str) -> None:
        await self._database.on_connection(lambda ledger: _delete(ledger, clean_text(memory_id)))

    async def aclose(self) -> None:
        if not self._is_shared:
            await self._database.aclose()


def every_memory(core: Connection) -> tuple[Memory, ...]:
    """Read the memories of all namespaces, the one that changed last first."""
    return _memories(core.execute(select(*_FIELDS).order_by(*_NEWEST)).mappings())


def _newest(ledger: LedgerConnection, namespace: str, limit: int | None) -> tuple[Memory, ...]:
    query = select(*_FIELDS).where(table.c.namespace == clean_text(namespace))
    with ledger.read():
        return _memories(ledger.core.execute(query.order_by(*_NEWEST).limit(limit)).mappings())


def _memories(found: Iterable[Mapping[Any, Any]]) -> tuple[Memory, ...]:
    return tuple(
        Memory(
            memory_id=row["memory_id"],
            namespace=row["namespace"],
            content=row["content"],
            source=row["source"],
            created_at=records.moment_of(row["created_at"]),
            updated_at=records.moment_of(row["updated_at"]),
            tags=_read_tags(row["tags"]),
        )
        for row in found
    )


def _read_tags(stored: str) -> tuple[str, ...]:
    return msgspec.json.decode(stored, type=tuple[str, ...])


def _searched_text(content: str, tags: Sequence[str]) -> str:
    return " ".join([content, *tags])


def _upsert(ledger: LedgerConnection, memory: Memory) -> None:
    """Write by id; the namespace and the birth of a memory never change."""
    updated_at = records.micros(memory.updated_at)
    texts = {
        "content": memory.content,
        "tags": msgspec.json.encode(memory.tags).decode(),
        "source": memory.source,
        "updated_at": updated_at,
        "indexed": NOT_INDEXED,
    }
    this = table.c.memory_id == memory.memory_id
    with ledger.write():
        before = ledger.core.execute(select(table.c.content).where(this)).scalar()
        if before is None:
            born = {
                "memory_id": memory.memory_id,
                "namespace": memory.namespace,
                "created_at": records.micros(memory.created_at),
            }
            ledger.core.execute(insert(table).values(**texts, **born))
        elif before == memory.content:
            ledger.core.execute(update(table).where(this).values(updated_at=updated_at))
        else:
            ledger.core.execute(update(table).where(this).values(**texts))


def _delete(ledger: LedgerConnection, memory_id: str) -> None:
    """Delete for good, the words in the index and the bytes in the file too."""
    this = table.c.memory_id == memory_id
    with ledger.write():
        number = ledger.core.execute(select(table.c.number).where(this)).scalar()
        if number is None:
            return
        # Else the bytes of a deleted row stay in free pages until others overwrite them, and what
        # a person wants forgotten could be read from the file.
        ledger.raw.execute("PRAGMA secure_delete=ON")
        ledger.core.execute(delete(table).where(this))
        if has_full_text() and ledger.raw.execute(_HAS_INDEX).fetchone():
            ledger.raw.execute(_DELETE_WORDS, (number,))
            # FTS5 marks deleted words and keeps them until its segments are merged.
            ledger.raw.execute(_OPTIMIZE)


def _found(
    ledger: LedgerConnection, namespace: str, terms: Sequence[str], limit: int
) -> tuple[Memory, ...]:
    _update_index(ledger)
    words = " OR ".join(f'"{term}"' for term in terms)  # no term has a quote in it
    values = {"words": words, "namespace": namespace, "limit": limit}
    with ledger.read():
        return _memories(ledger.core.execute(_FIND, values).mappings())


def _update_index(ledger: LedgerConnection) -> None:
    """Create the index where it is missing; index what was written since the last search."""
    late = table.c.indexed != INDEX_VERSION
    with ledger.read():
        has_index = ledger.raw.execute(_HAS_INDEX).fetchone() is not None
        if has_index and ledger.core.execute(select(table.c.number).where(late)).first() is None:
            return
    with ledger.write():
        if (
            ledger.raw.execute(_HAS_INDEX).fetchone() is None
        ):  # another process may have been quicker
            ledger.raw.execute(_CREATE_INDEX)
        # A SQLite without FTS5 deletes memories and can't touch their words.
        ledger.raw.execute(_DELETE_ORPHANS)
        query = select(table.c.number, table.c.content, table.c.tags).where(late)
        for number, content, tags in ledger.core.execute(query).all():
            ledger.raw.execute(_DELETE_WORDS, (number,))
            words = index_terms(_searched_text(content, _read_tags(tags)))
            ledger.raw.execute(_WRITE_WORDS, (number, words))
        ledger.core.execute(update(table).where(late).values(indexed=INDEX_VERSION))
