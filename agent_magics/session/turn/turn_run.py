"""One turn from its prompt to its outcome: opened, conversed, ended.

What happened is recorded before it is shown as done. A stop never cancels this coroutine: it
sets `turn.stop_wanted`, and the turn ends by itself with everything recorded
(docs/decisions.md#11).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NoReturn

from agent_magics.core.errors import (
    AgentError,
    InternalPanic,
    MaxToolCallsExceeded,
    StoreError,
)
from agent_magics.core.events import IncompleteCause, SystemMessage, UserMessage
from agent_magics.core.hooks import TurnEnding
from agent_magics.core.messages import ToolCall, UserInput
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    ErrorNoted,
    Failed,
    Panicked,
    Reply,
    TurnOutcome,
    TurnStarted,
)
from agent_magics.session.request.answer_reader import AnswerReader
from agent_magics.session.request.sending import detail_of
from agent_magics.session.request.turn_spending import TurnSpending
from agent_magics.session.state.running_turn import ANSWERING, Stopped
from agent_magics.session.turn.request_stage import RequestStage
from agent_magics.session.turn.tool_stage import ToolStage
from agent_magics.session.turn.turn_hooks import TurnHooks
from agent_magics.session.turn.turn_parts import TurnParts
from agent_magics.session.turn.turn_progress import TurnProgress
from agent_magics.session.turn.turn_record import TurnRecord

LIMIT_NOTICE = (
    "[TOOL_LIMIT_REACHED] You have reached the maximum number of tool calls ({limit}) for this"
    " turn. You MUST NOT call any more tools. Summarize your progress and give a final response."
)
_log = logging.getLogger("agent_magics.session")


class TurnRun:
    """Runs one turn: its stages stand in the order of events."""

    def __init__(self, parts: TurnParts) -> None:
        self.parts = parts
        self.turn = parts.turn
        self.progress = _progress(parts)
        self.record = TurnRecord(
            turn=parts.turn, recorder=parts.recorder, model=parts.model, clock=parts.clock
        )
        self.hooks = TurnHooks(turn=parts.turn, scope=parts.hooks)
        self.requests = _request_stage(parts, self.record, self.progress)
        self.tools = ToolStage(
            turn=parts.turn, dispatcher=parts.dispatcher, record=self.record.write
        )

    async def run(self, given: UserInput) -> TurnOutcome:
        """Run to the end and return how it ended; raises nothing but the loop's own cancel."""
        ANSWERING.set(self.turn.slot_id)
        outcome = await self._outcome(given)
        await self.parts.memories.after(outcome)
        return await self._show_plugins(outcome)

    async def _outcome(self, given: UserInput) -> TurnOutcome:
        try:
            await self._open(given)
            await self._converse()
        except Stopped:
            return Cancelled(reply=self.progress.reply())
        except AgentError as error:
            await self._record_failure(error)
            return _failed(error, self.progress.reply())
        except Exception as error:  # noqa: BLE001 - a provider or tool is foreign code
            _log.error("turn %s panicked: %s", self.turn.turn_id, type(error).__name__)
            await self._record_failure(error)
            return Panicked(error=error, reply=self.progress.reply())
        return Completed(reply=self.progress.reply())

    # Opened: plugins, memories, the prompt on record.

    async def _open(self, given: UserInput) -> None:
        """Let plugins add what they will, then record the prompt and the skills that it calls."""
        parts = self.parts
        self.turn.emit(TurnStarted(model=parts.model.spec, turn_index=parts.turn_index))
        sections = await self.hooks.sections(given)
        sections += await parts.memories.sections(given)
        parts.references.keep(self.turn.turn_id, self.turn.slot_uid, sections)
        skills = [SystemMessage(text=skill.prompt_template, note="skill") for skill in parts.skills]
        prompt = UserMessage(content=given.content, origin=parts.origin)
        # Skills and prompt in one transaction: a prompt without the skill that it calls would be
        # answered wrongly after a crash.
        await self.record.write([*skills, prompt], title=parts.title)
        # Only now a stop has something to be recorded behind, and steering something to stand
        # behind.
        self.turn.has_begun.set()
        self._warn_of_unheld_limit()

    def _warn_of_unheld_limit(self) -> None:
        """Say, once a session, that a limit in money can't hold a model without a known price."""
        model, recorder = self.parts.model, self.parts.recorder
        is_priced = recorder.is_priced(model.provider, model.name)
        warning = self.progress.spending.warning(model.spec, is_priced=is_priced)
        if warning and recorder.is_first_of(model.spec):
            self.parts.warn(warning)

    # Conversed: request, answer, calls, results, and again.

    async def _converse(self) -> None:
        """Ask and run what is called until an answer calls nothing."""
        has_answered = False
        while True:
            answer = await self.requests.ask()
            if not has_answered:
                # Not before: what no model has been shown has to be sent again with the next turn.
                self.parts.references.mark_seen(self.turn.slot_uid)
                has_answered = True
            if not answer.calls:
                if await self._was_steered():
                    continue
                return
            limit = self.parts.config.max_tool_calls_per_turn
            if self.progress.calls_made + len(answer.calls) > limit:
                await self._close_at_limit(answer.calls, limit)
            ended_by = await self._run_tools(answer.calls)
            if ended_by is not None:
                await self._close_with(ended_by, "ended by a plugin")

    async def _was_steered(self) -> bool:
        """Return whether a message came while the last answer streamed: no request had it yet."""
        sent = self.progress.last_request
        return sent is not None and await self.turn.unheard(sent.request.messages)

    async def _run_tools(self, calls: Sequence[ToolCall]) -> AgentError | None:
        self.progress.calls_made += len(calls)
        return await self.tools.run(calls)

    async def _close_at_limit(self, calls: Sequence[ToolCall], limit: int) -> NoReturn:
        """Answer calls past the limit without running them, ask once more, fail.

        Why: docs/decisions.md#13.
        """
        allowed = calls[: max(0, limit - self.progress.calls_made)]
        await self._run_tools(allowed)
        # Refused calls need results as well: a history with an open call is refused by servers.
        await self.tools.refuse(calls[len(allowed) :])
        error = MaxToolCallsExceeded(limit)
        self.turn.emit(ErrorNoted(code=error.code, message=error.message))
        notice = SystemMessage(text=LIMIT_NOTICE.format(limit=limit), note="limit")
        await self.record.write([notice])
        await self._close_with(error, "limit reached")

    async def _close_with(self, error: AgentError, cause: IncompleteCause) -> NoReturn:
        """Ask once more, without tools, and fail; the closing reply is kept."""
        await self.requests.ask(closing=cause)
        raise error

    # Ended: a failure on record, plugins shown how it ended.

    async def _record_failure(self, error: Exception) -> None:
        """Record that the turn failed, unless that is recorded or the store is what fails."""
        # A store that fails can't take one more event; the next open finds the turn by its draft.
        has_begun = self.turn.has_begun.is_set()
        if not has_begun or self.record.has_ended or isinstance(error, StoreError):
            return
        try:
            await self.record.write_end("failed", detail_of(error))
        except StoreError:
            _log.warning("the end of turn %s was not recorded", self.turn.turn_id)

    async def _show_plugins(self, outcome: TurnOutcome) -> TurnOutcome:
        """Show the plugins how the turn has ended; one that objects makes it fail."""
        # A turn without a prompt on record never was: plugins that count turns would count it.
        if not self.turn.has_begun.is_set():
            return outcome
        error = outcome.error if isinstance(outcome, Failed | Panicked) else None
        ending = TurnEnding(
            assistant_output=self.progress.last_text,
            tool_calls_count=self.progress.calls_made,
            cancelled=isinstance(outcome, Cancelled),
            error_code=None if error is None else getattr(error, "code", InternalPanic.code),
        )
        objection = await self.hooks.objection(ending)
        # What failed before has the better reason.
        if objection is None or error is not None:
            return outcome
        return _failed(objection, self.progress.reply())


def _progress(parts: TurnParts) -> TurnProgress:
    spending = TurnSpending(
        config=parts.config,
        session=lambda: parts.recorder.loaded.spent,
        is_free=parts.recorder.is_free(parts.model.provider, parts.model.name),
    )
    return TurnProgress(
        turn=parts.turn,
        model=parts.model,
        clock=parts.clock,
        spending=spending,
        began_s=parts.clock.monotonic(),
    )


def _request_stage(parts: TurnParts, record: TurnRecord, progress: TurnProgress) -> RequestStage:
    answer_reader = AnswerReader(
        turn=parts.turn,
        recorder=parts.recorder,
        model=parts.model,
        clock=parts.clock,
        tool_names=progress.tool_names,
    )
    return RequestStage(
        turn=parts.turn,
        provider=parts.provider,
        request_fitter=parts.request_fitter,
        answer_reader=answer_reader,
        record=record,
        progress=progress,
        warn=parts.warn,
    )


def _failed(error: AgentError, reply: Reply) -> Failed | Panicked:
    """Return how a turn ended by an error; an error of our own making is a panic."""
    if isinstance(error, InternalPanic):
        return Panicked(error=error, reply=reply)
    return Failed(error=error, reply=reply)
