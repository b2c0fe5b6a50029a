"""What a model streams is taken in, shown, and kept in a draft while it comes.

Why: docs/decisions.md#62.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from agent_magics.core.chat import (
    CallReady,
    ChatRequest,
    Done,
    ModelInfo,
    Notice,
    ReasoningDelta,
    Retrying,
    TextDelta,
)
from agent_magics.core.events import Draft
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import Answerer, Clock
from agent_magics.core.text import clean_text
from agent_magics.core.turns import ReasoningChunk, RetryScheduled, TextChunk, TurnNotice
from agent_magics.session.request.image_support import check_sight
from agent_magics.session.request.incoming_answer import IncomingAnswer
from agent_magics.session.request.sending import ask
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.running_turn import RunningTurn, Stopped

_DRAFT_EVERY_S = 1.0


@dataclass(kw_only=True)
class AnswerReader:
    """Listens to the answers of one turn; `tool_names` are those of its calls so far."""

    turn: RunningTurn
    recorder: Recorder
    model: ModelInfo
    clock: Clock
    tool_names: list[str] = field(default_factory=list)
    _drafted_s: float = 0.0

    async def take_in(
        self, answer: IncomingAnswer, answerer: Answerer, request: ChatRequest
    ) -> None:
        """Ask `answerer`, and fill `answer` with what comes; raises as `ask`, and `Stopped`."""
        self.turn.said.clear()
        self._drafted_s = 0.0
        # Before it is sent: a blind model's server answers with an error of its own, or describes
        # an image that it never saw.
        check_sight(self.model, request)
        # Closed on every way out, or the connection goes on receiving (and the server writing)
        # until the garbage collector comes.
        async with aclosing(ask(answerer, request)) as events:
            async for event in events:
                if self.turn.stop_wanted.is_set():  # the provider may ignore its cancel
                    raise Stopped
                if answer.first_token_s is None and isinstance(event, TextDelta | ReasoningDelta):
                    answer.first_token_s = self.clock.monotonic()
                match event:
                    case TextDelta(text=text):
                        answer.text.append(text)
                        self.turn.said.append(text)
                        self.turn.emit(TextChunk(text=text))
                        self._draft()
                    case ReasoningDelta(text=text):
                        answer.reasoning.append(text)
                        self.turn.emit(ReasoningChunk(text=text))
                    case CallReady(call=call):
                        answer.calls.append(self._own_call(call))
                    case Retrying():
                        self._note_retry(answer, event)
                    case Notice(text=text):
                        self.turn.emit(TurnNotice(text=text))
                    case Done():
                        answer.done = event

    def _draft(self) -> None:
        now_s = self.clock.monotonic()
        # The first piece is kept at once: most crashes come early.
        if self._drafted_s and now_s - self._drafted_s < _DRAFT_EVERY_S:
            return
        text = clean_text(self.turn.text_so_far)
        self.recorder.save_draft(
            Draft(slot_uid=self.turn.slot_uid, turn_id=self.turn.turn_id, text=text)
        )
        self._drafted_s = now_s

    def _own_call(self, call: ToolCall) -> ToolCall:
        """Return a call an id that is unique in its turn; servers' ids are missing or reused."""
        self.tool_names.append(call.tool_name)
        return ToolCall(
            call_id=f"call-{len(self.tool_names)}",
            tool_name=call.tool_name,
            arguments=call.arguments,
            raw=call.raw,
        )

    def _note_retry(self, answer: IncomingAnswer, event: Retrying) -> None:
        answer.note_retry(event, self.clock.monotonic())
        self.turn.emit(
            RetryScheduled(attempt=event.attempt, reason=event.reason, wait_s=event.wait_s)
        )
