"""The record of one turn: each of its steps becomes events of the ledger, in one transaction.

A step that was written in two could be cut in two by a crash: a call without the answer that asked
for it, an answer without what it cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.events import (
    AssistantMessage,
    IncompleteCause,
    LedgerEvent,
    NewEvent,
    Payload,
)
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import Change, Clock
from agent_magics.core.text import clean_text
from agent_magics.session.request.answer_events import (
    call_event,
    message_event,
    retry_events,
    usage_event,
    with_estimate,
)
from agent_magics.session.request.incoming_answer import IncomingAnswer
from agent_magics.session.request.sending import detail_of
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.running_turn import RunningTurn

# Why an answer that ends its turn is incomplete though the model said all that it wanted.
CLOSING: tuple[IncompleteCause, ...] = ("limit reached", "ended by a plugin")


@dataclass(kw_only=True)
class TurnRecord:
    """Writes the events of one turn. `has_ended`: the last of them says why the turn failed."""

    turn: RunningTurn
    recorder: Recorder
    model: ModelInfo
    clock: Clock
    has_ended: bool = False

    async def write(
        self, payloads: Sequence[Payload], *, title: str | None = None
    ) -> tuple[LedgerEvent, ...]:
        """Write events that belong together; `title` becomes the session's with them."""
        events = tuple(self._event(payload) for payload in payloads)
        return await self.recorder.commit(Change(events=events, title=title))

    async def write_refused(self, answer: IncomingAnswer) -> tuple[LedgerEvent, ...]:
        """Write what a request cost that is sent once more, shorter; the turn's draft stays."""
        return await self._write_answer(answer, [], ends_draft=False)

    async def write_answer(
        self,
        answer: IncomingAnswer,
        text: str,
        calls: Sequence[ToolCall],
        cause: IncompleteCause | None,
    ) -> tuple[LedgerEvent, ...]:
        """Write an answer and the calls of it that are to run; with a `cause` it is incomplete."""
        message = message_event(answer, self.model, text, cause)
        events = await self._write_answer(
            answer, [message, *map(call_event, calls)], ends_draft=True
        )
        self.has_ended = self.has_ended or cause in CLOSING
        return events

    async def write_failed(
        self, answer: IncomingAnswer, error: Exception
    ) -> tuple[LedgerEvent, ...]:
        """Write what had come of an answer that failed, and why it did."""
        is_lost = isinstance(error, ProviderError) and error.kind == "interrupted"
        cause: IncompleteCause = "connection lost" if is_lost else "failed"
        message = message_event(answer, self.model, answer.full_text, cause, detail_of(error))
        events = await self._write_answer(answer, [message], ends_draft=True)
        self.has_ended = True
        return events

    async def write_end(self, cause: IncompleteCause, detail: str = "") -> None:
        """Write that the turn ended where no answer of its says so."""
        ending = AssistantMessage(
            content=(),
            status="incomplete",
            cause=cause,
            detail=clean_text(detail),
            provider=self.model.provider,
            model=self.model.name,
        )
        await self._commit([self._event(ending)], ends_draft=True)

    async def _write_answer(
        self, answer: IncomingAnswer, said: Sequence[Payload], *, ends_draft: bool
    ) -> tuple[LedgerEvent, ...]:
        """Write the attempts that failed, what was said, and last what the request cost."""
        retries = retry_events(answer, self.model, "turn")
        events = [self._event(payload) for payload in (*retries, *said)]
        usage = usage_event(answer, self.model, "turn", self.clock.monotonic())
        if usage is not None:
            # Last, as an estimate adds up the tokens of the events before it.
            events.append(self._event(with_estimate(usage, answer, events)))
        return await self._commit(events, ends_draft=ends_draft)

    async def _commit(
        self, events: Sequence[NewEvent], *, ends_draft: bool
    ) -> tuple[LedgerEvent, ...]:
        # The draft goes in the transaction that brings the answer: a crash between the two would
        # leave the text twice, or not at all.
        draft = (self.turn.slot_uid, self.turn.turn_id) if ends_draft else None
        return await self.recorder.commit(Change(events=tuple(events), ends_draft=draft))

    def _event(self, payload: Payload) -> NewEvent:
        return self.recorder.event(payload, slot_uid=self.turn.slot_uid, turn_id=self.turn.turn_id)
