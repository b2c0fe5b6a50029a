"""Agents and sessions on real files with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.ledger.sqlite.memories import SqlMemoryStore
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.agent import Agent
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session

T = TypeVar("T")


class Bench:
    """One store on disk; agents and sessions made on it are closed at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite"
        self._stores: list[SqlStore] = []
        self._agents: list[Agent] = []

    async def agent(self, *steps: Any, stored: bool = True, **settings: Any) -> Agent:
        tools = settings.pop("tools", ())
        plugins = settings.pop("plugins", ())
        skills = settings.pop("skills", ())
        references = settings.pop("references", ())
        approver = settings.pop("approver", None)
        memories = settings.pop("memories", None)  # a storage; True: in the store's file
        store = settings.pop("store", None) or SqlStore(self.path)
        settings.setdefault("session_memory_tools", False)  # their schemas weigh on small windows
        self.provider = ScriptedProvider(list(steps))
        config = AgentConfig(default_model="scripted:test", **settings)
        builder = AgentBuilder(config).register_model_provider(self.provider)
        for tool in tools:
            builder.register_tool(tool)
        for plugin in plugins:
            builder.register_plugin(plugin)
        for skill in skills:
            builder.register_skill(skill)
        for source in references:
            builder.register_reference_source(source)
        if approver is not None:
            builder.register_approver(approver)
        if stored:
            memories = SqlMemoryStore(store) if memories is True else memories
            self._stores.append(store)
            builder.register_session_storage(store)
        if memories is not None:
            builder.register_memory_storage(memories)
        agent = await builder.build()
        self._agents.append(agent)
        return agent

    async def session(self, *steps: Any, session_id: str | None = None, **settings: Any) -> Session:
        agent = await self.agent(*steps, **settings)
        return await agent.new_session(SessionConfig(session_id=session_id))

    async def resumed(self, session_id: str, *steps: Any, **settings: Any) -> Session:
        """Open a stored session with a new agent on a new store, as another process would."""
        agent = await self.agent(*steps, **settings)
        return await agent.resume_session(session_id)

    async def aclose(self) -> None:
        for agent in self._agents:
            await agent.shutdown()
        for store in self._stores:
            await store.aclose()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    asyncio.run(made.aclose())


Scene = Callable[[], Awaitable[T]]
