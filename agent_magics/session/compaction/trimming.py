"""What is left out of a running turn's requests, in their copy only (docs/decisions.md#10).

Between the calls of a turn nothing is committed: the turn must go on seeing what it began with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_magics.core.slots import Slot
from agent_magics.session.compaction.shortening import Shortener
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.request.request_builder import PreparedRequest

OLD_TURNS_LEFT_OUT = "Older turns are left out of this turn's next requests, to make room."
ITERATIONS_LEFT_OUT = (
    "Older turns and the first tool calls of this turn are left out of its next requests, to make"
    " room; the log keeps them all."
)


@dataclass(kw_only=True)
class RequestTrimmer:
    """Trims the later requests of one turn.

    `starts_at`: the seq where the turn's own iterations begin in them. `ceiling`: what a server
    refused in this turn isn't tried again, so no request may have more tokens.
    """

    next_request: NextRequest
    shortener: Shortener
    warn: Callable[[str], None]
    starts_at: int | None = None
    ceiling: int | None = None
    _warned: set[str] = field(default_factory=set)

    def trim(
        self, slot: Slot, prepared: PreparedRequest, limit_tokens: int, most_tokens: int
    ) -> PreparedRequest:
        """Leave out old turns in this request only; a checkpoint comes with the next turn.

        Where it has over `most_tokens` even without them, the turn's own oldest iterations go.
        """
        if self.ceiling is not None:
            limit_tokens = min(limit_tokens, self.ceiling)
            most_tokens = min(most_tokens, self.ceiling)
        if prepared.info.used <= limit_tokens and self.starts_at is None:
            return prepared
        made = self.shortener.without_turns(slot, limit_tokens)
        shorter = self.next_request.build(slot, made) if made else prepared
        if shorter.info.used > most_tokens or self.starts_at is not None:
            return self._without_iterations(slot, shorter, limit_tokens, most_tokens)
        if made is not None:
            self._warn_once(OLD_TURNS_LEFT_OUT)
        return shorter

    def _without_iterations(
        self, slot: Slot, shorter: PreparedRequest, limit_tokens: int, most_tokens: int
    ) -> PreparedRequest:
        """Leave out iterations of the running turn in this request, and in those that follow.

        Where they begin moves only when it must, so that requests go on having the same start.
        """
        since = self.starts_at or 0
        made = self.shortener.without_iterations(slot, most_tokens, since=since)
        # The start has to move anyway, so it moves far enough for the requests that follow to keep
        # it, and the server its cached prefix.
        if made is not None and made.first_retained_seq != since:
            made = self.shortener.without_iterations(slot, limit_tokens, since=since)
        if made is None:
            return shorter
        self.starts_at = made.first_retained_seq
        self._warn_once(ITERATIONS_LEFT_OUT)
        return self.next_request.build(slot, made)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)
