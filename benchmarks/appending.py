"""What it costs to append a turn durably."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent_magics.core.events import NewEvent, Payload
from agent_magics.core.ports import Change, Owner
from agent_magics.ledger.store import SqlStore
from benchmarks.floor import Floor
from benchmarks.table import Row
from benchmarks.trace import turns

TURNS = 300


def rows(folder: Path) -> list[Row]:
    """Append turns to the store and to the floor, in turns of one another."""
    return [asyncio.run(_append(folder))]


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


def _change(payloads: Sequence[Payload]) -> Change:
    now = datetime.now(UTC)
    events = tuple(
        NewEvent(payload=payload, created_at=now, slot_uid="s", turn_id="t") for payload in payloads
    )
    return Change(events=events)
