"""Memories: what lasts across sessions (seed 001 § 4.9, E16)."""

from __future__ import annotations

from datetime import datetime

from agent_magics.core.messages import Value


class Memory(Value):
    """One remembered fact; its id is unique in all namespaces.

    `source`: "checkpoint", "session:<id>" or "manual".
    """

    memory_id: str
    namespace: str
    content: str
    source: str
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
