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
from agent_magics.core.errors import ToolNotFound, ToolTimeout, said_by
from agent_magics.core.messages import ToolCall, ToolOutput, Value
from agent_magics.core.ports import OnMain, Tool, ToolInput
from agent_magics.core.text import clean_text, clean_value
from agent_magics.tools.schema import as_output

CANCELLED = "[Tool cancelled]"
ABANDONED = "[Tool abandoned] The person stopped waiting; it may still be running."
OVER_LIMIT = "[Tool not run: the limit of tool calls in this turn was reached]"
_CUT = "\n\n[output truncated]"
_NOT_JSON = (TypeError, ValueError, msgspec.MsgspecError, OverflowError, RecursionError)


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
            yield Answered(call=call, output=output, duration_ms=spent_ms)

    async def _run_one(self, call: ToolCall, abandon: asyncio.Event) -> ToolOutput:
        tool = self._tools.get(call.tool_name)
        if tool is None:
            return _error(ToolNotFound(call.tool_name, tuple(self._tools)).message)
        if call.arguments is None:
            return _error(f"The arguments are not valid JSON, so {call.tool_name} did not run.")
        given = ToolInput(call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments)
        timeout_s = self._config.tool_timeout_ms / 1000
        running = asyncio.ensure_future(self._guarded(tool, given))
        leaving = asyncio.ensure_future(abandon.wait())
        try:
            await asyncio.wait(
                {running, leaving}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if running.done():
                return running.result()
            if leaving.done():
                return _error(ABANDONED)
            return _error(ToolTimeout(tool.name, timeout_s).message)
        finally:
            leaving.cancel()
            if not running.done():
                running.cancel()

    async def _guarded(self, tool: Tool, given: ToolInput) -> ToolOutput:
        try:
            return self._limited(as_output(await tool.execute(given, self._on_main)))
        except (KeyboardInterrupt, SystemExit):
            return _error("[Tool interrupted by the person]")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._failed(error)  # the tool's own cancel, not ours
        except BaseException as error:  # noqa: BLE001  # a tool is foreign code; its fault is a result
            return self._failed(error)

    def _failed(self, error: BaseException) -> ToolOutput:
        return self._limited(_error(said_by(error)))

    def _limited(self, output: ToolOutput) -> ToolOutput:
        """Give an output of the declared types, as the ledger will hold it, within the limits."""
        said: object = output.content
        content = said if isinstance(said, str) else as_output(said).content
        metadata, size = _as_json(output.metadata)
        if metadata is None or size > self._config.tool_output_metadata_max_bytes:
            metadata, size = _as_json({"_truncated": True, "_original_bytes": size})
        room = self._config.tool_output_max_bytes - size
        content = _cut_to(clean_text(_cut_to(content, room)), room)  # cleaning may lengthen it
        return ToolOutput(content=content, is_error=bool(output.is_error), metadata=metadata or {})


def _cut_to(content: str, room_bytes: int) -> str:
    encoded = content.encode(errors="replace")
    if len(encoded) <= room_bytes:
        return content
    kept = encoded[: max(0, room_bytes - len(_CUT))]
    return kept.decode(errors="ignore") + _CUT


def _as_json(metadata: object) -> tuple[dict[str, object] | None, int]:
    """Give metadata as the ledger will hold it, and its size; None where that can't be."""
    try:
        encoded = msgspec.json.encode(clean_value(metadata))
        return msgspec.json.decode(encoded, type=dict[str, object]), len(encoded)
    except _NOT_JSON:
        return None, 1 << 62


def _error(content: str) -> ToolOutput:
    return ToolOutput(content=content, is_error=True)
