"""What all values of ours are, and the smallest of them that everybody needs."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything that is passed between rooms: frozen, keyword-only, comparable."""


class TokenUsage(Value):
    """Tokens that a server counted for one request; `input_tokens` includes cached ones.

    None: it didn't tell that one.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def is_whole(self) -> bool:
        """Return whether both were told, so that it can be priced."""
        return self.input_tokens is not None and self.output_tokens is not None

    def plus(self, other: TokenUsage) -> TokenUsage:
        """Add two requests up; what was told of one alone counts."""
        return TokenUsage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    def __str__(self) -> str:
        """Write it as people read it: `1,412 → 230 tokens`, and `?` for what wasn't told."""
        sent, written = (
            "?" if count is None else f"{count:,}"
            for count in (self.input_tokens, self.output_tokens)
        )
        return f"{sent} → {written} tokens"


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)
