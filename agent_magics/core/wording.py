"""The words that sentences of errors are made of: names, lists, what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

MAX_SAID_CHARACTERS = 10_000


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
