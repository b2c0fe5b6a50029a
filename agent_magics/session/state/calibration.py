"""How far our token estimates are from what servers count, learnt per model."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from agent_magics.core.events import LedgerEvent, Usage

REMEMBERED = 8
LEAST_TOKENS = 200  # under that, what a server adds around messages outweighs the words
HIGHEST_FACTOR = 4.0


class TokenCalibration:
    """Factors by model spec, for one slot.

    Never under 1: an estimate that is too high only compacts early.
    """

    def __init__(self, events: Iterable[LedgerEvent] = ()) -> None:
        self._ratios: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._measured: dict[str, tuple[str, int]] = {}
        for event in events:
            if isinstance(event.payload, Usage):
                self.learn(event.payload)

    def learn(self, usage: Usage) -> None:
        """Take in what a server counted for one request."""
        if usage.input_tokens is None:
            return
        spec = f"{usage.provider}:{usage.model}"
        self._measured[spec] = (usage.digest, usage.input_tokens)
        if usage.estimated_input_tokens >= LEAST_TOKENS:
            estimate = usage.estimated_input_tokens
            self._ratios[spec].append(usage.input_tokens / estimate)

    def learn_overflow(self, spec: str, *, used: int, estimated: int) -> None:
        """Take in the count of a request that a server refused."""
        if estimated >= LEAST_TOKENS:
            self._ratios[spec].append(used / estimated)

    def factor(self, spec: str) -> float:
        """Return what an estimate is multiplied by: the largest ratio lately seen, from 1 to 4."""
        # The largest, not the mean: too high compacts early, too low is refused by the server.
        # Above 4 it is the server's count that is wrong.
        return min(HIGHEST_FACTOR, max(1.0, *self._ratios[spec], 1.0))

    def measured(self, spec: str, digest: str) -> int | None:
        """Return a server's count of exactly this request, if it is the last that was counted."""
        known = self._measured.get(spec)
        return known[1] if known is not None and known[0] == digest else None

    def last_measured(self, spec: str) -> int | None:
        """Return the server's count of the last request to this model."""
        known = self._measured.get(spec)
        return known[1] if known else None
