"""Sessions that are long already, their turns written without a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from agent_magics.context.tokens import count_payload
from agent_magics.core.config import SessionConfig
from agent_magics.core.events import NewEvent
from agent_magics.core.ports import Change, Owner, SessionStorage
from agent_magics.session.agent import Agent
from benchmarks.trace import turns


async def fill(agent: Agent, store: SessionStorage, session_id: str, size: int) -> None:
    """Make a session of `size` turns in the agent's store; it is closed again."""
    session = await agent.new_session(SessionConfig(session_id=session_id))
    await session.close()
    state = await store.load(session_id)
    assert state is not None
    owner = Owner(pid=os.getpid(), host="bench", since=datetime.now(UTC))
    lease = await store.acquire(session_id, owner)
    await store.commit(lease, Change(events=tuple(_events(size, state.slots[0].uid))))
    await store.release(lease)


def _events(size: int, slot_uid: str) -> Iterator[NewEvent]:
    now = datetime.now(UTC)
    for number, (asked, said) in enumerate(turns(size)):
        for payload in (*asked, *said):
            yield NewEvent(
                payload=payload,
                created_at=now,
                slot_uid=slot_uid,
                turn_id=f"turn-{number}",
                tokens=count_payload(payload),
            )
