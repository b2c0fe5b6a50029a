"""The tools by which a model reads and writes the session's facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from agent_magics.core.ports import Tool
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.tools.schema import tool

MEMORY_TOOL_NAMES = ("session_memory_set", "session_memory_get")
FactKey = Annotated[str, msgspec.Meta(description="a short name, e.g. design_decision")]
FactText = Annotated[str, msgspec.Meta(description="the fact itself, at most 4,000 characters")]


def memory_tools(memory: SessionMemory, slot_uid: str) -> Sequence[Tool]:
    """Make the tools for the turns of one slot; what they write is known as written from there.

    Neither is mutating: they change nothing outside the session.
    """

    @tool
    async def session_memory_set(key: FactKey, value: FactText) -> str:
        """Note a fact that all slots of this session should know: a decision, a path, a name.

        It stands in <session-context> of every next request. An existing key is overwritten.
        """
        await memory.write(key, value, slot_uid=slot_uid)
        return f"noted {key}"

    @tool
    async def session_memory_get(key: FactKey) -> str:
        """Read one fact of this session by its key."""
        found = await memory.get(key)
        if found is not None:
            return found
        known = ", ".join(await memory.items())
        return f'There is no fact "{key}". Known: {known or "none"}.'

    return (session_memory_set, session_memory_get)
