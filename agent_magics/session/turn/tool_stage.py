"""The tools of a turn: calls run, each result recorded before it is shown.

Results are recorded as they come, so that a crash loses none that was there; the projection puts
them behind their calls in the order of the calls.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent_magics.core.errors import AgentError, StoreError
from agent_magics.core.events import Payload, ToolAnswered
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.text import clean_value
from agent_magics.core.turns import ErrorNoted, ToolEnded, ToolStarted
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.tools.dispatch import OVER_LIMIT, Dispatcher, FinishedCall

LOST = "[Tool result lost: agent-magics failed inside. It may have run.]"
_log = logging.getLogger("agent_magics.session")


@dataclass(kw_only=True)
class ToolStage:
    """Runs the calls of one turn. `record` writes events of that turn in one transaction."""

    turn: RunningTurn
    dispatcher: Dispatcher
    record: Callable[[Sequence[Payload]], Awaitable[object]]
    _open: dict[str, ToolCall] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)

    async def run(self, calls: Sequence[ToolCall]) -> AgentError | None:
        """Run calls to exactly one recorded result each.

        Gives the error by which a plugin ended the tool calls of this turn.
        """
        self._open.update({call.call_id: call for call in calls})
        try:
            return await self.dispatcher.run(
                calls, self, stop=self.turn.stop_wanted, abandon=self.turn.abandon_wanted
            )
        except StoreError:
            raise  # nothing more can be recorded; the next open closes the calls
        except Exception:
            await self._close_open()
            raise

    async def refuse(self, calls: Sequence[ToolCall]) -> None:
        """Give calls past the limit their result; they don't run."""
        self._open.update({call.call_id: call for call in calls})
        refused = ToolOutput(content=OVER_LIMIT, is_error=True)
        await self._record([FinishedCall(call=call, output=refused) for call in calls])

    # For the dispatcher.

    def call_started(self, call: ToolCall) -> None:
        """Show that a call runs, with the arguments it runs with."""
        self._started.add(call.call_id)
        self.turn.emit(
            ToolStarted(
                call_id=call.call_id,
                tool_name=call.tool_name,
                arguments=call.arguments or {},
            )
        )

    async def call_finished(self, finished: FinishedCall) -> None:
        """Record a result, then show it."""
        await self._record([finished])

    async def _record(self, answers: Sequence[FinishedCall]) -> None:
        results = [self._result(finished) for finished in answers]
        await self.record(results)
        for finished, result in zip(answers, results, strict=True):
            self._show(finished, result)

    def _result(self, finished: FinishedCall) -> ToolAnswered:
        asked = self._open.pop(finished.call.call_id)
        # The call stays as the model wrote it; what ran instead stands beside it.
        is_changed = finished.call.arguments != asked.arguments
        return ToolAnswered(
            call_id=asked.call_id,
            tool_name=asked.tool_name,
            output=clean_value(finished.output),
            duration_ms=finished.duration_ms,
            ran_with=finished.call.arguments if is_changed else None,
        )

    def _show(self, finished: FinishedCall, result: ToolAnswered) -> None:
        """Show the end of a call, its start where it didn't run, and the code of an error."""
        # Whoever draws a turn may count on a start for every end.
        if result.call_id not in self._started:
            self.call_started(finished.call)
        if finished.error is not None:
            error = finished.error
            noted = ErrorNoted(code=error.code, message=error.message, call_id=result.call_id)
            self.turn.emit(noted)
        self.turn.emit(
            ToolEnded(
                call_id=result.call_id,
                tool_name=result.tool_name,
                output=result.output,
                duration_ms=result.duration_ms or 0,
            )
        )

    async def _close_open(self) -> None:
        lost = ToolOutput(content=LOST, is_error=True)
        try:
            await self._record([FinishedCall(call=c, output=lost) for c in self._open.values()])
        except StoreError:
            _log.warning("calls of turn %s were left open", self.turn.turn_id)
