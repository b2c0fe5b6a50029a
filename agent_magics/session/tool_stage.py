"""The tools of a turn: calls run, each result recorded before it is shown (E8, E9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent_magics.core.events import Payload, ToolAnswered
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.text import clean_value
from agent_magics.core.turns import ToolEnded, ToolStarted
from agent_magics.session.running import RunningTurn
from agent_magics.tools.dispatch import OVER_LIMIT, Answered, Dispatcher


@dataclass(kw_only=True)
class ToolStage:
    """Runs the calls of one turn. `record` writes events of that turn in one transaction."""

    turn: RunningTurn
    dispatcher: Dispatcher
    record: Callable[[Sequence[Payload]], Awaitable[object]]

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run calls to exactly one recorded result each."""
        for call in calls:
            self._show_started(call)
        answers = self.dispatcher.run(
            calls, stop=self.turn.stop_wanted, abandon=self.turn.abandon_wanted
        )
        async for answered in answers:
            await self._record_results([answered])

    async def refuse(self, calls: Sequence[ToolCall]) -> None:
        """Give calls past the limit their result; they don't run (D 13)."""
        for call in calls:
            self._show_started(call)
        refused = ToolOutput(content=OVER_LIMIT, is_error=True)
        await self._record_results([Answered(call=call, output=refused) for call in calls])

    def _show_started(self, call: ToolCall) -> None:
        self.turn.emit(
            ToolStarted(
                call_id=call.call_id,
                tool_name=call.tool_name,
                arguments=call.arguments or {},
            )
        )

    async def _record_results(self, answers: Sequence[Answered]) -> None:
        """Record results in one transaction, then show them."""
        results = [
            ToolAnswered(
                call_id=answered.call.call_id,
                tool_name=answered.call.tool_name,
                output=clean_value(answered.output),
                duration_ms=answered.duration_ms,
            )
            for answered in answers
        ]
        await self.record(results)
        for result in results:
            self.turn.emit(
                ToolEnded(
                    call_id=result.call_id,
                    tool_name=result.tool_name,
                    output=result.output,
                    duration_ms=result.duration_ms or 0,
                )
            )
