"""A process that writes to a store; run as `python -m tests.ledger.writer PATH SESSION WHAT`.

WHAT is a number of appends, `hold` (open the session, draft, wait to be killed), or `storm`
(append until killed). It prints `open` once it has the session, or the error it got.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from agent_magics.core.errors import AgentError
from agent_magics.core.events import Draft
from agent_magics.core.ports import Change, Owner
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import new, slot, user


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def write(path: Path, session: str, what: str) -> None:
    store = SqlStore(path, busy_timeout_s=30)
    me = Owner(pid=os.getpid(), host="here", since=datetime.now(UTC))
    lease = await store.acquire(session, me, create=True)
    say("open")
    await store.commit(lease, Change(slots=(slot(),)))
    await store.save_draft(lease, Draft(slot_uid="u1", turn_id="t1", text="half an answ"))
    if what == "hold":
        await asyncio.sleep(600)
    count = int(what) if what.isdigit() else sys.maxsize
    for number in range(count):
        await store.commit(lease, Change(events=(new(user(f"{session} {number}")),)))
    await store.aclose()


if __name__ == "__main__":
    try:
        asyncio.run(write(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
    except AgentError as error:
        say(f"{error.code} {error.message}")
