"""What a turn costs in a slot that has lasted long: its tail, and no word counted twice.

Sessions are kept in memory here, so that the disk doesn't hide what the engine takes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from benchmarks.filled import fill
from benchmarks.table import Row
from benchmarks.trace import ANSWER, QUESTION

SHORT, LONG, LONGEST = 10, 10_000, 20_000
ROUNDS = 15
WINDOW = 10_000_000
KEEP_TOKENS = 500
SESSION = "bench"
SUMMARY = "\n".join(f"## {heading}\nChurn and its causes." for heading in SUMMARY_HEADINGS)


def rows(folder: Path) -> list[Row]:
    """Measure budgets and turns of long slots, each beside those of a short one."""
    del folder
    return asyncio.run(_measured())


async def _measured() -> list[Row]:
    return [
        await _beside_short(_weigh, "weigh the next request of", LONGEST, is_compacted=True),
        await _beside_short(_turn, "a turn in a slot of", LONG, is_compacted=True),
        await _beside_short(_turn, "a turn in a slot of", LONG, is_compacted=False),
        await _beside_counting(),
    ]


async def _beside_short(
    work: Callable[[Session], Awaitable[object]], what: str, size: int, *, is_compacted: bool
) -> Row:
    """Do the same in a long slot and in a short one, in turns of one another."""
    ours, floor = [], []
    async with (
        _opened(size, is_compacted=is_compacted) as long,
        _opened(SHORT, is_compacted=is_compacted) as short,
    ):
        for _ in range(ROUNDS):
            ours.append(await _timed(work(long)))
            floor.append(await _timed(work(short)))
    where = "behind a checkpoint" if is_compacted else "in view"
    return Row(
        what=f"{what} {size:,} turns {where}",
        ours_ms=ours,
        floor=f"the same with {SHORT} turns {where}",
        floor_ms=floor,
    )


async def _beside_counting() -> Row:
    ours, floor = [], []
    async with _opened(LONG, is_compacted=False) as session:
        for _ in range(ROUNDS):
            ours.append(await _timed(_turn(session)))
            floor.append(await _timed(_count(session.next_request().request)))
    return Row(
        what=f"a turn in a slot of {LONG:,} turns in view",
        ours_ms=ours,
        floor="count the words of its request",
        floor_ms=floor,
    )


@asynccontextmanager
async def _opened(size: int, *, is_compacted: bool) -> AsyncIterator[Session]:
    store = InMemoryStore()
    config = AgentConfig(
        default_model="scripted:bench",
        compaction=CompactionConfig(enabled=False, keep_recent_tokens=KEEP_TOKENS),
    )
    model = ScriptedProvider([_answer], repeat=True, context_window=WINDOW)
    builder = AgentBuilder(config)
    builder.register_model_provider(model).register_session_storage(store)
    agent = await builder.build()
    await fill(agent, store, SESSION, size)
    session = await agent.resume_session(SESSION)
    if is_compacted:
        await session.compact()
    await _turn(session)
    yield session
    await agent.shutdown()


def _answer(request: ChatRequest) -> dict[str, object]:
    return {"text": SUMMARY if request.purpose == "compaction" else ANSWER, "chunks": 1}


async def _turn(session: Session) -> None:
    await session.submit_turn(QUESTION)


async def _weigh(session: Session) -> None:
    session.context_info()


async def _count(request: ChatRequest) -> None:
    sum(map(count_message, request.messages))


async def _timed(work: Awaitable[object]) -> float:
    begin = time.perf_counter()
    await work
    return (time.perf_counter() - begin) * 1_000
