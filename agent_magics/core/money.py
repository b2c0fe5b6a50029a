"""What requests cost: prices, sums that keep unknown apart from nothing, and limits.

Why: docs/decisions.md#57.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Protocol

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.redact import shown_model
from agent_magics.core.values import TokenUsage, Value

_LIMIT = re.compile(
    r"\s*(?:(?:\$|usd)?\s*(?P<usd>\d+(?:\.\d+)?)(?:\s*(?:\$|usd))?"
    r"|(?P<tokens>\d+(?:\.\d+)?)\s*(?P<unit>[km]?)\s*tokens?)\s*",
    re.IGNORECASE,
)
_Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
_CENTS, _LEAST_SHOWN = 0.1, 0.0001
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class Price(Value):
    """US dollars per million tokens. `cached` None: cached input costs what other input costs."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: TokenUsage) -> float:
        """Price one request; tokens that weren't told are none."""
        cached = self.input if self.cached is None else self.cached
        sent, written = usage.input_tokens or 0, usage.output_tokens or 0
        fresh = max(0, sent - usage.cached_tokens)
        millionths = fresh * self.input + usage.cached_tokens * cached + written * self.output
        return millionths / 1_000_000


def dollars(usd: float) -> str:
    """Write an amount as people read it: `$3.10`, `$0.004`, and the least as `<$0.0001`."""
    if round(usd, 3) >= _CENTS:
        return f"${usd:,.2f}"
    if usd >= _LEAST_SHOWN:
        return f"${usd:.2g}"
    return "<$0.0001" if usd else "$0"


def tokens_short(tokens: int) -> str:
    """Write a number of tokens in three digits: `812`, `88.1 k`, `1.24 M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if tokens >= size:
            return f"{tokens / size:.3g} {unit}"
    return str(tokens)


def percent(share: float) -> str:
    """Write a share from 0 to 1 as people read it: `71 %`."""
    return f"{100 * share:.0f} %"


class Prices(Protocol):
    """Knows what models cost."""

    def price_of(self, provider: str, model: str, usage: TokenUsage) -> float | None:
        """Price one request in US dollars; None where the price isn't known, never 0 for that."""
        ...


class KnownPrices:
    """Prices that a person gave, by model spec or `provider:*`, before those of `others`."""

    def __init__(self, given: Mapping[str, Price], others: Prices | None = None) -> None:
        self._given = dict(given)
        self._others = others

    def price_of(self, provider: str, model: str, usage: TokenUsage) -> float | None:
        # The more exact one first; a person's word stands before any list, which may be out of
        # date.
        for spec in (f"{provider}:{model}", f"{provider}:*"):
            if spec in self._given:
                return self._given[spec].of(usage)
        return self._others.price_of(provider, model, usage) if self._others else None


class Spent(Value):
    """A sum of requests. `usd` is of those whose price is known; `unpriced_tokens` of the others.

    `uncounted` are requests of which a server didn't tell all tokens; `estimated_tokens` and
    `estimated_usd` are our estimate of what it didn't tell where something came, for limits alone.
    Cached tokens are part of the input.
    `replayed` requests came from a recording and stand nowhere else: they cost nothing.
    """

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    priced: int = 0
    unpriced_tokens: int = 0
    uncounted: int = 0
    estimated_tokens: int = 0
    replayed: int = 0
    estimated_usd: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def cached_share(self) -> float:
        """How much of the input was cached, from 0 to 1."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0

    @property
    def price(self) -> str:
        """Say what it cost: `$3.10`, `not known`, `$3.10 and more` where a part isn't known."""
        if not self.requests:
            return ""
        if not self.priced:
            return "not known"
        # A sum that leaves something out must say so, or it is read as the whole.
        return dollars(self.usd) + ("" if self.priced == self.requests else " and more")

    def plus(self, other: Spent) -> Spent:
        """Add two sums."""
        return Spent(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )


def read_prices(given: Mapping[str, object]) -> dict[str, Price]:
    """Read prices by model spec, dollars per million tokens: `[input, output]`, or with `cached`.

    Raises `InputValidation`.
    """
    return {spec: _price(spec, numbers) for spec, numbers in given.items()}


def _price(spec: str, numbers: object) -> Price:
    if not all(str(spec).partition(":")):
        raise InputValidation(
            f'The price of "{shown_model(str(spec))}" names no provider; write "provider:model", or'
            ' "provider:*" for all of its models.'
        )
    try:
        return msgspec.convert(numbers, _Numbers).price
    except (msgspec.ValidationError, ValueError) as error:
        raise InputValidation(
            f'The price of "{shown_model(spec)}" is {numbers!r:.60}; write dollars per million'
            " tokens as [input, output] or [input, output, cached input]."
        ) from error


class _Numbers(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None

    @property
    def price(self) -> Price:
        return Price(input=self.input, output=self.output, cached=self.cached)


class SpendingLimit(Value):
    """The most that may be spent: US dollars, tokens (input and output together), or both."""

    usd: float | None = None
    tokens: int | None = None

    @classmethod
    def read(cls, text: str) -> SpendingLimit | None:
        """Read `0.50`, `$2`, `200k tokens`; None for a blank. Raises `InputValidation`."""
        if not text.strip():
            return None
        found = _LIMIT.fullmatch(text)
        if found is None:
            raise InputValidation(
                f'The spending limit "{text}" can\'t be read; write money as "$0.50" or tokens as'
                ' "200k tokens".'
            )
        if not math.isfinite(float(found["usd"] or found["tokens"])):
            raise InputValidation("No spending can reach that limit; write a smaller one.")
        if found["usd"]:
            return cls(usd=float(found["usd"]))
        return cls(tokens=round(float(found["tokens"]) * _UNITS[found["unit"].lower()]))

    def reached_by(self, spent: Spent, *, in_money: bool = True) -> str | None:
        """Say which limit a sum has reached; None: there is room left.

        Without `in_money` only tokens hold: what is asked next costs nothing.
        """
        # Limits count the estimate too: a server that never counts would otherwise have no limit at
        # all.
        usd = spent.usd + spent.estimated_usd
        if in_money and self.usd is not None and usd >= self.usd:
            about = "about " if spent.estimated_usd else ""
            return f"{about}{dollars(usd)} of {dollars(self.usd)}"
        tokens = spent.tokens + spent.estimated_tokens
        if self.tokens is not None and tokens >= self.tokens:
            about = "about " if spent.estimated_tokens else ""
            return f"{about}{tokens:,} of {self.tokens:,} tokens"
        return None
