"""A dispatcher at work, without a session: what it tells its watcher."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import AgentError
from agent_magics.core.messages import ToolCall
from agent_magics.core.ports import OwnedMain, Tool
from agent_magics.tools.dispatch import CallApproval, Dispatcher, FinishedCall

T = TypeVar("T")


class Here:
    """A main thread that is the loop's own."""

    async def call(self, work: Callable[[], T]) -> T:
        return work()

    def break_off(self, work: Callable[[], object]) -> None:
        """Do nothing: what runs here keeps the loop."""


def call(name: str, arguments: dict[str, Any] | None = None, call_id: str = "c") -> ToolCall:
    """Make a call; without arguments it is one whose JSON was cut."""
    return ToolCall(call_id=call_id, tool_name=name, arguments=arguments, raw="{oops")


def calls(*names: str) -> list[ToolCall]:
    """Make calls without parameters, with ids 1, 2, …"""
    return [call(name, {}, str(number)) for number, name in enumerate(names, start=1)]


@dataclass
class Seen:
    """A watcher: what was told, in order. `on_answer` is awaited before a result counts as told."""

    began: list[str] = field(default_factory=list)
    answers: list[FinishedCall] = field(default_factory=list)
    on_answer: Callable[[FinishedCall], Awaitable[None]] | None = None
    ended_by: AgentError | None = None

    def call_started(self, call: ToolCall) -> None:
        self.began.append(call.call_id)

    async def call_finished(self, finished: FinishedCall) -> None:
        if self.on_answer is not None:
            await self.on_answer(finished)
        self.answers.append(finished)

    @property
    def said(self) -> dict[str, str]:
        """The result of each call, by id; fails where a call has two."""
        assert len({answer.call.call_id for answer in self.answers}) == len(self.answers)
        return {answer.call.call_id: answer.output.content for answer in self.answers}


@dataclass
class Stage:
    """What a batch runs with."""

    tools: Sequence[Tool]
    tool_approval: CallApproval | None = None
    on_main: OwnedMain = field(default_factory=Here)
    settings: dict[str, Any] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    abandon: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, *batch: ToolCall) -> Seen:
        config = AgentConfig(default_model="x:y", **self.settings)
        dispatcher = Dispatcher(self.tools, config, self.on_main, self.tool_approval)
        self.seen.ended_by = await dispatcher.run(
            batch, self.seen, stop=self.stop, abandon=self.abandon
        )
        return self.seen


def run_all(tools: Sequence[Tool], *batch: ToolCall, **settings: Any) -> Seen:
    """Run a batch that nobody stops."""
    return asyncio.run(Stage(tools, settings=settings).run(*batch))
