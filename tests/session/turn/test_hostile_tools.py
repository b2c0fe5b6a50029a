"""Turns with tools that do what no tool should: the turn goes on, and its ledger can be read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.messages import ToolOutput, ToolResult
from agent_magics.core.turns import Completed
from agent_magics.tools.schema import tool
from tests.session.approving import answers, batch, ended

if TYPE_CHECKING:
    from tests.session.conftest import Bench

MEBIBYTE = 1_048_576
_RING: list[Any] = []
_RING.append(_RING)


def raises(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


class Broken:
    """A value that can't be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


HOSTILE: dict[str, Callable[[], Any]] = {
    "exits": raises(SystemExit(1)),
    "interrupts": raises(KeyboardInterrupt()),
    "cancels": raises(asyncio.CancelledError()),
    "stops": raises(StopIteration()),
    "huge": lambda: "x" * 100_000_000,
    "huge_value": lambda: ["é" * 1_000_000] * 50,
    "odd_text": lambda: "\ud800\0 \u2028 \u202e" + chr(0x10FFFF),
    "odd_metadata": lambda: ToolOutput(content="x", metadata={"\0": float("inf"), "\udfff": "\0"}),
    "huge_metadata": lambda: ToolOutput(content="x", metadata={"rows": ["x" * 100] * 10_000}),
    "ring": lambda: _RING,
    "broken": Broken,
}


@pytest.mark.req("E9", "E10", "inv10", "inv13", "inv16", "inv17")
def test_hostile_tools_at_once(bench: Bench) -> None:
    """All of them in one batch: a result each, within limits, the same live and reloaded."""
    tools = [tool(name=name, thread=True)(work) for name, work in HOSTILE.items()]

    async def scene() -> None:
        session = await bench.session(
            batch(*[(name, {}) for name in HOSTILE]),
            "I see.",
            tools=tools,
            session_id="s",
        )
        turn = await session.send_message("go")
        ends = ended([event.payload async for event in turn])
        assert isinstance(await turn.join(), Completed)
        assert len(ends) == len(HOSTILE)
        results = {answer.tool_name: answer for answer in answers(session)}
        assert set(results) == set(HOSTILE)
        for result in results.values():
            assert len(result.output.content.encode()) <= MEBIBYTE
        assert results["odd_text"].output.content == "\ufffd\\x00 \u2028 \u202e\U0010ffff"
        mark = {"_truncated": True, "_original_bytes": 1_030_010}
        assert results["huge_metadata"].output.metadata == mark
        sent = [m for m in bench.provider.requests[-1].messages if isinstance(m, ToolResult)]
        assert [message.tool_name for message in sent] == list(HOSTILE)
        live = (session.messages(), session.history())
        await session.close()
        again = await bench.resumed("s")
        assert (again.messages(), again.history()) == live

    asyncio.run(scene())


@pytest.mark.req("E9", "inv10")
def test_a_late_answer_is_in_no_ledger(bench: Bench) -> None:
    """What a tool gives after its time-out changes nothing, not even in the next turn."""
    release, left = threading.Event(), threading.Event()

    def slow() -> str:
        release.wait(2)
        left.set()
        return "late"

    async def scene() -> None:
        session = await bench.session(
            batch(("slow", {})),
            "it hangs",
            "on we go",
            tools=[tool(thread=True)(slow)],
            tool_timeout_ms=20,
        )
        await session.submit_turn("go")
        before = session.history()
        release.set()
        await asyncio.to_thread(left.wait, 2)
        await session.submit_turn("and?")
        assert session.history()[: len(before)] == before
        assert "late" not in str(answers(session))

    asyncio.run(scene())
