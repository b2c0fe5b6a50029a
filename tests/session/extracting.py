"""Sessions whose turns are read for memories: scripted answers, and what was asked and kept."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

from agent_magics.core.chat import ChatRequest
from agent_magics.core.events import Metadata
from agent_magics.core.memories import Memory
from agent_magics.core.messages import text_of
from agent_magics.core.turns import Completed, TurnOutcome
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.session.session import Session

if TYPE_CHECKING:
    from tests.session.conftest import Bench


class Reached:
    """A step of a script that tells when it is asked for, and then takes its time."""

    def __init__(self, step: dict[str, Any]) -> None:
        self._step = step
        self._event = threading.Event()

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        self._event.set()
        return self._step

    async def wait(self) -> None:
        assert await asyncio.to_thread(self._event.wait, 10)


def operations(*given: dict[str, Any], **step: Any) -> dict[str, Any]:
    """Make a scripted answer to an extraction."""
    answer = {"memoryOperations": list(given), "rolloutSummary": "On tea.", "rolloutSlug": "tea"}
    return {"text": json.dumps(answer), "purpose": "memory", **step}


def create(content: str = "likes tea", *tags: str) -> dict[str, Any]:
    return {"action": "create", "content": content, "tags": list(tags)}


def warned(outcome: TurnOutcome) -> str:
    """Give the warnings of a completed turn."""
    assert isinstance(outcome, Completed)
    return " ".join(outcome.warnings)


def asked(bench: Bench) -> list[str]:
    """Give the conversations that were read for memories."""
    return [
        text_of(request.messages[-1].content).partition("<conversation>\n")[2]  # type: ignore[union-attr,arg-type]
        for request in bench.provider.requests
        if request.purpose == "memory"
    ]


def checkpoints(session: Session) -> list[dict[str, Any]]:
    events = (event.payload for event in session._open_session.loaded.events)
    return [e.value for e in events if isinstance(e, Metadata) and e.key == "memory_checkpoint"]


async def left_unread(bench: Bench) -> InMemoryMemoryStore:
    """Give the memories of a session "s" that was closed by force with one turn unread."""
    store = InMemoryMemoryStore()
    session = await bench.session("a", memories=store, session_id="s")
    await session.submit_turn("I like tea.")
    await session.close(force=True)
    return store


async def kept(storage: InMemoryMemoryStore, namespace: str = "default") -> dict[str, Memory]:
    return {each.memory_id: each for each in await storage.list_by_namespace(namespace)}


async def contents(storage: InMemoryMemoryStore, namespace: str = "default") -> list[str]:
    return sorted(each.content for each in (await kept(storage, namespace)).values())
