"""Memories: what lasts across sessions."""

from __future__ import annotations

from datetime import datetime

from agent_magics.core.keys import holds_secret
from agent_magics.core.values import Value

MAX_MEMORY_CHARACTERS = 1_000


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


def memory_fault(content: str) -> str | None:
    """Say why `content` is not remembered, as the end of a sentence; None where it may be."""
    if not content.strip():
        return "it is blank"
    if len(content) > MAX_MEMORY_CHARACTERS:
        return f"it has {len(content):,} characters, and {MAX_MEMORY_CHARACTERS:,} are allowed"
    if holds_secret(content):
        return "it looks like a key or a password, and secrets are never remembered"
    return None
