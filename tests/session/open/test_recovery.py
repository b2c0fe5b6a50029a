"""What a process that was killed left behind is set right when the session is opened again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.config import CompactionConfig
from agent_magics.core.events import AssistantMessage, ToolAnswered, ToolCalled
from agent_magics.core.messages import ToolResult, User, text_of

if TYPE_CHECKING:
    from tests.session.conftest import Bench

PROLOGUE = """
import asyncio, os, signal, sys, time
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.tools.schema import tool

@tool
def die() -> str:
    os.kill(os.getpid(), signal.SIGKILL)

async def opened(*steps, **settings):
    builder = AgentBuilder(AgentConfig(default_model="scripted:x", **settings))
    builder.register_model_provider(ScriptedProvider(list(steps)))
    builder.register_tool(die)
    builder.register_session_storage(SqlStore(sys.argv[1]))
    agent = await builder.build()
    return await agent.new_session(SessionConfig(session_id="s"))
"""


def killed(path: Path, scene: str) -> None:
    """Run a scene in another process, which must die of SIGKILL."""
    code = PROLOGUE + textwrap.dedent(scene) + "\nasyncio.run(scene())\n"
    done = subprocess.run([sys.executable, "-c", code, str(path)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.req("N9", "E9", "dec62", "dec43")
def test_text_that_streamed_before_a_kill_is_kept(bench: Bench) -> None:
    """kill -9 in mid-stream: the partial answer is an incomplete one, and the talk goes on."""
    killed(
        bench.path,
        """
        async def scene():
            session = await opened("earlier", {"text": "one two three four", "chunk_delay_s": 0.4})
            await session.submit_turn("before")
            turn = await session.send_message("q")
            seen = 0
            async for event in turn:
                seen += type(event.payload).__name__ == "TextChunk"
                if seen == 4:
                    os.kill(os.getpid(), signal.SIGKILL)
        """,
    )

    async def scene() -> None:
        session = await bench.resumed("s", "on we go")
        last = session.history()[-1].payload
        assert isinstance(last, AssistantMessage)
        assert (last.status, last.cause) == ("incomplete", "process ended")
        assert text_of(last.content).startswith("one")
        assert bench.provider.requests == []
        await session.submit_turn("go on")
        sent = bench.provider.requests[0].messages
        assert any("ended" in text_of(m.content) for m in sent if isinstance(m, User))
        await session.close()
        again = await bench.resumed("s")
        assert len(again.turns()) == 3

    asyncio.run(scene())


@pytest.mark.req("E9", "dec43")
def test_a_call_left_open_gets_one_result(bench: Bench) -> None:
    """kill -9 in a tool: its call is answered once, on the first open, and never run again."""
    killed(
        bench.path,
        """
        async def scene():
            session = await opened({"calls": [{"name": "die"}]})
            await session.submit_turn("q")
        """,
    )

    async def scene() -> None:
        session = await bench.resumed("s", "I see.")
        results = [e for e in session.history() if isinstance(e.payload, ToolAnswered)]
        calls = [e for e in session.history() if isinstance(e.payload, ToolCalled)]
        assert len(results) == len(calls) == 1
        assert results[0].payload.output.is_error  # type: ignore[union-attr]
        await session.submit_turn("what happened?")
        sent = [m for m in bench.provider.requests[0].messages if isinstance(m, ToolResult)]
        assert "the process ended" in sent[0].content
        await session.close()
        again = await bench.resumed("s")
        assert sum(isinstance(e.payload, ToolAnswered) for e in again.history()) == 1

    asyncio.run(scene())


@pytest.mark.req("E18", "dec43")
def test_opening_writes_nothing_where_nothing_is_open(bench: Bench) -> None:
    """A clean session is opened without a new event."""

    async def scene() -> None:
        session = await bench.session("a", session_id="s")
        await session.submit_turn("q")
        events = len(session.frames.events())
        await session.close()
        again = await bench.resumed("s")
        assert len(again.frames.events()) == events

    asyncio.run(scene())


@pytest.mark.req("N9", "dec50")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_gets_a_clear_error(bench: Bench) -> None:
    """multiprocessing's fork: the child may not use the session, the parent goes on."""
    code = PROLOGUE + textwrap.dedent(
        """
        session = asyncio.run(opened("a", "b"))
        asyncio.run(session.submit_turn("q"))
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(session.submit_turn("child"))
            except Exception as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        assert asyncio.run(session.submit_turn("q")).text == "b"
        print("parent went on")
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(bench.path)],
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "parent went on\n", done.stderr


@pytest.mark.req("D1", "dec43")
def test_a_turn_killed_before_its_first_word_is_interrupted(bench: Bench) -> None:
    """Nothing is written for it on opening; the frames know that nothing runs."""
    killed(
        bench.path,
        """
        async def scene():
            session = await opened({"text": "never", "delay_s": 30})
            await session.send_message("q")
            await asyncio.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )

    async def scene() -> None:
        session = await bench.resumed("s", {"text": "a b", "delay_s": 30})
        assert session.frames.turns()["outcome"].tolist() == ["interrupted"]
        turn = await session.send_message("again")
        await asyncio.sleep(0.1)
        assert session.frames.turns()["outcome"].isna().tolist() == [False, True]
        turn.cancel()
        await turn.join()

    asyncio.run(scene())


@pytest.mark.req("C13", "inv4", "inv10")
def test_a_kill_between_summary_and_commit_changes_nothing(bench: Bench) -> None:
    """The summary was paid for, the view is the one before, and compacting again works."""
    killed(
        bench.path,
        """
        from agent_magics.session.compaction.checkpoints import Checkpoints
        from agent_magics.context.prompt import SUMMARY_HEADINGS
        from agent_magics.core.config import CompactionConfig

        LONG = "They talked about the price of trains in May, at length. " * 20
        SUMMARY = "\\n".join(f"## {heading}\\nShort." for heading in SUMMARY_HEADINGS)

        async def die_before_commit(self, *given):
            os.kill(os.getpid(), signal.SIGKILL)

        async def scene():
            Checkpoints.commit = die_before_commit
            session = await opened(
                *[LONG] * 4,
                {"text": SUMMARY, "purpose": "compaction"},
                compaction=CompactionConfig(keep_recent_tokens=50),
            )
            for _ in range(4):
                await session.submit_turn(LONG)
            await session.compact()
        """,
    )

    async def scene() -> None:
        summary = "\n".join(f"## {heading}\nShort." for heading in SUMMARY_HEADINGS)
        session = await bench.resumed(
            "s",
            {"text": summary, "purpose": "compaction"},
            compaction=CompactionConfig(keep_recent_tokens=50),
        )
        assert session.context_info().checkpoint_id is None
        assert len(session.messages()) == 8
        assert (await session.compact()).summarised_turns == 3

    asyncio.run(scene())
