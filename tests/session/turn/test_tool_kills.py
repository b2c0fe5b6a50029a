"""kill -9 at every write of a turn with tools: what the next open finds, and makes of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.approval import REFUSED
from agent_magics.core.events import Approval, LedgerEvent, ToolAnswered, ToolCalled
from agent_magics.core.messages import Assistant, ToolResult
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.session.open.recovery import LEFT_OPEN

if TYPE_CHECKING:
    from tests.session.conftest import Bench

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

# One process imports once; a fork of it, made before any thread, runs and is killed at each write.
DRIVER = """
import asyncio, os, signal, sys
from pathlib import Path
from agent_magics.context.tokens import count_text
from agent_magics.core.approval import ApprovalAnswer
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.tools.schema import tool

folder = Path(sys.argv[1])
count_text("warm")

def killing(store, number):
    commit, seen = store.commit, []
    async def counted(lease, change):
        seen.append(change)
        if 2 * len(seen) - 1 == number:
            os.kill(os.getpid(), signal.SIGKILL)
        written = await commit(lease, change)
        if 2 * len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return written
    store.commit = counted

class Person:
    def __init__(self):
        self.asked = 0
    async def ask(self, request):
        self.asked += 1
        return ApprovalAnswer(word="no" if self.asked == 2 else "yes")

class Main:
    async def call(self, work):
        return work()
    def break_off(self, work):
        pass

async def scene(number):
    did = open(folder / f"{number}.did", "a", buffering=1)
    def note(text):
        did.write(text + "\\n")
        return text
    @tool
    async def look(n: int) -> str:
        await asyncio.sleep(0.001 * n)
        return note(f"look {n}")
    @tool(thread=True)
    def count(n: int) -> str:
        return note(f"count {n}")
    @tool(mutating=True)
    def write(n: int) -> str:
        return note(f"write {n}")
    def calls(*named):
        return {"calls": [{"name": name, "arguments": {"n": n}} for name, n in named]}
    steps = [calls(("look", 1), ("count", 2), ("look", 3)),
             calls(("write", 4), ("write", 5), ("look", 6)), "done"]
    store = SqlStore(folder / f"{number}.db")
    killing(store, number)
    builder = AgentBuilder(AgentConfig(default_model="scripted:x"), on_main=Main())
    builder.register_model_provider(ScriptedProvider(steps)).register_approver(Person())
    builder.register_session_storage(store)
    for each in (look, count, write):
        builder.register_tool(each)
    agent = await builder.build()
    session = await agent.new_session(SessionConfig(session_id="s"))
    await session.submit_turn("go")
    await agent.shutdown()

number = 0
while True:
    number += 1
    pid = os.fork()
    if pid == 0:
        asyncio.run(scene(number))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    print(number, code, flush=True)
    if code != -signal.SIGKILL:
        break
"""


def kills(folder: Path) -> list[int]:
    """Run the scene until no write is left to be killed at; give the numbers of the kills."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER, str(folder)],
        timeout=120,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert lines[-1][1] == 0, done.stderr  # the last one came through
    return [number for number, _ in lines[:-1]]


@pytest.mark.slow
@pytest.mark.req("inv10", "inv16", "E9", "E2", "dec43")
def test_a_kill_at_every_write(bench: Bench, tmp_path: Path) -> None:
    """Each call has one result at the next open, which says what is known; nothing runs again."""
    numbers = kills(tmp_path)
    assert len(numbers) > 16

    async def scene(number: int) -> None:
        bench.path = tmp_path / f"{number}.db"
        did = (tmp_path / f"{number}.did").read_text().splitlines()
        before = await _events(bench.path)
        if not before:  # killed before the session was
            return
        session = await bench.resumed("s", "on we go")
        _check(before, await _events(bench.path), did)
        calls = [c.call_id for m in session.messages() if isinstance(m, Assistant) for c in m.calls]
        told = [m.call_id for m in session.messages() if isinstance(m, ToolResult)]
        assert told == calls
        assert (await session.submit_turn("go on")).text == "on we go"
        await session.close()
        written = await _events(bench.path)
        again = await bench.resumed("s")
        assert await _events(bench.path) == written
        await again.close()
        assert (tmp_path / f"{number}.did").read_text().splitlines() == did

    async def scenes() -> None:
        for number in numbers:
            await scene(number)

    asyncio.run(scenes())


def _check(before: tuple[LedgerEvent, ...], after: tuple[LedgerEvent, ...], did: list[str]) -> None:
    assert after[: len(before)] == before
    assert len(set(did)) == len(did)  # nothing twice
    calls = {e.payload.call_id for e in after if isinstance(e.payload, ToolCalled)}
    answers = [e.payload for e in after if isinstance(e.payload, ToolAnswered)]
    assert sorted(answer.call_id for answer in answers) == sorted(calls)
    refused = {
        e.payload.call_id
        for e in after
        if isinstance(e.payload, Approval) and e.payload.answer == "no"
    }
    for answer in answers:
        said = answer.output.content
        if answer.call_id in refused:
            assert said == REFUSED
        elif not answer.output.is_error:
            assert said in did
        else:
            assert said == LEFT_OPEN or said.startswith("[Tool not run: `write` was not approved")
        is_unknown = answer.output.metadata.get("outcome") == "unknown"
        assert is_unknown is (said == LEFT_OPEN)


async def _events(path: Path) -> tuple[LedgerEvent, ...]:
    store = SqlStore(path)
    state = await store.load("s")
    await store.aclose()
    return state.events if state is not None else ()
