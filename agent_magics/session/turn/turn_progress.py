"""What a turn has come to so far, and the reply that can be made of it at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import AssistantMessage, LedgerEvent
from agent_magics.core.ports import Clock
from agent_magics.core.turns import Reply
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.request.turn_spending import TurnSpending
from agent_magics.session.state.running_turn import RunningTurn


@dataclass(kw_only=True)
class TurnProgress:
    """The last request and the last words of one turn, what it called and what it cost.

    `calls_made` counts the calls that were taken on, `tool_names` has every call of the model.
    """

    turn: RunningTurn
    model: ModelInfo
    clock: Clock
    spending: TurnSpending
    began_s: float
    calls_made: int = 0
    tool_names: list[str] = field(default_factory=list)
    last_request: PreparedRequest | None = None
    last_text: str = ""
    last_seq: int | None = None

    def note_answer(self, text: str, events: Sequence[LedgerEvent]) -> None:
        """Remember the last words, which have been recorded in `events`."""
        self.turn.said.clear()  # what streamed is history now
        self.last_text = text
        self.last_seq = next(
            (event.seq for event in events if isinstance(event.payload, AssistantMessage)), None
        )

    def reply(self) -> Reply:
        """Return the reply as it stands now, complete or not."""
        info = self.last_request.info if self.last_request else None
        return Reply(
            text=self.last_text,
            seq=self.last_seq,
            slot_id=self.turn.slot_id,
            turn_id=self.turn.turn_id,
            model=self.model.spec,
            tool_calls=tuple(self.tool_names),
            usage=self.spending.usage,
            cost_usd=self.spending.cost_usd,
            duration_s=self.spending.duration_s(self.clock.monotonic() - self.began_s),
            context_tokens=info.used if info else 0,
            context_window=info.limits.window if info else 0,
            context_threshold=info.limits.threshold if info else 0,
        )
