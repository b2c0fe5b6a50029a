"""What a model streams is read, shown, and kept in a draft while it comes.

Why a draft: docs/decisions.md#62.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from agent_magics.core.chat import (
    CallReady,
    ChatEvent,
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
    """Reads the answers of one turn; each of its calls adds to the turn's `tool_names`."""

    turn: RunningTurn
    recorder: Recorder
    model: ModelInfo
    clock: Clock
    tool_names: list[str]
    _drafted_s: float = 0.0

    async def read(self, answer: IncomingAnswer, answerer: Answerer, request: ChatRequest) -> None:
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
                self._add(answer, event)
                self._show(event)

    def _add(self, answer: IncomingAnswer, event: ChatEvent) -> None:
        now_s = self.clock.monotonic()
        if answer.first_token_s is None and isinstance(event, TextDelta | ReasoningDelta):
            answer.first_token_s = now_s
        if isinstance(event, CallReady):
            event = CallReady(call=self._renamed(event.call))
        answer.add(event, now_s)

    def _renamed(self, call: ToolCall) -> ToolCall:
        """Give a call an id of its own in the turn; servers' ids are missing or reused."""
        self.tool_names.append(call.tool_name)
        return msgspec.structs.replace(call, call_id=f"call-{len(self.tool_names)}")

    def _show(self, event: ChatEvent) -> None:
        """Show what came; calls are shown when they run, and the end by what is recorded."""
        match event:
            case TextDelta(text=text):
                self.turn.said.append(text)
                self.turn.emit(TextChunk(text=text))
                self._save_draft()
            case ReasoningDelta(text=text):
                self.turn.emit(ReasoningChunk(text=text))
            case Retrying(attempt=attempt, reason=reason, wait_s=wait_s):
                self.turn.emit(RetryScheduled(attempt=attempt, reason=reason, wait_s=wait_s))
            case Notice(text=text):
                self.turn.emit(TurnNotice(text=text))
            case CallReady() | Done():
                pass

    def _save_draft(self) -> None:
        now_s = self.clock.monotonic()
        # The first piece is kept at once: most crashes come early.
        if self._drafted_s and now_s - self._drafted_s < _DRAFT_EVERY_S:
            return
        text = clean_text(self.turn.text_so_far)
        self.recorder.save_draft(
            Draft(slot_uid=self.turn.slot_uid, turn_id=self.turn.turn_id, text=text)
        )
        self._drafted_s = now_s
