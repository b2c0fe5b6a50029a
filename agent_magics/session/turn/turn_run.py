"""The turn engine: hooks, skills, user message; request, answer, calls, results, again; hooks.

What happened is recorded before it is shown as done. A stop never cancels this coroutine: it
sets `turn.stop_wanted`, and the engine ends by itself with everything recorded
(docs/decisions.md#11).
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    AgentError,
    ContextOverflow,
    InternalPanic,
    MaxToolCallsExceeded,
    ProviderError,
    StoreError,
)
from agent_magics.core.events import (
    AssistantMessage,
    IncompleteCause,
    LedgerEvent,
    NewEvent,
    Origin,
    Payload,
    SystemMessage,
    Usage,
    UserMessage,
)
from agent_magics.core.hooks import TurnEnding
from agent_magics.core.messages import ToolCall, UserInput
from agent_magics.core.ports import Change, Clock, Provider
from agent_magics.core.skills import Skill
from agent_magics.core.slots import Slot
from agent_magics.core.text import clean_text
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    ErrorNoted,
    Failed,
    Panicked,
    Reply,
    TurnOutcome,
    TurnStarted,
    TurnWarning,
    UsageReported,
)
from agent_magics.session.compaction.request_fitter import RequestFitter
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.memory.remembering import TurnMemories
from agent_magics.session.request.answer_reader import AnswerReader
from agent_magics.session.request.incoming_answer import IncomingAnswer, called, with_estimate
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.request.sending import detail_of, is_curable, with_choice
from agent_magics.session.request.turn_spending import TurnSpending
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.references import References
from agent_magics.session.state.running_turn import ANSWERING, RunningTurn, Stopped
from agent_magics.session.turn.tool_stage import ToolStage
from agent_magics.session.turn.turn_hooks import TurnHooks
from agent_magics.tools.dispatch import Dispatcher

NOTHING = "(the model returned nothing)"
LIMIT_NOTICE = (
    "[TOOL_LIMIT_REACHED] You have reached the maximum number of tool calls ({limit}) for this"
    " turn. You MUST NOT call any more tools. Summarize your progress and give a final response."
)
CLOSING: tuple[IncompleteCause, ...] = ("limit reached", "ended by a plugin")
_log = logging.getLogger("agent_magics.session")


class _Refused(Exception):
    """A server refused a request for its length, before it said a word."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(kw_only=True)
class TurnRun:
    """One turn while it runs: what it started with and what it has made so far."""

    turn: RunningTurn
    slot: Slot
    recorder: Recorder
    request_fitter: RequestFitter
    hooks: HookScope
    skills: tuple[Skill, ...]
    references: References
    memories: TurnMemories
    dispatcher: Dispatcher
    provider: Provider
    model: ModelInfo
    config: AgentConfig
    clock: Clock
    turn_index: int
    origin: Origin | None = None
    title: str | None = None
    calls_made: int = 0
    warnings: list[str] = field(default_factory=list)
    last: PreparedRequest | None = None
    last_text: str = ""
    last_seq: int | None = None
    began_s: float = 0.0
    has_ended: bool = False
    spending: TurnSpending = field(init=False)
    answer_reader: AnswerReader = field(init=False)
    plugins: TurnHooks = field(init=False)
    tools: ToolStage = field(init=False)

    def __post_init__(self) -> None:
        self.spending = TurnSpending(
            config=self.config,
            session=lambda: self.recorder.loaded.spent,
            is_free=self.recorder.is_free(self.model.provider, self.model.name),
        )
        self.answer_reader = AnswerReader(
            turn=self.turn,
            recorder=self.recorder,
            model=self.model,
            clock=self.clock,
        )
        self.plugins = TurnHooks(turn=self.turn, scope=self.hooks)
        self.tools = ToolStage(turn=self.turn, dispatcher=self.dispatcher, record=self._record)

    async def run(self, given: UserInput) -> TurnOutcome:
        """Run to the end and tell how it ended; raises nothing but the loop's own cancel."""
        ANSWERING.set(self.slot.slot_id)
        self.began_s = self.clock.monotonic()
        outcome = await self._outcome(given)
        await self.memories.after(outcome)
        return await self._told(outcome)

    async def _outcome(self, given: UserInput) -> TurnOutcome:
        try:
            await self._open(given)
            await self._converse()
        except Stopped:
            return Cancelled(reply=self._reply())
        except AgentError as error:
            await self._close_after(error)
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - a provider or tool is foreign code
            _log.error("turn %s panicked: %s", self.turn.turn_id, type(error).__name__)
            await self._close_after(error)
            return Panicked(error=error, reply=self._reply())
        return Completed(reply=self._reply(), warnings=tuple(self.warnings))

    async def _open(self, given: UserInput) -> None:
        """Let plugins have their say, then record the prompt and the skills that it calls."""
        self.turn.emit(TurnStarted(model=self.model.spec, turn_index=self.turn_index))
        sections = await self.plugins.sections(given)
        sections += await self.memories.sections(given)
        self.references.keep(self.turn.turn_id, self.slot.uid, sections)
        called = [SystemMessage(text=skill.prompt_template, note="skill") for skill in self.skills]
        message = UserMessage(content=given.content, origin=self.origin)
        # Skills and prompt in one transaction: a prompt without the skill that it calls would be
        # answered wrongly after a crash.
        await self._record([*called, message], title=self.title)
        # Only now a stop has something to be recorded behind, and steering something to stand
        # behind.
        self.turn.has_begun.set()
        priced = self.recorder.is_priced(self.model.provider, self.model.name)
        unheld = self.spending.warning(self.model.spec, is_priced=priced)
        if unheld and self.recorder.is_first_of(self.model.spec):
            self._warn(unheld)

    async def _told(self, outcome: TurnOutcome) -> TurnOutcome:
        """Tell the plugins that the turn has ended; one that says no makes it fail."""
        if not self.turn.has_begun.is_set():
            return outcome
        error = outcome.error if isinstance(outcome, Failed | Panicked) else None
        ending = TurnEnding(
            assistant_output=self.last_text,
            tool_calls_count=self.calls_made,
            cancelled=isinstance(outcome, Cancelled),
            error_code=None if error is None else getattr(error, "code", InternalPanic.code),
        )
        refused = await self.plugins.refusal(ending)
        return outcome if refused is None or error is not None else self._failed(refused)

    def _failed(self, error: AgentError) -> TurnOutcome:
        if isinstance(error, InternalPanic):
            return Panicked(error=error, reply=self._reply())
        return Failed(error=error, reply=self._reply())

    async def _converse(self) -> None:
        is_told = False
        while True:
            answer = await self._ask()
            if not is_told:  # a model has answered to it
                self.references.mark_seen(self.slot.uid)
                is_told = True
            if not answer.calls:
                # A word that came while the last answer streamed was in no request: the turn isn't
                # over.
                if self.last and await self.turn.unheard(self.last.request.messages):
                    continue
                return
            if self.calls_made + len(answer.calls) > self.config.max_tool_calls_per_turn:
                await self._close_at_limit(answer.calls)
            aborted = await self._run_tools(answer.calls)
            if aborted is not None:
                await self._close_with(aborted, "ended by a plugin")

    async def _ask(self, closing: IncompleteCause | None = None) -> IncomingAnswer:
        """Send the next request; one that is too long is shortened and sent once more.

        `closing`: it is the turn's last, without tools, and this is why.
        """
        await self._stop_if_wanted()
        self.spending.check(self.provider)
        choice: Literal["auto", "none"] = "none" if closing else "auto"
        self.request_fitter.admit = lambda prepared: self.spending.check(
            self.provider, with_choice(prepared.request, choice)
        )
        prepared = await self._unless_stopped(self.request_fitter.prepared())
        try:
            return await self._attempt(prepared, closing, is_last=False)
        # At most once: a server that refuses the shorter request too would be asked for ever.
        except _Refused as refused:
            error = refused.error
        if isinstance(error, ContextOverflow):
            shorter = await self._unless_stopped(
                self.request_fitter.after_overflow(prepared, error, tools_ran=self.calls_made > 0)
            )
        else:
            shorter = self.request_fitter.with_less_output(prepared, error)
        return await self._attempt(shorter, closing, is_last=True)

    async def _unless_stopped(
        self, fitting: Coroutine[Any, Any, PreparedRequest]
    ) -> PreparedRequest:
        try:
            return await self.turn.unless_stopped(fitting)
        except Stopped:
            await self._record([self._ending("stopped")])
            raise

    async def _attempt(
        self, prepared: PreparedRequest, closing: IncompleteCause | None, *, is_last: bool
    ) -> IncomingAnswer:
        self.turn.between_requests.clear()  # what steers meanwhile stands behind the answer
        try:
            return await self._attempted(prepared, closing, is_last=is_last)
        finally:
            self.turn.between_requests.set()

    async def _attempted(
        self, prepared: PreparedRequest, closing: IncompleteCause | None, *, is_last: bool
    ) -> IncomingAnswer:
        request = with_choice(prepared.request, "none" if closing else "auto")
        answerer = self.spending.admitted(self.provider, request)
        self.last = prepared
        answer = IncomingAnswer(
            began_s=self.clock.monotonic(),
            estimated_tokens=prepared.info.estimate,
            digest=prepared.digest,
        )
        try:
            await self.turn.unless_stopped(self.answer_reader.take_in(answer, answerer, request))
        except Stopped:
            await self._record_answer(answer, "stopped")
            raise
        except Exception as error:  # a provider is foreign code
            answer.note_failure(error)
            # Where text has been shown already, a second request would say it again differently.
            if not is_last and is_curable(error) and not answer.text:
                self.spending.add(
                    answer,
                    await self._record([*self._retries(answer), *self._spent(answer)], of=answer),
                )
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
        text, calls = answer.said, answer.calls
        if cause is None and answer.done and answer.done.finish == "length":
            cause = "cut by length"
            self._warn("The answer was cut at the model's output limit; ask it to go on.")
        # Calls of an answer that was stopped or withheld were never finished; running them would do
        # what nobody decided.
        executable = calls if cause in (None, "cut by length") else []
        if cause in (None, *CLOSING) and not text.strip() and not executable:
            text = NOTHING
            self._warn("The model returned nothing.")
        message = answer.message(self.model, text, cause)
        payloads: list[Payload] = [*self._retries(answer), message]
        payloads += [called(call) for call in executable]
        payloads += self._spent(answer)
        events = await self._record(payloads, of=answer, ends_draft=True)
        self.spending.add(answer, events)
        self._note_said(text, events)
        for warning in answer.done.warnings if answer.done else ():
            self._warn(warning)
        if answer.done and answer.done.usage:
            self.turn.emit(UsageReported(usage=answer.done.usage))

    async def _record_failed(self, answer: IncomingAnswer, error: Exception) -> None:
        is_lost = isinstance(error, ProviderError) and error.kind == "interrupted"
        cause: IncompleteCause = "connection lost" if is_lost else "failed"
        message = answer.message(self.model, answer.said, cause, detail=detail_of(error))
        payloads: list[Payload] = [*self._retries(answer), message, *self._spent(answer)]
        events = await self._record(payloads, of=answer, ends_draft=True)
        self.spending.add(answer, events)
        self.has_ended = True
        self._note_said(answer.said, events)

    def _note_said(self, text: str, events: Sequence[LedgerEvent]) -> None:
        self.turn.said.clear()  # it is history now
        self.last_text = text
        self.last_seq = next(
            (event.seq for event in events if isinstance(event.payload, AssistantMessage)), None
        )

    def _retries(self, answer: IncomingAnswer) -> Sequence[Payload]:
        return answer.retries(self.model, "turn")

    def _spent(self, answer: IncomingAnswer) -> Sequence[Payload]:
        usage = answer.usage_event(self.model, "turn", self.clock.monotonic())
        return () if usage is None else (usage,)

    async def _run_tools(self, calls: Sequence[ToolCall]) -> AgentError | None:
        self.calls_made += len(calls)
        return await self.tools.run(calls)

    async def _close_at_limit(self, calls: Sequence[ToolCall]) -> None:
        """Answer calls past the limit without running them, ask once more, fail.

        Why: docs/decisions.md#13.
        """
        limit = self.config.max_tool_calls_per_turn
        allowed = calls[: max(0, limit - self.calls_made)]
        await self._run_tools(allowed)
        # Refused calls need results as well: a history with an open call is refused by servers.
        await self.tools.refuse(calls[len(allowed) :])
        error = MaxToolCallsExceeded(limit)
        self.turn.emit(ErrorNoted(code=error.code, message=error.message))
        await self._record([SystemMessage(text=LIMIT_NOTICE.format(limit=limit), note="limit")])
        await self._close_with(error, "limit reached")

    async def _close_with(self, error: AgentError, cause: IncompleteCause) -> NoReturn:
        """Ask once more, without tools, and fail; the closing reply is kept."""
        await self._ask(closing=cause)
        self.has_ended = True
        raise error

    async def _stop_if_wanted(self) -> None:
        if self.turn.stop_wanted.is_set():
            await self._record([self._ending("stopped")])
            raise Stopped

    async def _close_after(self, error: Exception) -> None:
        """Record that the turn failed, unless that is recorded or the store is what fails."""
        # A store that fails can't take one more event; the next open finds the turn by its draft.
        if not self.turn.has_begun.is_set() or self.has_ended or isinstance(error, StoreError):
            return
        try:
            await self._record([self._ending("failed", detail_of(error))], ends_draft=True)
        except StoreError:
            _log.warning("the end of turn %s was not recorded", self.turn.turn_id)

    def _ending(self, cause: IncompleteCause, detail: str = "") -> AssistantMessage:
        return AssistantMessage(
            content=(),
            status="incomplete",
            cause=cause,
            detail=clean_text(detail),
            provider=self.model.provider,
            model=self.model.name,
        )

    async def _record(
        self,
        payloads: Sequence[Payload],
        *,
        of: IncomingAnswer | None = None,
        ends_draft: bool = False,
        title: str | None = None,
    ) -> tuple[LedgerEvent, ...]:
        events: list[NewEvent] = []
        for payload in payloads:
            made = payload
            is_last = payload is payloads[-1]  # what was said stands before it, and is counted
            if of is not None and is_last and isinstance(payload, Usage):
                made = with_estimate(payload, of, events)
            events.append(
                self.recorder.event(made, slot_uid=self.slot.uid, turn_id=self.turn.turn_id)
            )
        draft = (self.slot.uid, self.turn.turn_id) if ends_draft else None
        change = Change(events=tuple(events), ends_draft=draft, title=title)
        return await self.recorder.commit(change)

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self.turn.emit(TurnWarning(text=text))

    def _reply(self) -> Reply:
        info = self.last.info if self.last else None
        return Reply(
            text=self.last_text,
            seq=self.last_seq,
            slot_id=self.turn.slot_id,
            turn_id=self.turn.turn_id,
            model=self.model.spec,
            tool_calls=tuple(self.answer_reader.tool_names),
            usage=self.spending.usage,
            cost_usd=self.spending.cost_usd,
            duration_s=self.spending.duration_s(self.clock.monotonic() - self.began_s),
            context_tokens=info.used if info else 0,
            context_window=info.limits.window if info else 0,
            context_threshold=info.limits.threshold if info else 0,
        )
