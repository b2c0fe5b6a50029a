"""Sessions that are almost full, and what is asked and stored in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.config import CompactionConfig
from agent_magics.core.messages import Assistant, Message, User, text_of
from agent_magics.session.session import Session

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 22  # about 310 tokens
SUMMARY = "\n".join(f"## {heading}\nShort." for heading in SUMMARY_HEADINGS)
SMALL: dict[str, Any] = {
    "context_limit": 4_000,
    "compaction": CompactionConfig(reserve_tokens=2_000, keep_recent_tokens=300),
}


def summary(text: str = SUMMARY, **more: Any) -> dict[str, Any]:
    return {"text": text, "purpose": "compaction", **more}


async def filled(bench: Bench, *steps: Any, turns: int = 3, **how: Any) -> Session:
    """Make a session "s" of some turns of about 620 tokens each."""
    answers = [f"{LONG} answer {n}" for n in range(turns)]
    settings = {"session_id": "s", **SMALL, **how}
    session = await bench.session(*answers, *steps, **settings)
    for n in range(turns):
        await session.submit_turn(f"{LONG} prompt {n}")
    return session


def texts(messages: Sequence[Message]) -> list[str]:
    """Give what people and models said."""
    return [text_of(m.content) for m in messages if isinstance(m, User | Assistant)]


def asked_for_summaries(bench: Bench) -> int:
    return [request.purpose for request in bench.provider.requests].count("compaction")


def sql(bench: Bench, statement: str, *values: Any) -> list[Any]:
    """Run SQL on the ledger behind the store's back."""
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as ledger:
        return ledger.execute(statement, values).fetchall()
