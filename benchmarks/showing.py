"""What views cost in a long session: making their state, and sending what changed of it."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import msgspec

from agent_magics.core.config import AgentConfig
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.notebook.views.comparison.comparison import answers_of
from agent_magics.notebook.views.comparison.differences import compared
from agent_magics.notebook.views.delta import state_delta
from agent_magics.notebook.views.session_state import session_state
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from benchmarks.clock import timed
from benchmarks.filled import fill
from benchmarks.table import Row

LONG, SHORT, SLOTS = 20_000, 20, 20
ROUNDS = 9
WORDS, VOCABULARY = 8_000, 4_000
_cut = re.compile(r"\w+|[^\w\s]").findall


def rows(folder: Path) -> list[Row]:
    """Take the state of a session of many turns and of one of few, and their deltas."""
    return [*asyncio.run(_rows(folder)), *_comparing()]


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


def _comparing() -> list[Row]:
    """Compare a long answer with one that differs in a word in 200, and with one of other words."""
    chance = random.Random(1)
    words, others = _prose(chance), _prose(chance)
    base = " ".join(words)
    changed = " ".join("new" if at % 200 == 0 else word for at, word in enumerate(words))
    floor = [timed(lambda: (_cut(base), _cut(changed))) for _ in range(ROUNDS)]
    return [
        Row(
            what=f"compare two answers of {WORDS:,} words, {what}",
            ours_ms=[timed(lambda: compared.__wrapped__(base, answer)) for _ in range(ROUNDS)],  # noqa: B023 - called at once
            floor="cut both into words",
            floor_ms=floor,
        )
        for what, answer in (("1 in 200 another", changed), ("unlike", " ".join(others)))
    ]


def _prose(chance: random.Random) -> list[str]:
    """Make words as often as they are in a language, in sentences."""
    ranks = range(1, VOCABULARY + 1)
    chosen = chance.choices(ranks, [1 / rank for rank in ranks], k=WORDS)
    return [f"w{rank}{'.' if at % 15 == 14 else ''}" for at, rank in enumerate(chosen)]


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
