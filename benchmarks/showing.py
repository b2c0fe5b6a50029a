"""What views cost in a long session: making their state, and sending what changed of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from agent_magics.core.config import AgentConfig
from agent_magics.ledger.store import SqlStore
from agent_magics.notebook.views.comparison import answers_of
from agent_magics.notebook.views.delta import state_delta
from agent_magics.notebook.views.state import session_state
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from benchmarks.clock import timed
from benchmarks.filled import fill
from benchmarks.table import Row

LONG, SHORT, SLOTS = 20_000, 20, 20
ROUNDS = 9


def rows(folder: Path) -> list[Row]:
    """Take the state of a session of many turns and of one of few, and their deltas."""
    return asyncio.run(_rows(folder))


async def _rows(folder: Path) -> list[Row]:
    store = SqlStore(folder / "ledger.db")
    provider = ScriptedProvider(["."])
    config = AgentConfig(default_model="scripted:bench")
    builder = AgentBuilder(config).register_model_provider(provider)
    agent = await builder.register_session_storage(store).build()
    found = {}
    for size in (LONG, SHORT):
        await fill(agent, store, f"s{size}", size)
        session = await agent.resume_session(f"s{size}")
        for number in range(SLOTS):
            await session.derive_slot(f"slot-{number}", "default")
        found[size] = await asyncio.to_thread(_measured, session)
        await session.close()
    await agent.shutdown()
    await store.aclose()
    (made, deltas, wholes, sizes, answers), (floor, *_, few) = found[LONG], found[SHORT]
    return [
        Row(
            what=f"session state, {LONG:,} turns in each of {SLOTS + 1} slots",
            ours_ms=made,
            floor=f"the same of {SHORT} turns",
            floor_ms=floor,
        ),
        Row(
            what=f"find and encode what changed ({sizes[0]:,} bytes)",
            ours_ms=deltas,
            floor=f"encode the whole state ({sizes[1]:,} bytes)",
            floor_ms=wholes,
        ),
        Row(
            what=f"read the answers of a slot of {LONG:,} turns, to compare them",
            ours_ms=answers,
            floor=f"the same of {SHORT} turns",
            floor_ms=few,
        ),
    ]


Measured = tuple[list[float], list[float], list[float], tuple[int, int], list[float]]


def _measured(session: Session) -> Measured:
    """Take the state again and again; what changes is where one is."""
    made, deltas, wholes, answers = [], [], [], []
    before = session_state(session)
    for _ in range(ROUNDS):
        made.append(timed(lambda: session_state(session)))
        after = _grown(before)
        deltas.append(timed(lambda: _encoded(state_delta(before, after))))  # noqa: B023 - called at once
        wholes.append(timed(lambda: _encoded(after)))  # noqa: B023 - called at once
        answers.append(timed(lambda: answers_of(session, "slot-1")))
    sizes = len(_encoded(state_delta(before, after))), len(_encoded(after))
    return made, deltas, wholes, sizes, answers


def _grown(state: dict[str, Any]) -> dict[str, Any]:
    """Make the state that a turn leaves: one slot's counts and its budget are others."""
    slot = state["slots"][0]
    slots = [{**slot, "turns": slot["turns"] + 1, "tokens": slot["tokens"] + 90}]
    budget = {**state["budget"], "used": state["budget"]["used"] + 90}
    return {**state, "slots": [*slots, *state["slots"][1:]], "budget": budget}


def _encoded(state: object) -> bytes:
    return msgspec.json.encode(state)
