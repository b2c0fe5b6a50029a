"""Run the calls of one assistant message, each to exactly one result.

A batch that changes nothing runs at once, each call on its own. One that has a mutating tool runs
in the order the model wrote: its order means something, so the first failure skips the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import AgentError, ToolExecutionError, ToolNotFound, ToolTimeout
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.ports import OwnedMain, Tool, ToolInput
from agent_magics.tools.attempt import Attempt, GivenUp, Ran, needs_main
from agent_magics.tools.limits import limited

T = TypeVar("T")
CANCELLED = "[Tool cancelled]"
ABANDONED = "[Tool abandoned] The person stopped waiting; it may still be running."
OVER_LIMIT = "[Tool not run: the limit of tool calls in this turn was reached]"
_SAID_CHARACTERS = 300
_LEAVE_PATIENCE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A call as it ran, and its result. `duration_ms` None: it did not run.

    `how` it failed, as the end of a sentence about the tool; "" where it didn't. `error`: what a
    watcher is told of, where docs/errors.md has a code for it.
    """

    call: ToolCall
    output: ToolOutput
    duration_ms: int | None = None
    how: str = ""
    error: AgentError | None = None


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A call may run, with these arguments; `note` tells the model what was changed."""

    call: ToolCall
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A call may not run; `content` is its result. `ends`: nor may any other of this turn."""

    content: str
    how: str
    error: AgentError | None = None
    ends: AgentError | None = None


class ToolGate(Protocol):
    """Who has a say before and after a tool runs. What it raises ends the batch."""

    async def before(self, call: ToolCall, tool: Tool, /) -> Admitted | Refused:
        """Return whether a call may run; cancelled where the person stops the turn meanwhile."""
        ...

    async def after(self, answered: Answered, /) -> AgentError | None:
        """Look at the recorded result of a tool that ran; give what ends the turn's tool calls."""
        ...


class Watch(Protocol):
    """Who records and shows. For each call: `begun` (if it runs), then `answered`, once."""

    def begun(self, call: ToolCall) -> None: ...

    async def answered(self, answered: Answered) -> None: ...


class Open:
    """The gate that lets every call through."""

    async def before(self, call: ToolCall, _tool: Tool, /) -> Admitted | Refused:
        return Admitted(call=call)

    async def after(self, _answered: Answered, /) -> AgentError | None:
        return None


class Dispatcher:
    """Knows the tools of one turn, how long and how much they may, and who has a say in it."""

    def __init__(
        self,
        tools: Sequence[Tool],
        config: AgentConfig,
        on_main: OwnedMain,
        tool_approval: ToolGate | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.config = config
        self.on_main = on_main
        self.tool_approval = tool_approval or Open()
        self.main_turn = asyncio.Lock()

    async def run(
        self,
        calls: Sequence[ToolCall],
        watch: Watch,
        *,
        stop: asyncio.Event,
        abandon: asyncio.Event,
    ) -> AgentError | None:
        """Run calls to one result each, told to `watch` as they come, which may be in any order.

        `stop`: calls that have not begun don't, those that run are waited for. `abandon`: nor
        that. Gives the error by which a plugin ended the turn's tool calls.
        """
        batch = _Batch(self, watch, stop, abandon)
        # Reading may overlap. With one call in it that changes something, order is what the model
        # meant: the later may rely on the earlier.
        if len(calls) > 1 and not any(self._is_mutating(call) for call in calls):
            await batch.at_once(calls)
        else:
            await batch.in_order(calls)
        return batch.ended_by

    def _is_mutating(self, call: ToolCall) -> bool:
        tool = self.tools.get(call.tool_name)
        return tool is not None and is_mutating(tool)


class _Batch:
    """The calls of one message while they run."""

    def __init__(
        self, owner: Dispatcher, watch: Watch, stop: asyncio.Event, abandon: asyncio.Event
    ) -> None:
        self.ended_by: AgentError | None = None
        self._owner = owner
        self._watch = watch
        self._stop = stop
        self._abandon = abandon

    async def in_order(self, calls: Sequence[ToolCall]) -> None:
        """Run one after the other; what follows a failure doesn't run, and says why."""
        failed: Answered | None = None
        for call in calls:
            answered = await self._serve(call, after=failed)
            if failed is None and answered.how:
                failed = answered

    async def at_once(self, calls: Sequence[ToolCall]) -> None:
        """Run together; the failure of one is its own."""
        serving = [asyncio.ensure_future(self._serve(call)) for call in calls]
        try:
            await asyncio.gather(*serving)
        finally:  # the ledger failed, or the loop ends
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, call: ToolCall, after: Answered | None = None) -> Answered:
        answered = await self._answer(call, after)
        # Recorded before plugins see it: a plugin that hangs or fails must not lose a result of
        # something that was done.
        await self._watch.answered(answered)
        # Only of what ran: there is nothing to look at behind a refusal.
        if answered.duration_ms is not None:
            looking = self._owner.tool_approval.after(answered)
            ended = await _unless(self._abandon, looking)
            self.ended_by = self.ended_by or ended
        return answered

    async def _answer(self, call: ToolCall, after: Answered | None) -> Answered:
        if early := self._not_now(call, after):
            return early
        tool = self._owner.tools.get(call.tool_name)
        if tool is None:
            unknown = ToolNotFound(f"{call.tool_name:.64}", tuple(self._owner.tools))
            return self._failed(call, unknown.message, "was not found", unknown)
        # Half a call: run with what could be read of it, it would do something that nobody asked
        # for.
        if call.arguments is None:
            reason = (
                f"The arguments are not valid JSON or came in part, so {tool.name} did not run."
            )
            return self._failed(call, reason, "failed", ToolExecutionError(tool.name, reason))
        said = await _unless(self._stop, self._owner.tool_approval.before(call, tool))
        match said:
            case None:
                return _cancelled(call)
            case Refused():
                self.ended_by = self.ended_by or said.ends
                return self._failed(call, said.content, said.how, said.error)
            case Admitted(call=admitted, note=note):
                return await self._in_turn(admitted, tool, note)

    async def _in_turn(self, call: ToolCall, tool: Tool, note: str) -> Answered:
        """Run a tool; those that need the main thread one at a time, in the order they came."""
        if not needs_main(tool):
            return self._not_now(call) or await self._attempt(call, tool, note)
        # The main thread takes one piece of work after the other anyway; a lock here keeps the
        # order, and tells a waiting tool's time apart from a running one's.
        async with self._owner.main_turn:
            return self._not_now(call) or await self._attempt(call, tool, note)

    async def _attempt(self, call: ToolCall, tool: Tool, note: str) -> Answered:
        began_s = asyncio.get_running_loop().time()
        timeout_s = self._owner.config.tool_timeout_ms / 1000
        attempt = Attempt(
            tool,
            ToolInput(
                call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments or {}
            ),
            on_main=self._owner.on_main,
            timeout_s=timeout_s,
            begun=lambda: self._watch.begun(call),
        )
        verdict = await attempt.run(stop=self._stop, abandon=self._abandon)
        if isinstance(verdict, Ran):
            return self._ran(call, verdict, note)
        spent_ms = round((asyncio.get_running_loop().time() - began_s) * 1000)
        answered = self._given_up(call, verdict, spent_ms)
        return replace(answered, output=self._limited(answered.output, note))

    def _ran(self, call: ToolCall, ran: Ran, note: str) -> Answered:
        output = self._limited(ran.output, note)
        said = f"{output.content:.{_SAID_CHARACTERS}}"
        return Answered(
            call=call,
            output=output,
            duration_ms=round(ran.duration_s * 1000),
            how="failed" if output.is_error else "",
            error=ToolExecutionError(call.tool_name, said) if output.is_error else None,
        )

    def _given_up(self, call: ToolCall, why: GivenUp, spent_ms: int) -> Answered:
        late = ToolTimeout(call.tool_name, self._owner.config.tool_timeout_ms / 1000)
        match why:
            case "cancelled":
                return _cancelled(call)
            case "timed out":
                return self._failed(call, late.message, "timed out", late, spent_ms)
            case "abandoned":
                return self._failed(call, ABANDONED, "was abandoned", None, spent_ms)
            case "main thread busy":
                reason = f"the main thread was busy for {spent_ms / 1000:.3g} s"
                error = ToolExecutionError(call.tool_name, f"{reason}, so it did not run")
                return self._failed(call, f"[Tool not run: {reason}]", "could not run", error)

    def _not_now(self, call: ToolCall, after: Answered | None = None) -> Answered | None:
        """Return the result of a call that may not begin any more."""
        if self._stop.is_set():
            return _cancelled(call)
        if self.ended_by is not None:
            reason = "[Tool not run: a plugin ended the tool calls of this turn before it]"
            return self._failed(call, reason, "did not run", None)
        if after is not None:
            name = f"{after.call.tool_name:.64}"
            reason = f"[Tool not run: `{name}` {after.how} before it]"
            return self._failed(call, reason, "did not run", None)
        return None

    def _failed(
        self,
        call: ToolCall,
        content: str,
        how: str,
        error: AgentError | None,
        duration_ms: int | None = None,
    ) -> Answered:
        output = self._limited(ToolOutput(content=content, is_error=True))
        return Answered(call=call, output=output, duration_ms=duration_ms, how=how, error=error)

    def _limited(self, output: ToolOutput, note: str = "") -> ToolOutput:
        cut = limited(output, self._owner.config)
        if not note:
            return cut
        noted = ToolOutput(
            content=f"{note}\n\n{cut.content}", is_error=cut.is_error, metadata=cut.metadata
        )
        # The note counts too: a result just at the limit would be over it with the note.
        return limited(noted, self._owner.config)


def is_mutating(tool: Tool) -> bool:
    """Return whether a tool changes something; one that can't even say so does."""
    try:
        return bool(tool.is_mutating)
    except Exception:  # noqa: BLE001  # a tool is foreign code
        return True


def _cancelled(call: ToolCall) -> Answered:
    output = ToolOutput(content=CANCELLED, is_error=True)
    return Answered(call=call, output=output, how="was cancelled")


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Wait for `work`; where `event` comes first, cancel it and give None."""
    working = asyncio.ensure_future(work)
    working.add_done_callback(_look_at)
    watching = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=_LEAVE_PATIENCE_S)


def _look_at(task: asyncio.Task[Any]) -> None:
    """Take note of an error that comes too late, or asyncio would print it."""
    if not task.cancelled():
        task.exception()
