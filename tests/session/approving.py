"""Somebody who is asked whether tools may run, and tools to ask about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest, ApprovalWord
from agent_magics.core.events import LedgerEvent, ToolAnswered
from agent_magics.core.turns import AgentEvent, ToolEnded, ToolStarted
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.session.session import Session
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.tools.schema import tool


def word(said: ApprovalWord, **more: Any) -> ApprovalAnswer:
    """Make an answer."""
    return ApprovalAnswer(word=said, **more)


class Person:
    """Answers in the order it is told to; asked once more, it has no answer."""

    def __init__(self, *says: Any) -> None:
        self._says = list(says)
        self.asked: list[ApprovalRequest] = []

    async def ask(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        said = self._says.pop(0)
        if isinstance(said, BaseException):
            raise said
        return await said(request) if callable(said) else said


class Disk:
    """Files that tools write and remove; `did` is what was done."""

    def __init__(self) -> None:
        self.did: list[str] = []

    @property
    def tools(self) -> list[Any]:
        @tool(mutating=True)
        async def write_file(path: str, text: str = "") -> str:
            self.did.append(f"write {path} {text}".strip())
            return f"wrote {path}"

        @tool(mutating=True)
        async def remove(path: str) -> str:
            self.did.append(f"remove {path}")
            return f"removed {path}"

        @tool
        async def look(path: str = "") -> str:
            self.did.append(f"look {path}".strip())
            return "seen"

        return [write_file, remove, look]


def batch(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Make a scripted step that calls tools."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def write(path: str = "a", **more: Any) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, **more}


def answers(session: Session) -> list[ToolAnswered]:
    """The results of a session's calls, in the order of the ledger."""
    payloads = [event.payload for event in session.history()]
    return [payload for payload in payloads if isinstance(payload, ToolAnswered)]


def results(session: Session) -> list[str]:
    """What the calls of a session got, in the order of the ledger."""
    return [answer.output.content for answer in answers(session)]


async def stored(path: Path, session: Session) -> tuple[LedgerEvent, ...]:
    """Read all events of a session from its file, as another process would."""
    store = SqlStore(path)
    state = await store.load(session.session_id)
    await store.aclose()
    assert state is not None
    return state.events


async def shown(turn: RunningTurn) -> Sequence[AgentEvent]:
    """Read a turn's events to the end."""
    return [event async for event in turn]


def ended(shown: list[Any]) -> dict[str, ToolEnded]:
    """The end of each call; fails where one has no start before it, or two of either."""
    seen = [(type(e), e.call_id) for e in shown if isinstance(e, ToolStarted | ToolEnded)]
    assert len(set(seen)) == len(seen)
    ends = {event.call_id: event for event in shown if isinstance(event, ToolEnded)}
    for call_id in ends:
        assert seen.index((ToolStarted, call_id)) < seen.index((ToolEnded, call_id))
    assert len(seen) == 2 * len(ends)
    return ends
