"""What a session remembers of its questions about tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agent_magics.core.approval import EVERY_TOOL
from agent_magics.core.ports import Approver


class Approvals:
    """Asks one question at a time, and knows which tools are always allowed."""

    def __init__(self, approver: Approver | None) -> None:
        self.approver = approver
        self.asking = asyncio.Lock()
        self.always: set[str] = set()

    def forget(self, names: Iterable[str]) -> None:
        """Ask again for these tools: somebody has said anew how they are approved."""
        named = set(names)
        self.always = set() if EVERY_TOOL in named else self.always - named
