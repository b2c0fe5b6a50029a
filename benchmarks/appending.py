"""What it costs to append a turn durably."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent_magics.core.config import AgentConfig
from agent_magics.core.events import NewEvent, Payload
from agent_magics.core.ports import Change, Owner
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from benchmarks.floor import Floor
from benchmarks.table import Row
from benchmarks.trace import ANSWER, QUESTION, turns

TURNS = 300


def rows(folder: Path) -> list[Row]:
    """Append turns to the store, and run whole turns of a session, each beside the floor."""
    return [asyncio.run(_append(folder)), asyncio.run(_converse(folder))]


async def _append(folder: Path) -> Row:
    floor = Floor(folder / "floor.db")
    store = SqlStore(folder / "ledger.db")
    owner = Owner(pid=os.getpid(), host="bench", since=datetime.now(UTC))
    lease = await store.acquire("bench", owner, create=True)
    ours: list[float] = []
    raw: list[float] = []
    for asked, said in turns(TURNS):
        begin = time.perf_counter()
        await store.commit(lease, _change(asked))
        await store.commit(lease, _change(said))
        between = time.perf_counter()
        floor.commit(asked)
        floor.commit(said)
        ours.append((between - begin) * 1_000)
        raw.append((time.perf_counter() - between) * 1_000)
    await store.aclose()
    floor.close()
    return Row(
        what="append a turn to the store (2 commits)",
        ours_ms=ours,
        floor="raw sqlite3, the same 2 commits",
        floor_ms=raw,
    )


async def _converse(folder: Path) -> Row:
    floor = Floor(folder / "floor-of-turns.db")
    store = SqlStore(folder / "turns.db")
    model = ScriptedProvider([{"text": ANSWER, "chunks": 1}], repeat=True)
    builder = AgentBuilder(AgentConfig(default_model="scripted:bench"))
    builder.register_model_provider(model).register_session_storage(store)
    agent = await builder.build()
    session = await agent.new_session()
    ours: list[float] = []
    raw: list[float] = []
    for asked, said in turns(TURNS):
        begin = time.perf_counter()
        await session.submit_turn(QUESTION)
        between = time.perf_counter()
        floor.commit(asked)
        floor.commit(said)
        ours.append((between - begin) * 1_000)
        raw.append((time.perf_counter() - between) * 1_000)
    await agent.shutdown()
    await store.aclose()
    floor.close()
    return Row(
        what=f"a whole turn of a session, {TURNS} in a row",
        ours_ms=ours,
        floor="raw sqlite3, its 2 commits",
        floor_ms=raw,
    )


def _change(payloads: Sequence[Payload]) -> Change:
    now = datetime.now(UTC)
    events = tuple(
        NewEvent(payload=payload, created_at=now, slot_uid="s", turn_id="t") for payload in payloads
    )
    return Change(events=events)
