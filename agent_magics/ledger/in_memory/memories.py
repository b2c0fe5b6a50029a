"""Memories that live as long as the process, for tests and for agents that leave nothing behind."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agent_magics.core.memories import Memory
from agent_magics.core.text import clean_text, clean_value
from agent_magics.ledger.listing import check_limit
from agent_magics.ledger.search_terms import ranked


class InMemoryMemoryStore:
    """`core.ports.MemoryStorage` in memory: the same rules, nothing durable."""

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        check_limit(limit)
        every = await self.list_by_namespace(namespace)
        return ranked(query, ((one, " ".join([one.content, *one.tags])) for one in every))[:limit]

    async def list_recent(self, namespace: str, limit: int) -> Sequence[Memory]:
        check_limit(limit)
        return (await self.list_by_namespace(namespace))[:limit]

    async def list_by_namespace(self, namespace: str) -> Sequence[Memory]:
        wanted = clean_text(namespace)
        last_first = reversed(self._memories.values())
        return sorted(
            (memory for memory in last_first if memory.namespace == wanted),
            key=lambda memory: memory.updated_at,
            reverse=True,
        )

    async def upsert(self, memory: Memory) -> None:
        written: Memory = clean_value(memory)
        before = self._memories.get(written.memory_id)
        self._memories[written.memory_id] = written if before is None else _renewed(before, written)

    async def delete(self, memory_id: str) -> None:
        self._memories.pop(clean_text(memory_id), None)

    async def aclose(self) -> None:
        """Do nothing; what was remembered stays as long as the store."""


def _renewed(before: Memory, after: Memory) -> Memory:
    if before.content == after.content:
        return msgspec.structs.replace(before, updated_at=after.updated_at)
    return msgspec.structs.replace(
        before,
        content=after.content,
        tags=after.tags,
        source=after.source,
        updated_at=after.updated_at,
    )
