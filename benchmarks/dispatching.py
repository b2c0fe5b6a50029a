"""What running a tool costs beside the tool, and a turn beside its model and its writes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_magics.core.config import AgentConfig
from agent_magics.core.events import Payload, ToolAnswered, ToolCalled
from agent_magics.core.messages import ToolCall, ToolOutput
from agent_magics.core.ports import ToolInput
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.threads.loop import background_loop
from agent_magics.tools.dispatch import Dispatcher, FinishedCall
from agent_magics.tools.schema import tool
from benchmarks.clock import timed_waiting
from benchmarks.floor import Floor
from benchmarks.table import Row
from benchmarks.trace import ANSWER, QUESTION, turn

CALLS = 200
BATCH = 10
TURNS = 15
TIMEOUT_S = 120.0


def rows(folder: Path) -> list[Row]:
    """Measure the dispatcher alone, then whole turns on disk."""
    return background_loop().run(_measured(folder))


async def _measured(folder: Path) -> list[Row]:
    return [
        await _calls("run one call", each=1),
        await _calls(f"run one of {BATCH} calls at once", each=BATCH),
        await _turns(folder / "plain", calls=0),
        await _turns(folder / "tools", calls=BATCH),
    ]


@tool
async def look(row: int) -> str:
    """Look at a row."""
    return f"row {row}"


class Unwatched:
    """A watcher that writes nothing down."""

    def call_started(self, call: ToolCall) -> None:
        pass

    async def call_finished(self, finished: FinishedCall) -> None:
        pass


async def _calls(what: str, *, each: int) -> Row:
    """Dispatch batches of `each` calls; the floor runs the tools in tasks with a time-out."""
    dispatcher = Dispatcher(
        [look], AgentConfig(default_model="scripted:bench"), background_loop().main
    )
    stop, abandon = asyncio.Event(), asyncio.Event()
    calls = [
        ToolCall(call_id=str(number), tool_name="look", arguments={"row": number})
        for number in range(each)
    ]

    async def dispatch() -> None:
        await dispatcher.run(calls, Unwatched(), stop=stop, abandon=abandon)

    async def bare() -> None:
        await asyncio.gather(*map(_bare, calls))

    ours, floor = [], []
    for _ in range(CALLS // each):
        ours.append(await timed_waiting(dispatch) / each)
        floor.append(await timed_waiting(bare) / each)
    return Row(what=what, ours_ms=ours, floor="the tool in a task with a time-out", floor_ms=floor)


async def _bare(call: ToolCall) -> ToolOutput:
    given = ToolInput(
        call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments or {}
    )
    return await asyncio.wait_for(look.execute(given, background_loop().main), TIMEOUT_S)


async def _turns(path: Path, *, calls: int) -> Row:
    """Take turns with a scripted model; the floor writes the same events durably, as many times."""
    floor = Floor(path.with_suffix(".floor.db"))
    store = SqlStore(path.with_suffix(".ledger.db"))
    builder = AgentBuilder(AgentConfig(default_model="scripted:bench", session_memory_tools=False))
    builder.register_model_provider(ScriptedProvider(_script(calls) * (TURNS + 1)))
    agent = await builder.register_tool(look).register_session_storage(store).build()
    session = await agent.new_session()
    await session.submit_turn(QUESTION)  # the first one titles the session
    ours, raw = [], []
    for number in range(TURNS):
        ours.append(await timed_waiting(lambda: session.submit_turn(QUESTION)))
        raw.append(_written(floor, number, calls))
    await agent.shutdown()
    await store.aclose()
    floor.close()
    what = f"a turn with {calls} tool calls" if calls else "a turn"
    return Row(what=what, ours_ms=ours, floor="raw sqlite3: its writes", floor_ms=raw)


def _script(calls: int) -> list[Any]:
    asked = [{"name": "look", "arguments": {"row": number}} for number in range(calls)]
    return [{"calls": asked}, ANSWER] if calls else [ANSWER]


def _written(floor: Floor, number: int, calls: int) -> float:
    asked, said = turn(number)
    names = [str(call) for call in range(calls)]
    called: Sequence[Payload] = [
        ToolCalled(call_id=name, tool_name="look", arguments={"row": int(name)}) for name in names
    ]
    begin = time.perf_counter()
    floor.commit(asked)
    if calls:
        floor.commit([*said, *called])
        for name in names:
            output = ToolOutput(content=f"row {name}")
            floor.commit([ToolAnswered(call_id=name, tool_name="look", output=output)])
    floor.commit(said)
    return (time.perf_counter() - begin) * 1_000
