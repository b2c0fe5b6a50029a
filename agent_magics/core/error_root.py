"""The root of all errors, and the words that their sentences are made of."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

MAX_SAID_CHARACTERS = 10_000


class AgentError(Exception):
    """Root of the tree; `code`, `retryable` and `source_component` are the same for a class."""

    code: ClassVar[str] = "AGENT_ERROR"
    source_component: ClassVar[str] = "agent"
    retryable: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def quoted(name: str) -> str:
    """Write a name as it is typed behind a magic."""
    return f'"{name}"' if " " in name else name


def listed(names: Sequence[str]) -> str:
    """Name them all."""
    return ", ".join(names) if names else "none"


def near(name: str, known: Sequence[str], *, behind: str = "") -> str:
    """Ask, after a sentence, whether the nearest was meant; "" where none is near.

    `behind` is what was written behind the name.
    """
    found = get_close_matches(name, known, n=1)
    return f" Did you mean {found[0]}{behind}?" if found else ""


def said_by(error: BaseException) -> str:
    """Name an exception and what it says, whatever a foreign one's own `__str__` does."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - foreign code
        text = ""
    if len(text) > MAX_SAID_CHARACTERS:
        text = f"{text[:MAX_SAID_CHARACTERS]}…"
    return f"{name}: {text}" if text else name
