"""The root of all errors."""

from __future__ import annotations

from typing import ClassVar


class AgentError(Exception):
    """Root of the tree; `code`, `retryable` and `source_component` are the same for a class."""

    code: ClassVar[str] = "AGENT_ERROR"
    source_component: ClassVar[str] = "agent"
    retryable: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
