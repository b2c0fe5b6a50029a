"""A turn with tools, stopped at every step of its loop: one result a call, nothing runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.core.config import AgentConfig, SessionConfig
from agent_magics.core.errors import StorageError
from agent_magics.core.events import Approval, LedgerEvent, ToolAnswered, ToolCalled
from agent_magics.core.hooks import HookPayload
from agent_magics.core.messages import Assistant, ToolResult
from agent_magics.core.ports import Change, Lease, SessionState
from agent_magics.core.turns import AgentEvent, Cancelled, Completed, Failed, TurnOutcome
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.agent import Agent
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.session.session import Session
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.threads.loop import background_loop
from agent_magics.tools.dispatch import ABANDONED, CANCELLED
from agent_magics.tools.schema import tool
from tests.session.approving import batch, ended

T = TypeVar("T")
LIMIT = 2_000  # steps; a turn has far fewer


async def steps(count: int) -> None:
    """Wait for so many rounds of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


class Main:
    """A main thread that takes its time to come."""

    async def call(self, work: Callable[[], T]) -> T:
        await steps(3)
        return work()

    def break_off(self, work: Callable[[], object]) -> None:
        """Do nothing: what runs here keeps the loop."""


class Slow(InMemoryStore):
    """A store that takes its time before and after it has written; it may be full."""

    def __init__(self) -> None:
        super().__init__()
        self.room: int | None = None  # writes until it is full
        self.refused = asyncio.Event()

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        await steps(1)
        if self.room is not None:
            if self.room == 0:
                self.refused.set()
                raise StorageError("The disk is full.")
            self.room -= 1
        written = await super().commit(lease, change)
        await steps(1)
        return written


class Watcher(PluginBase):
    """Looks at every tool, slowly."""

    async def before_tool_use(self, _payload: HookPayload) -> None:
        await steps(1)

    async def after_tool_use(self, _payload: HookPayload) -> None:
        await steps(1)


class Yes:
    """Somebody who says yes after a while."""

    async def ask(self, _request: ApprovalRequest) -> ApprovalAnswer:
        await steps(2)
        return ApprovalAnswer(word="yes")


class Play:
    """One agent with tools of all kinds; `ran` counts what was done."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.store = Slow()

    async def agent(self, *answers: Any) -> Agent:
        self.provider = ScriptedProvider(list(answers))
        builder = AgentBuilder(
            AgentConfig(default_model="scripted:x", session_memory_tools=False), on_main=Main()
        )
        builder.register_model_provider(self.provider)
        builder.register_session_storage(self.store)
        builder.register_plugin(Watcher()).register_approver(Yes())
        for each in self._tools():
            builder.register_tool(each)
        return await builder.build()

    def _tools(self) -> list[Any]:
        @tool
        async def look(n: int) -> str:
            self.ran[f"look {n} begins"] += 1
            await steps(n)
            self.ran[f"look {n}"] += 1
            return f"saw {n}"

        @tool
        def count(n: int) -> str:
            self.ran[f"count {n}"] += 1
            return f"counted {n}"

        @tool(mutating=True)
        async def write(n: int) -> str:
            self.ran[f"write {n} begins"] += 1
            await steps(2)
            self.ran[f"write {n}"] += 1
            return f"wrote {n}"

        return [look, count, write]


SCRIPT = [
    batch(("look", {"n": 3}), ("count", {"n": 1}), ("look", {"n": 1}), ("count", {"n": 2})),
    batch(("write", {"n": 4}), ("count", {"n": 5}), ("write", {"n": 6})),
    "done",
]


async def stop_after(turn: RunningTurn, count: int, abandon_after: int | None) -> None:
    await steps(count)
    turn.stop_wanted.set()
    if abandon_after is not None:
        await steps(abandon_after)
        turn.abandon_wanted.set()


async def play(count: int, abandon_after: int | None = None) -> bool:
    """Stop a turn at one step and look at what is left; tell whether there was a turn to stop."""
    stage = Play()
    agent = await stage.agent(*SCRIPT, "on we go")
    session = await agent.new_session(SessionConfig(session_id="s"))
    turn = await session.send_message("go")
    stopping = asyncio.ensure_future(stop_after(turn, count, abandon_after))
    shown = [event async for event in turn]
    outcome = await turn.join()
    stopping.cancel()
    _check_story(shown, outcome, stage, is_abandoned=abandon_after is not None)
    state = await stage.store.load("s")
    assert state is not None
    _check_ledger(state)
    _check_request(session)
    live = (session.messages(), session.history(), session.turns(), session.context_info())
    await session.close()
    again = await agent.resume_session("s")
    assert (again.messages(), again.history(), again.turns(), again.context_info()) == live
    reloaded = await stage.store.load("s")
    assert reloaded is not None
    assert reloaded.events == state.events
    assert (await (await again.send_message("again")).join()).reply.model == "scripted:x"
    await agent.shutdown()
    return isinstance(outcome, Cancelled)


def _check_story(
    shown: list[AgentEvent], outcome: TurnOutcome, stage: Play, *, is_abandoned: bool
) -> None:
    assert isinstance(outcome, Cancelled | Completed)
    ends = ended([event.payload for event in shown])
    assert all(times == 1 for times in stage.ran.values())
    for end in ends.values():
        said = end.output.content
        if said == CANCELLED:
            continue
        if said == ABANDONED:
            assert is_abandoned
            continue
        verb, number = said.split()
        did = {"saw": "look", "counted": "count", "wrote": "write"}[verb]
        assert stage.ran[f"{did} {number}"] == 1
    told = {end.output.content for end in ends.values()}
    done = {name for name in stage.ran if not name.endswith("begins")}
    if not is_abandoned:  # what was done is told
        assert len(done) == len(told - {CANCELLED})


def _check_ledger(state: SessionState) -> None:
    open_calls: dict[str, ToolCalled] = {}
    approved: set[str] = set()
    for event in state.events:
        match event.payload:
            case ToolCalled() as call:
                assert call.call_id not in open_calls
                open_calls[call.call_id] = call
            case Approval(call_id=call_id):
                assert call_id in open_calls
                approved.add(call_id)
            case ToolAnswered(call_id=call_id, output=output):
                del open_calls[call_id]  # one result, after its call
                if output.content.startswith("wrote"):
                    assert call_id in approved
            case _:
                pass
    assert open_calls == {}
    assert list(map(_seq, state.events)) == sorted(map(_seq, state.events))


def _seq(event: LedgerEvent) -> int:
    return event.seq


def _check_request(session: Session) -> None:
    messages = session.messages()
    calls = [call.call_id for m in messages if isinstance(m, Assistant) for call in m.calls]
    assert [m.call_id for m in messages if isinstance(m, ToolResult)] == calls


@pytest.mark.slow
@pytest.mark.req("inv10", "inv16", "E9", "E12", "E20.6")
def test_a_stop_at_every_step() -> None:
    """Whatever step the stop comes at, what began is finished and told, the rest is cancelled."""

    async def scene() -> int:
        count = 0
        while await play(count):
            count += 1
            assert count < LIMIT
        return count

    stopped = asyncio.run(background_loop().hop(scene))
    assert stopped > 50


@pytest.mark.slow
@pytest.mark.req("inv10", "inv16", "E9", "dec11")
@pytest.mark.parametrize("later", [1, 3])
def test_a_second_stop_at_every_step(later: int) -> None:
    """Who stops waiting a few steps later finds the same: one result a call, nothing twice."""

    async def scene() -> None:
        count = 0
        while await play(count, abandon_after=later):
            count += 1
            assert count < LIMIT

    asyncio.run(background_loop().hop(scene))


async def play_full(room: int) -> bool:
    """Take a turn with a store that is full after some writes; tell whether it was ever full."""
    stage = Play()
    agent = await stage.agent(*SCRIPT, "on we go")
    session = await agent.new_session(SessionConfig(session_id="s"))
    stage.store.room = room
    turn = await session.send_message("go")
    asked: list[int] = []
    watching = asyncio.ensure_future(_when_full(stage, asked))
    outcome = await turn.join()
    watching.cancel()
    if isinstance(outcome, Completed):
        await agent.shutdown()
        return False
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "STORAGE_ERROR"
    assert asked == [len(stage.provider.requests)]  # nothing was asked after it
    ran = dict(stage.ran)
    await steps(20)
    assert stage.ran == ran  # and no tool runs on
    stage.store.room = None
    await session.close()
    again = await agent.resume_session("s")
    state = await stage.store.load("s")
    assert state is not None
    _check_ledger(state)
    _check_request(again)
    assert all(times == 1 for times in stage.ran.values())
    await agent.shutdown()
    return True


async def _when_full(stage: Play, asked: list[int]) -> None:
    await stage.store.refused.wait()
    asked.append(len(stage.provider.requests))


@pytest.mark.req("E2", "E3", "E9", "E20.7", "inv10")
def test_a_full_disk_at_every_write() -> None:
    """The turn fails at once, and the next open gives each call that was recorded its result."""

    async def scene() -> int:
        room = 0
        while await play_full(room):
            room += 1
            assert room < LIMIT
        return room

    assert asyncio.run(background_loop().hop(scene)) > 12
