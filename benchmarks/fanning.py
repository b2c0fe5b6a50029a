"""What asking many slots at once takes beside asking the slowest of them alone."""

from __future__ import annotations

from pathlib import Path

from agent_magics.core.config import AgentConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.threads.loop import background_loop
from benchmarks.clock import timed_waiting
from benchmarks.table import Row
from benchmarks.trace import QUESTION

SLOTS = (2, 8, 32)
SLOWEST_S = 0.4
ROUNDS = 4


def rows(folder: Path) -> list[Row]:
    """Ask 2, 8 and 32 slots whose models take different times, on disk."""
    return background_loop().run(_measured(folder))


async def _measured(folder: Path) -> list[Row]:
    return [await _fan(folder / f"{count}.db", count) for count in SLOTS]


async def _fan(path: Path, count: int) -> Row:
    names = [f"s{number}" for number in range(count)]
    builder = AgentBuilder(AgentConfig(default_model="model0:x", session_memory_tools=False))
    for number in range(count):
        delay_s = SLOWEST_S * (number + 1) / count
        step = {"text": "It is done.", "delay_s": delay_s}
        builder.register_model_provider(
            ScriptedProvider([step], provider_id=f"model{number}", repeat=True)
        )
    store = SqlStore(path)
    agent = await builder.register_session_storage(store).build()
    session = await agent.new_session()
    for number, name in enumerate(names):
        await session.create_slot(name)
        await session.configure_slot(name, model=f"model{number}:x")
    await session.fan_out(QUESTION, names)  # the first one titles the session
    ours, floor = [], []
    for _ in range(ROUNDS):
        ours.append(await timed_waiting(lambda: session.fan_out(QUESTION, names)))
        floor.append(await timed_waiting(lambda: _alone(session, names[-1])))
    await agent.shutdown()
    await store.aclose()
    return Row(
        what=f"ask {count} slots at once", ours_ms=ours, floor="the slowest alone", floor_ms=floor
    )


async def _alone(session: Session, slot: str) -> None:
    await session.submit_turn(QUESTION, slot=slot)
