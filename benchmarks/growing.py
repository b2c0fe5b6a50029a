"""What a long session costs: opening it, weighing its next request, deriving a slot from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from agent_magics.core.config import AgentConfig
from agent_magics.core.events import SlotChanged, decode_payload
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.agent import Agent
from agent_magics.session.builder import AgentBuilder
from benchmarks.filled import fill
from benchmarks.floor import Floor
from benchmarks.table import Row
from benchmarks.trace import turns

SIZES = (100, 10_000)
ROUNDS = 7
SESSION = "bench"
FLOORS = {
    "resume": "read and decode the same rows",
    "messages for the model": "read and decode the same rows",
    "derive a slot": "one durable row",
}


def rows(folder: Path) -> list[Row]:
    """Measure at each size."""
    return [row for size in SIZES for row in _at(folder / str(size), size)]


def _at(folder: Path, size: int) -> list[Row]:
    folder.mkdir()
    floor = Floor(folder / "floor.db")
    for asked, said in turns(size):
        floor.stage([*asked, *said])
    floor.end()
    asyncio.run(_fill(folder / "ledger.db", size))
    rounds = [asyncio.run(_round(folder / "ledger.db", floor, n)) for n in range(ROUNDS)]
    floor.close()
    return [
        Row(
            what=f"{what} at {size:,} turns",
            ours_ms=[seen[what][0] for seen in rounds],
            floor=f"raw sqlite3: {does}",
            floor_ms=[seen[what][1] for seen in rounds],
        )
        for what, does in FLOORS.items()
    ]


async def _round(path: Path, floor: Floor, number: int) -> dict[str, tuple[float, float]]:
    begin = time.perf_counter()
    agent, store = await _agent(path)
    session = await agent.resume_session(SESSION)
    resumed = _since(begin)
    read = _timed(lambda: [decode_payload(payload) for _, _, payload in floor.read()])
    projected = _timed(session.messages)
    begin = time.perf_counter()
    await session.derive_slot(f"child-{number}", "default")
    derived = _since(begin)
    row = SlotChanged(action="derived", slot_id=f"child-{number}", parent_id="default")
    inserted = _timed(lambda: floor.commit([row]))
    await agent.shutdown()
    await store.aclose()
    return {
        "resume": (resumed, read),
        "messages for the model": (projected, read),
        "derive a slot": (derived, inserted),
    }


async def _agent(path: Path) -> tuple[Agent, SqlStore]:
    store = SqlStore(path)
    builder = AgentBuilder(AgentConfig(default_model="scripted:bench"))
    builder.register_model_provider(ScriptedProvider([])).register_session_storage(store)
    return await builder.build(), store


async def _fill(path: Path, size: int) -> None:
    agent, store = await _agent(path)
    await fill(agent, store, SESSION, size)
    await agent.shutdown()
    await store.aclose()


def _since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1_000


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return _since(begin)
