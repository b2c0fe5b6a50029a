"""What a turn has used so far: tokens, money, time; and the limits on spending.

Why: docs/decisions.md#57.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import SpendingLimitReached
from agent_magics.core.events import LedgerEvent, Usage
from agent_magics.core.money import Spent
from agent_magics.core.ports import Answerer, Provider, Replaying
from agent_magics.core.redact import shown_model
from agent_magics.core.values import TokenUsage
from agent_magics.session.request.incoming_answer import IncomingAnswer
from agent_magics.session.state.spending import spent_for


@dataclass(kw_only=True)
class TurnSpending:
    """Adds up the requests of one turn; `session` tells what the session has spent by now.

    `is_free`: the model is known to cost nothing, so no limit in money holds it.
    """

    config: AgentConfig
    session: Callable[[], Spent]
    is_free: bool = False
    usage: TokenUsage | None = None
    spent: Spent = field(default_factory=Spent)
    replayed_ms: int = 0
    was_asked: bool = False

    @property
    def cost_usd(self) -> float | None:
        """The turn's price in US dollars; None where a part of it isn't known."""
        # A part of a price, shown as the price, would be wrong.
        known = self.spent.requests > 0 and self.spent.priced == self.spent.requests
        return self.spent.usd if known else None

    def duration_s(self, measured_s: float) -> float:
        """Return the turn's time: the recorded one, where every answer is a replay."""
        is_replay = self.spent.replayed > 0 and not self.was_asked
        return self.replayed_ms / 1000 if is_replay else measured_s

    def add(self, answer: IncomingAnswer, events: Iterable[LedgerEvent]) -> None:
        """Take in a request whose end was recorded in `events`."""
        replayed_ms = answer.done.replayed_ms if answer.done else None
        if replayed_ms is None:
            self.was_asked = True
        else:
            self.replayed_ms += replayed_ms
        for event in events:
            if isinstance(event.payload, Usage):
                self.spent = self.spent.plus(spent_for(event.payload))
                told = event.payload.told
                if told is not None:
                    self.usage = self.usage.plus(told) if self.usage else told

    def check(self, provider: Provider, request: ChatRequest | None = None) -> None:
        """Raise `SpendingLimitReached` where a request, or any at all, could not be sent now.

        What a recording answers costs nothing, and no limit holds it.
        """
        reached = self._reached()
        if reached and not (isinstance(provider, Replaying) and provider.has_answer(request)):
            raise reached

    def admitted(self, provider: Provider, request: ChatRequest) -> Answerer:
        """Return who is to be asked: behind a reached limit that is a recorded answer, claimed.

        Raises `SpendingLimitReached` where there is none. Others may ask the same meanwhile, so
        deciding and claiming are one step.
        """
        reached = self._reached()
        if reached is None:
            return provider
        # Claimed at once: slots that ask the same in one moment would all pass by one recorded
        # answer, and all but one then pay.
        recorded = provider.claim(request) if isinstance(provider, Replaying) else None
        if recorded is None:
            raise reached
        return recorded

    def _reached(self) -> SpendingLimitReached | None:
        limits = (
            ("turn", self.config.max_cost_per_turn, self.spent),
            ("session", self.config.max_cost_per_session, self.session()),
        )
        for what, limit, spent in limits:
            reached = limit.reached_by(spent, in_money=not self.is_free) if limit else None
            if reached:
                return SpendingLimitReached(what, reached)
        return None

    def warning(self, model: str, *, is_priced: bool) -> str | None:
        """Say where a limit in money can't hold because the model's price isn't known."""
        limits = (self.config.max_cost_per_turn, self.config.max_cost_per_session)
        if is_priced or not any(limit and limit.usd is not None for limit in limits):
            return None
        return (
            f"The price of {shown_model(model)} isn't known, so a spending limit in money can't"
            ' hold it; give the limit in tokens ("200k tokens"), or its price in'
            " AgentMagics.prices."
        )
