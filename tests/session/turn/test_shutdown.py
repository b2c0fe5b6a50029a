"""One end of an agent: shared by who asks for it, taken over by force, finished by a later call."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from agent_magics.core.config import SessionConfig
from agent_magics.core.errors import AgentShutdown
from agent_magics.core.hooks import HookPayload
from agent_magics.session.agent import Agent
from agent_magics.session.extensions.plugins import PluginBase

if TYPE_CHECKING:
    from tests.session.conftest import Bench

PATIENCE_S = 5.0


class Slow(PluginBase):
    """It hangs at one moment until it is let go, and notes what it hears."""

    def __init__(self, hangs_at: str = "", *, plugin_id: str = "") -> None:
        self.plugin_id = plugin_id
        self.log: list[str] = []
        self.hangs_at = hangs_at
        self.entered = threading.Event()
        self.agent: Agent | None = None

    async def session_end(self, _: HookPayload) -> None:
        await self._at("session")

    async def shutdown(self) -> None:
        await self._at("plugin")

    async def _at(self, moment: str) -> None:
        self.log.append(moment)
        if self.agent is not None:
            await self.agent.shutdown()
        if self.hangs_at == moment:
            self.entered.set()
            await asyncio.sleep(PATIENCE_S * 2)

    async def hanging(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, PATIENCE_S)


async def is_over(agent: Agent) -> bool:
    """Tell whether the agent has been shut down to its end."""
    with pytest.raises(AgentShutdown):
        await agent.list_sessions()
    return True


@pytest.mark.req("dec14", "dec50", "E4")
@pytest.mark.parametrize("moment", ["session", "plugin"])
def test_force_takes_over_a_slow_shutdown(bench: Bench, moment: str) -> None:
    """It ends everything within its patience, and who waited without force is told of that end."""
    plugin = Slow(moment)

    async def scene() -> None:
        agent = await bench.agent("a", plugins=(plugin,))
        session = await agent.new_session(SessionConfig(session_id="s"))
        slow = asyncio.ensure_future(agent.shutdown())
        await plugin.hanging()
        plugin.hangs_at = ""
        async with asyncio.timeout(PATIENCE_S / 2):
            await agent.shutdown(force=True)
            await slow
        assert session.is_closed
        assert plugin.log[-1] == "plugin"
        assert plugin.log.count("plugin") == 1
        assert await is_over(agent)
        assert (await bench.resumed("s")).session_id == "s"

    asyncio.run(scene())


@pytest.mark.req("E4")
@pytest.mark.parametrize("moment", ["session", "plugin"])
def test_a_later_call_finishes_what_a_cancel_broke_off(bench: Bench, moment: str) -> None:
    """The session goes on where it was still open; where it is closed, no other opens."""
    plugin, other = Slow(moment), Slow(plugin_id="other")

    async def scene() -> None:
        agent = await bench.agent("a", plugins=(other, plugin))
        session = await agent.new_session()
        cancelled = asyncio.ensure_future(agent.shutdown())
        await plugin.hanging()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert "plugin" not in other.log
        if moment == "session":
            assert (await session.submit_turn("q")).text == "a"
        else:
            with pytest.raises(AgentShutdown):
                await agent.new_session()
        plugin.hangs_at = ""
        await agent.shutdown()
        assert other.log[-1] == "plugin"
        assert await is_over(agent)

    asyncio.run(scene())


@pytest.mark.req("E4")
def test_who_shuts_down_meanwhile_waits_for_the_same_end(bench: Bench) -> None:
    """A cancel of one of them is no cancel of the other's."""
    plugin = Slow("session")

    async def scene() -> None:
        agent = await bench.agent(plugins=(plugin,))
        await agent.new_session()
        first = asyncio.ensure_future(agent.shutdown())
        await plugin.hanging()
        second, third = (asyncio.ensure_future(agent.shutdown()) for _ in range(2))
        await asyncio.sleep(0.05)
        assert not second.done()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert not second.done()
        await agent.shutdown(force=True)
        await asyncio.gather(second, third)
        assert plugin.log.count("plugin") == 1

    asyncio.run(scene())


@pytest.mark.req("E4", "E14")
def test_what_is_being_ended_may_ask_for_the_end(bench: Bench) -> None:
    """A plugin that shuts its agent down when it hears of the end doesn't wait for itself."""
    plugin = Slow()

    async def scene() -> None:
        plugin.agent = await bench.agent(plugins=(plugin,))
        await plugin.agent.new_session()
        async with asyncio.timeout(PATIENCE_S):
            await plugin.agent.shutdown()
        assert plugin.log == ["session", "plugin"]
        assert await is_over(plugin.agent)

    asyncio.run(scene())
