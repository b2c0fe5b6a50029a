"""Run the calls of one assistant message, one after the other, each to exactly one result.

The simple case of E8-E10: results in the order of the calls, errors as results, limits on what is
recorded. Batches that run at once come with the whole of E8.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import ToolNotFound, ToolTimeout
from agent_magics.core.messages import ToolCall, ToolOutput, Value
from agent_magics.core.ports import OnMain, Tool, ToolInput

CANCELLED = "[Tool cancelled]"
ABANDONED = "[Tool abandoned] The person stopped waiting; it may still be running."
OVER_LIMIT = "[Tool not run: the limit of tool calls in this turn was reached]"
_CUT = "\n\n[output truncated]"


class Answered(Value):
    """One call's result; `duration_ms` None: it did not run."""

    call: ToolCall
    output: ToolOutput
    duration_ms: int | None = None


class Dispatcher:
    """Knows the tools of one turn and how long and how much they may."""

    def __init__(self, tools: Sequence[Tool], config: AgentConfig, on_main: OnMain) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._config = config
        self._on_main = on_main

    async def run(
        self, calls: Sequence[ToolCall], *, stop: asyncio.Event, abandon: asyncio.Event
    ) -> AsyncIterator[Answered]:
        """Run calls in order; yield each result as it comes.

        `stop`: calls that have not begun don't, one that runs is waited for. `abandon`: nor that.
        """
        for call in calls:
            if stop.is_set():
                yield Answered(call=call, output=ToolOutput(content=CANCELLED, is_error=True))
                continue
            began = time.monotonic()
            output = await self._run_one(call, abandon)
            spent_ms = round((time.monotonic() - began) * 1000)
            yield Answered(call=call, output=self._limited(output), duration_ms=spent_ms)

    async def _run_one(self, call: ToolCall, abandon: asyncio.Event) -> ToolOutput:
        tool = self._tools.get(call.tool_name)
        if tool is None:
            return _error(ToolNotFound(call.tool_name, tuple(self._tools)).message)
        if call.arguments is None:
            return _error(f"The arguments are not valid JSON, so {call.tool_name} did not run.")
        given = ToolInput(call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments)
        running = asyncio.ensure_future(self._guarded(tool, given))
        leaving = asyncio.ensure_future(abandon.wait())
        try:
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return running.result() if running.done() else _error(ABANDONED)
        finally:
            leaving.cancel()
            if not running.done():
                running.cancel()

    async def _guarded(self, tool: Tool, given: ToolInput) -> ToolOutput:
        timeout_s = self._config.tool_timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await tool.execute(given, self._on_main)
        except TimeoutError as error:
            if limit.expired():
                return _error(ToolTimeout(tool.name, timeout_s).message)
            return _failed(error)
        except (KeyboardInterrupt, SystemExit):
            return _error("[Tool interrupted by the person]")
        except Exception as error:  # noqa: BLE001  # a tool is foreign code; its fault is a result
            return _failed(error)

    def _limited(self, output: ToolOutput) -> ToolOutput:
        metadata = output.metadata
        size = _encoded_size(metadata)
        if size > self._config.tool_output_metadata_max_bytes:
            metadata = {"_truncated": True, "_original_bytes": size}
            size = _encoded_size(metadata)
        room = self._config.tool_output_max_bytes - size
        content = _cut_to(output.content, room)
        return ToolOutput(content=content, is_error=output.is_error, metadata=metadata)


def _cut_to(content: str, room_bytes: int) -> str:
    encoded = content.encode(errors="replace")
    if len(encoded) <= room_bytes:
        return content
    kept = encoded[: max(0, room_bytes - len(_CUT))]
    return kept.decode(errors="ignore") + _CUT


def _encoded_size(metadata: dict[str, object]) -> int:
    try:
        return len(msgspec.json.encode(metadata))
    except (TypeError, msgspec.MsgspecError, UnicodeEncodeError):
        return 1 << 62


def _failed(error: Exception) -> ToolOutput:
    return _error(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _error(content: str) -> ToolOutput:
    return ToolOutput(content=content, is_error=True)
