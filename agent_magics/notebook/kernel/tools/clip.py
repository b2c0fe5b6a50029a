"""Long output, shortened in its middle: the end says as much as the beginning."""

from __future__ import annotations

MARK = "\n[… {left_out:,} characters left out …]\n"


def clipped(text: str, limit: int) -> str:
    """Keep about `limit` characters: two thirds from the beginning, one from the end."""
    if len(text) <= limit:
        return text
    head = 2 * limit // 3
    tail = limit - head
    return f"{text[:head]}{MARK.format(left_out=len(text) - limit)}{text[-tail:]}"
