"""One request of a turn: made to fit, sent, shortened and sent once more, its answer recorded.

Each stage calls the next, in the order in which they stand here: `ask` →
`_send_handling_refusal` → `_send_holding_steering` → `_send_single_request` → the record.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Literal

from agent_magics.core.errors import ContextOverflow, ProviderError
from agent_magics.core.events import IncompleteCause
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import Provider
from agent_magics.core.turns import UsageReported
from agent_magics.session.compaction.request_fitter import Admit, RequestFitter
from agent_magics.session.request.answer_reader import AnswerReader
from agent_magics.session.request.incoming_answer import IncomingAnswer
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.request.sending import is_curable, with_choice
from agent_magics.session.state.running_turn import RunningTurn, Stopped
from agent_magics.session.turn.turn_progress import TurnProgress
from agent_magics.session.turn.turn_record import CLOSING, TurnRecord

NOTHING = "(the model returned nothing)"


class _Refused(Exception):
    """A server refused a request for its length, before it said a word."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, kw_only=True)
class RequestStage:
    """Asks the model of one turn, request after request."""

    turn: RunningTurn
    provider: Provider
    request_fitter: RequestFitter
    answer_reader: AnswerReader
    record: TurnRecord
    progress: TurnProgress
    warn: Callable[[str], None]

    async def ask(self, closing: IncompleteCause | None = None) -> IncomingAnswer:
        """Make the next request fit, send it, and return the recorded answer.

        `closing`: it is the turn's last, without tools, and this is why. Raises `Stopped`, what
        the fitter raises, `SpendingLimitReached`, and what the provider raises.
        """
        if self.turn.stop_wanted.is_set():
            await self.record.write_end("stopped")
            raise Stopped
        # Before it is made to fit: a compaction may cost a request of its own.
        self.progress.spending.check(self.provider)
        prepared = await self._unless_stopped(self.request_fitter.fit_next(self._admit(closing)))
        return await self._send_handling_refusal(prepared, closing)

    async def _send_handling_refusal(
        self, prepared: PreparedRequest, closing: IncompleteCause | None
    ) -> IncomingAnswer:
        """Send a request; one that a server refuses for its length is shortened and sent again."""
        try:
            return await self._send_holding_steering(prepared, closing, may_shorten=True)
        # At most once: a server that refuses the shorter request too would be asked for ever.
        except _Refused as refused:
            error = refused.error
        if isinstance(error, ContextOverflow):
            tools_ran = self.progress.calls_made > 0
            fitting = self.request_fitter.fit_after_overflow(
                prepared, error, self._admit(closing), tools_ran=tools_ran
            )
            shorter = await self._unless_stopped(fitting)
        else:
            shorter = self.request_fitter.with_less_output(prepared, error)
        return await self._send_holding_steering(shorter, closing, may_shorten=False)

    async def _send_holding_steering(
        self, prepared: PreparedRequest, closing: IncompleteCause | None, *, may_shorten: bool
    ) -> IncomingAnswer:
        """Send a request, and record what steers the turn meanwhile only behind its answer."""
        # The answer doesn't know of it: before the answer it would look answered.
        self.turn.between_requests.clear()
        try:
            return await self._send_single_request(prepared, closing, may_shorten=may_shorten)
        finally:
            self.turn.between_requests.set()

    async def _send_single_request(
        self, prepared: PreparedRequest, closing: IncompleteCause | None, *, may_shorten: bool
    ) -> IncomingAnswer:
        """Send one request and record how it ended; `_Refused` where a shorter one may help."""
        request = with_choice(prepared.request, _choice(closing))
        answerer = self.progress.spending.admitted(self.provider, request)
        self.progress.last_request = prepared
        answer = IncomingAnswer(
            began_s=self.record.clock.monotonic(),
            estimated_tokens=prepared.info.estimate,
            digest=prepared.digest,
        )
        try:
            await self.turn.unless_stopped(self.answer_reader.read(answer, answerer, request))
        except Stopped:
            await self._record_answer(answer, "stopped")
            raise
        except Exception as error:  # a provider is foreign code
            answer.note_failure(error)
            # Where text has been shown already, a second request would say it again differently.
            if may_shorten and is_curable(error) and not answer.text:
                self.progress.spending.add(answer, await self.record.write_refused(answer))
                raise _Refused(error) from error
            if isinstance(error, ContextOverflow):
                diagnosis = self.request_fitter.diagnosis(prepared, error)
                await self._record_failed(answer, diagnosis)
                raise diagnosis from error
            await self._record_failed(answer, error)
            raise
        await self._record_answer(answer, closing)
        return answer

    async def _record_answer(self, answer: IncomingAnswer, cause: IncompleteCause | None) -> None:
        if cause is None and answer.done and answer.done.finish == "length":
            cause = "cut by length"
            self.warn("The answer was cut at the model's output limit; ask it to go on.")
        calls = _executable(answer, cause)
        text = answer.full_text
        if cause in (None, *CLOSING) and not text.strip() and not calls:
            text = NOTHING
            self.warn("The model returned nothing.")
        events = await self.record.write_answer(answer, text, calls, cause)
        self.progress.spending.add(answer, events)
        self.progress.note_answer(text, events)
        for warning in answer.done.warnings if answer.done else ():
            self.warn(warning)
        if answer.done and answer.done.usage:
            self.turn.emit(UsageReported(usage=answer.done.usage))

    async def _record_failed(self, answer: IncomingAnswer, error: Exception) -> None:
        events = await self.record.write_failed(answer, error)
        self.progress.spending.add(answer, events)
        self.progress.note_answer(answer.full_text, events)

    def _admit(self, closing: IncompleteCause | None) -> Admit:
        return lambda prepared: self.progress.spending.check(
            self.provider, with_choice(prepared.request, _choice(closing))
        )

    async def _unless_stopped(
        self, fitting: Coroutine[None, None, PreparedRequest]
    ) -> PreparedRequest:
        """Wait for a request that fits; a stop meanwhile is recorded, as no answer will say it."""
        try:
            return await self.turn.unless_stopped(fitting)
        except Stopped:
            await self.record.write_end("stopped")
            raise


def _choice(closing: IncompleteCause | None) -> Literal["auto", "none"]:
    return "none" if closing else "auto"


def _executable(answer: IncomingAnswer, cause: IncompleteCause | None) -> list[ToolCall]:
    """Return the calls that may run: those of an answer that the model finished by itself."""
    # Calls of an answer that was stopped or withheld were never finished; running them would do
    # what nobody decided.
    return answer.calls if cause in (None, "cut by length") else []
