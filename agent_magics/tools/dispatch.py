"""Run the calls of one assistant message, each to exactly one result.

A batch that changes nothing runs at once, each call on its own. One that has a mutating tool runs
in the order the model wrote: its order means something, so the first failure skips the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

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
class FinishedCall:
    """A call as it ran, and its result. `duration_ms` None: it did not run.

    `failure`: how it failed, as the end of a sentence about the tool; "" where it didn't. `error`:
    what a watcher is told of, where docs/errors.md has a code for it.
    """

    call: ToolCall
    output: ToolOutput
    duration_ms: int | None = None
    failure: str = ""
    error: AgentError | None = None


@dataclass(frozen=True, kw_only=True)
class Approved:
    """A call may run, with these arguments; `note` tells the model what was changed."""

    call: ToolCall
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A call may not run; `content` is its result. `ends`: nor may any other of this turn."""

    content: str
    failure: str
    error: AgentError | None = None
    ends: AgentError | None = None


class CallApproval(Protocol):
    """Who has a say before and after a tool runs. What it raises ends the batch."""

    async def before(self, call: ToolCall, tool: Tool, /) -> Approved | Refused:
        """Return whether a call may run; cancelled where the person stops the turn meanwhile."""
        ...

    async def after(self, finished: FinishedCall, /) -> AgentError | None:
        """Look at the recorded result of a tool that ran; return what ends the turn's calls."""
        ...


class CallWatcher(Protocol):
    """Who records and shows. For each call: `call_started` (if it runs), then `call_finished`."""

    def call_started(self, call: ToolCall) -> None: ...

    async def call_finished(self, finished: FinishedCall) -> None: ...


class _ApproveAll:
    """The approval of a dispatcher that nobody has a say in."""

    async def before(self, call: ToolCall, _tool: Tool, /) -> Approved | Refused:
        return Approved(call=call)

    async def after(self, _finished: FinishedCall, /) -> AgentError | None:
        return None


class Dispatcher:
    """Knows the tools of one turn, how long and how much they may, and who has a say in it."""

    def __init__(
        self,
        tools: Sequence[Tool],
        config: AgentConfig,
        on_main: OwnedMain,
        approval: CallApproval | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.config = config
        self.on_main = on_main
        self.approval = approval or _ApproveAll()
        self.main_order = asyncio.Lock()

    async def run(
        self,
        calls: Sequence[ToolCall],
        watcher: CallWatcher,
        *,
        stop: asyncio.Event,
        abandon: asyncio.Event,
    ) -> AgentError | None:
        """Run calls to one result each, told to `watcher` as they come, in whatever order.

        `stop`: calls that have not begun don't, those that run are waited for. `abandon`: nor
        that. Returns the error by which a plugin ended the turn's tool calls.
        """
        batch = _Batch(self, watcher, stop, abandon)
        # Reading may overlap. With one call in it that changes something, order is what the model
        # meant: the later may rely on the earlier.
        if len(calls) > 1 and not any(self._is_mutating(call) for call in calls):
            await batch.run_at_once(calls)
        else:
            await batch.run_in_order(calls)
        return batch.ended_by

    def _is_mutating(self, call: ToolCall) -> bool:
        tool = self.tools.get(call.tool_name)
        return tool is not None and is_mutating(tool)


class _Batch:
    """The calls of one message while they run.

    The way of one call: `_run_and_record` → `_run_if_approved` → `_run_when_free` → `_run_once`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        watcher: CallWatcher,
        stop: asyncio.Event,
        abandon: asyncio.Event,
    ) -> None:
        self.ended_by: AgentError | None = None
        self._dispatcher = dispatcher
        self._watcher = watcher
        self._stop = stop
        self._abandon = abandon

    async def run_in_order(self, calls: Sequence[ToolCall]) -> None:
        """Run one after the other; what follows a failure doesn't run, and says why."""
        failed: FinishedCall | None = None
        for call in calls:
            finished = await self._run_and_record(call, after=failed)
            if failed is None and finished.failure:
                failed = finished

    async def run_at_once(self, calls: Sequence[ToolCall]) -> None:
        """Run together; the failure of one is its own."""
        running = [asyncio.ensure_future(self._run_and_record(call)) for call in calls]
        try:
            await asyncio.gather(*running)
        finally:  # the ledger failed, or the loop ends
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run_and_record(
        self, call: ToolCall, after: FinishedCall | None = None
    ) -> FinishedCall:
        finished = await self._run_if_approved(call, after)
        # Recorded before plugins see it: a plugin that hangs or fails must not lose a result of
        # something that was done.
        await self._watcher.call_finished(finished)
        # Only of what ran: there is nothing to look at behind a refusal.
        if finished.duration_ms is not None:
            looking = self._dispatcher.approval.after(finished)
            ended_by = await _unless(self._abandon, looking)
            self.ended_by = self.ended_by or ended_by
        return finished

    async def _run_if_approved(self, call: ToolCall, after: FinishedCall | None) -> FinishedCall:
        if early := self._result_without_run(call, after):
            return early
        tool = self._dispatcher.tools.get(call.tool_name)
        if tool is None:
            unknown = ToolNotFound(f"{call.tool_name:.64}", tuple(self._dispatcher.tools))
            return self._failed(call, unknown.message, "was not found", unknown)
        # Half a call: run with what could be read of it, it would do something that nobody asked
        # for.
        if call.arguments is None:
            reason = (
                f"The arguments are not valid JSON or came in part, so {tool.name} did not run."
            )
            return self._failed(call, reason, "failed", ToolExecutionError(tool.name, reason))
        decision = await _unless(self._stop, self._dispatcher.approval.before(call, tool))
        match decision:
            case None:
                return _cancelled(call)
            case Refused(content=content, failure=failure, error=error, ends=ends):
                self.ended_by = self.ended_by or ends
                return self._failed(call, content, failure, error)
            case Approved(call=approved, note=note):
                return await self._run_when_free(approved, tool, note)

    async def _run_when_free(self, call: ToolCall, tool: Tool, note: str) -> FinishedCall:
        """Run a tool; those that need the main thread one at a time, in the order they came."""
        if not needs_main(tool):
            return self._result_without_run(call) or await self._run_once(call, tool, note)
        # The main thread takes one piece of work after the other anyway; a lock here keeps the
        # order, and tells a waiting tool's time apart from a running one's.
        async with self._dispatcher.main_order:
            # Asked again: the turn may have been stopped while it waited.
            return self._result_without_run(call) or await self._run_once(call, tool, note)

    async def _run_once(self, call: ToolCall, tool: Tool, note: str) -> FinishedCall:
        began_s = asyncio.get_running_loop().time()
        attempt = Attempt(
            tool,
            ToolInput(
                call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments or {}
            ),
            on_main=self._dispatcher.on_main,
            timeout_s=self._dispatcher.config.tool_timeout_ms / 1000,
            on_start=lambda: self._watcher.call_started(call),
        )
        verdict = await attempt.run(stop=self._stop, abandon=self._abandon)
        if isinstance(verdict, Ran):
            return self._ran(call, verdict, note)
        spent_ms = round((asyncio.get_running_loop().time() - began_s) * 1000)
        finished = self._given_up(call, verdict, spent_ms)
        return replace(finished, output=self._limited(finished.output, note))

    def _ran(self, call: ToolCall, ran: Ran, note: str) -> FinishedCall:
        output = self._limited(ran.output, note)
        said = f"{output.content:.{_SAID_CHARACTERS}}"
        return FinishedCall(
            call=call,
            output=output,
            duration_ms=round(ran.duration_s * 1000),
            failure="failed" if output.is_error else "",
            error=ToolExecutionError(call.tool_name, said) if output.is_error else None,
        )

    def _given_up(self, call: ToolCall, why: GivenUp, spent_ms: int) -> FinishedCall:
        late = ToolTimeout(call.tool_name, self._dispatcher.config.tool_timeout_ms / 1000)
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

    def _result_without_run(
        self, call: ToolCall, after: FinishedCall | None = None
    ) -> FinishedCall | None:
        """Return the result of a call that may not begin any more."""
        if self._stop.is_set():
            return _cancelled(call)
        if self.ended_by is not None:
            reason = "[Tool not run: a plugin ended the tool calls of this turn before it]"
            return self._failed(call, reason, "did not run", None)
        if after is not None:
            name = f"{after.call.tool_name:.64}"
            reason = f"[Tool not run: `{name}` {after.failure} before it]"
            return self._failed(call, reason, "did not run", None)
        return None

    def _failed(
        self,
        call: ToolCall,
        content: str,
        failure: str,
        error: AgentError | None,
        duration_ms: int | None = None,
    ) -> FinishedCall:
        output = self._limited(ToolOutput(content=content, is_error=True))
        return FinishedCall(
            call=call, output=output, duration_ms=duration_ms, failure=failure, error=error
        )

    def _limited(self, output: ToolOutput, note: str = "") -> ToolOutput:
        cut = limited(output, self._dispatcher.config)
        if not note:
            return cut
        noted = ToolOutput(
            content=f"{note}\n\n{cut.content}", is_error=cut.is_error, metadata=cut.metadata
        )
        # The note counts too: a result just at the limit would be over it with the note.
        return limited(noted, self._dispatcher.config)


def is_mutating(tool: Tool) -> bool:
    """Return whether a tool changes something; one that can't even say so does."""
    try:
        return bool(tool.is_mutating)
    except Exception:  # noqa: BLE001  # a tool is foreign code
        return True


def _cancelled(call: ToolCall) -> FinishedCall:
    output = ToolOutput(content=CANCELLED, is_error=True)
    return FinishedCall(call=call, output=output, failure="was cancelled")


async def _unless(event: asyncio.Event, work: Coroutine[None, None, T]) -> T | None:
    """Wait for `work`; where `event` comes first, cancel it and return None."""
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


def _look_at(task: asyncio.Future[T]) -> None:
    """Take note of an error that comes too late, or asyncio would print it."""
    if not task.cancelled():
        task.exception()
