"""What plugins hear of a turn and can do to it, both ways of running one."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    AgentShutdown,
    InputValidation,
    PluginAborted,
    PluginFailed,
    SessionNotFound,
    StorageError,
)
from agent_magics.core.events import LedgerEvent, UserMessage
from agent_magics.core.hooks import (
    Abort,
    ContinueWith,
    HookPayload,
    HookResult,
    TurnEnding,
    TurnStarting,
    TurnStartPatch,
)
from agent_magics.core.messages import User, text_of
from agent_magics.core.ports import Change, Lease
from agent_magics.core.skills import Skill
from agent_magics.core.turns import Cancelled, Completed, Failed, Panicked, TextChunk
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from agent_magics.session.session import Session
    from agent_magics.session.state.running_turn import RunningTurn
    from tests.session.conftest import Bench


SKILL = Skill(name="brief", display_name="", description="", prompt_template="Be brief.")


@tool
def one() -> str:
    """Give one."""
    return "1"


class Watch(PluginBase):
    """Writes down what it hears of turns, and answers what it is told to."""

    def __init__(self, *, start: Any = None, end: Any = None) -> None:
        self.heard: list[HookPayload] = []
        self.start = start
        self.end = end

    def turn_start(self, payload: HookPayload) -> HookResult | None:
        return self._answer(payload, self.start)

    def turn_end(self, payload: HookPayload) -> HookResult | None:
        return self._answer(payload, self.end)

    @property
    def ends(self) -> list[TurnEnding]:
        return [each.data for each in self.heard if isinstance(each.data, TurnEnding)]

    def _answer(self, payload: HookPayload, answer: Any) -> HookResult | None:
        self.heard.append(payload)
        if isinstance(answer, BaseException):
            raise answer
        given: HookResult | None = answer
        return given


async def kinds_of(turn: RunningTurn) -> list[str]:
    return [type(event.payload).__name__ async for event in turn]


def sent_texts(bench: Bench, at: int = -1) -> list[str]:
    messages = bench.provider.requests[at].messages
    return [text_of(message.content) for message in messages if isinstance(message, User)]


@pytest.mark.req("E13", "E7", "dec8")
def test_a_turn_is_told_at_both_ends(bench: Bench) -> None:
    """Payloads say slot, turn and its index; the end has the answer and counts the calls."""
    watch = Watch()

    async def scene() -> None:
        session = await bench.session(
            "first", {"calls": [{"name": "one"}]}, "done", plugins=(watch,), tools=(one,)
        )
        await session.submit_turn("q")
        await session.derive_slot("side", "default")
        watch.heard.clear()
        reply = await session.submit_turn("again", slot="side")
        start, end = watch.heard
        assert (start.event, start.slot_id, start.turn_index) == ("turn_start", "side", 2)
        assert start.turn_id == end.turn_id == reply.turn_id
        assert start.session_id == session.session_id
        assert isinstance(start.data, TurnStarting)
        assert text_of(start.data.user_input.content) == "again"
        assert end.data == TurnEnding(assistant_output="done", tool_calls_count=1, cancelled=False)

    asyncio.run(scene())


@pytest.mark.req("E7", "E13", "E15")
def test_a_turn_goes_in_the_order_of_its_stages(bench: Bench) -> None:
    """Start hook, skill, prompt, request, answer with its call, tool, result, request, end hook."""
    log: list[str] = []
    opened: list[Session] = []

    def stage(name: str) -> None:
        recorded = [type(event.payload).__name__ for event in opened[0].history()]
        log.append(f"{name} after {recorded[-1] if recorded else 'nothing'}")

    class Stages(PluginBase):
        def turn_start(self, _: HookPayload) -> None:
            stage("turn_start")

        def before_tool_use(self, _: HookPayload) -> None:
            stage("before_tool_use")

        def after_tool_use(self, _: HookPayload) -> None:
            stage("after_tool_use")

        def turn_end(self, _: HookPayload) -> None:
            stage("turn_end")

    @tool
    async def work() -> str:
        """Work."""
        stage("tool")
        return "done"

    def answer(step: Any) -> Any:
        def answering(_: object) -> Any:
            stage("request")
            return step

        return answering

    async def scene() -> None:
        session = await bench.session(
            answer({"calls": [{"name": "work"}]}),
            answer("a"),
            plugins=(Stages(),),
            skills=(SKILL,),
            tools=(work,),
        )
        opened.append(session)
        await session.submit_turn("/brief q")
        kinds = [type(event.payload).__name__ for event in session.history()]
        assert kinds == [
            "SystemMessage",
            "UserMessage",
            "AssistantMessage",
            "ToolCalled",
            "ToolAnswered",
            "AssistantMessage",
        ]

    asyncio.run(scene())
    assert log == [
        "turn_start after nothing",
        "request after UserMessage",
        "before_tool_use after ToolCalled",
        "tool after ToolCalled",
        "after_tool_use after ToolAnswered",
        "request after ToolAnswered",
        "turn_end after AssistantMessage",
    ]


@pytest.mark.req("E13", "E20.19", "dec4")
def test_what_plugins_add_goes_with_the_turn_only(bench: Bench) -> None:
    """Sections of all plugins stand before the prompt, in every request of the turn, unstored."""

    class Second(Watch):
        pass

    def add(*texts: str) -> ContinueWith:
        return ContinueWith(patch=TurnStartPatch(append_dynamic_sections=texts))

    plugins = (Watch(start=add("it rains")), Second(start=add("it is May")))

    async def scene() -> None:
        session = await bench.session(
            {"calls": [{"name": "one"}]}, "a", "b", plugins=plugins, tools=(one,)
        )
        await session.submit_turn("q")
        first, second = sent_texts(bench, 0), sent_texts(bench, 1)
        assert first == second
        block, prompt = first
        assert block.startswith("[Current state] ")
        assert "from a plugin:\n  it rains\n\nfrom a plugin:\n  it is May\n" in block
        assert prompt == "q"
        assert not any("it rains" in str(event.payload) for event in session.history())
        for plugin in plugins:
            plugin.start = None
        await session.submit_turn("r")
        assert sent_texts(bench) == ["q", "r"]

    asyncio.run(scene())


@pytest.mark.req("E13", "E6", "E20.5")
def test_a_turn_that_may_not_start_leaves_no_trace(bench: Bench) -> None:
    """It fails with the plugin's reason: nothing recorded, nothing sent, no end told."""
    watch = Watch(start=Abort(reason="not now"))

    async def scene() -> None:
        session = await bench.session("a", plugins=(watch,))
        before = len(session.frames.events())
        turn = await session.send_message("q")
        outcome = await turn.join()
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, PluginAborted)
        assert "turn_start: watch: not now" in outcome.error.message
        assert await kinds_of(turn) == ["TurnStarted", "TurnFailed"]
        assert len(session.frames.events()) == before
        assert session.list_slots()[0].turns == 0
        assert watch.ends == []
        watch.start = None
        assert (await session.submit_turn("q")).text == "a"

    asyncio.run(scene())


@pytest.mark.req("E13", "E6")
def test_a_turn_may_be_refused_at_its_end(bench: Bench) -> None:
    """The outcome is the plugin's refusal, no completion is shown, what was said is kept."""
    watch = Watch(end=Abort(reason="rude"))

    async def scene() -> None:
        session = await bench.session("a", "b", plugins=(watch,))
        turn = await session.send_message("q")
        outcome = await turn.join()
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, PluginAborted)
        assert outcome.reply.text == "a"
        kinds = await kinds_of(turn)
        assert "TurnCompleted" not in kinds
        assert kinds[-1] == "TurnFailed"
        watch.end = None
        await session.submit_turn("r")
        assert sent_texts(bench) == ["q", "r"]

    asyncio.run(scene())


@pytest.mark.req("E13")
def test_a_stopped_turn_is_told_as_cancelled(bench: Bench) -> None:
    """With what had been said."""
    watch = Watch()

    async def scene() -> None:
        session = await bench.session({"text": "one two", "chunk_delay_s": 0.2}, plugins=(watch,))
        turn = await session.send_message("q")
        async for event in turn:
            if isinstance(event.payload, TextChunk):
                turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        (end,) = watch.ends
        assert end.cancelled
        assert end.assistant_output.startswith("one")
        assert end.error_code is None

    asyncio.run(scene())


@pytest.mark.req("E13")
def test_a_failed_turn_is_told_with_its_error(bench: Bench) -> None:
    """Who heard it start hears it end; saying no to it doesn't hide why it failed."""
    watch = Watch(end=Abort(reason="no"))

    async def scene() -> None:
        session = await bench.session({"error": "auth"}, plugins=(watch,))
        outcome = await (await session.send_message("q")).join()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "PROVIDER_ERROR"
        (end,) = watch.ends
        assert (end.error_code, end.cancelled) == ("PROVIDER_ERROR", False)

    asyncio.run(scene())


@pytest.mark.req("E13", "dec16", "E4")
@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("error", [ValueError("oops"), KeyboardInterrupt()], ids=repr)
def test_a_hook_that_raises_panics_its_turn_alone(
    bench: Bench, at: str, error: BaseException
) -> None:
    """The error names the plugin; the session is usable afterwards."""
    watch = Watch(**{at: error})

    async def scene() -> None:
        session = await bench.session("a", "b", "c", plugins=(watch,))
        turn = await session.send_message("q")
        outcome = await turn.join()
        assert isinstance(outcome, Panicked)
        assert isinstance(outcome.error, PluginFailed)
        assert f'Plugin "watch" failed at turn_{at}' in outcome.error.message
        assert (await kinds_of(turn))[-1] == "TurnFailed"
        with pytest.raises(PluginFailed):
            await session.submit_turn("q")
        watch.start = watch.end = None
        assert (await session.submit_turn("again")).text == ("a" if at == "start" else "c")

    asyncio.run(scene())


@pytest.mark.req("E13", "dec11", "inv10")
@pytest.mark.parametrize("event", ["turn_start", "turn_end"])
def test_a_stop_does_not_wait_for_a_hook(bench: Bench, event: str) -> None:
    """The prompt is recorded; a turn that was complete stays complete."""
    opened: list[Session] = []

    class Slow(PluginBase):
        async def turn_start(self, payload: HookPayload) -> None:
            await self._hang(payload)

        async def turn_end(self, payload: HookPayload) -> None:
            await self._hang(payload)

        async def _hang(self, payload: HookPayload) -> None:
            if payload.event == event:
                opened[0].running()["default"].cancel()
                await asyncio.Event().wait()

    async def scene() -> None:
        session = await bench.session("a", plugins=(Slow(),))
        opened.append(session)
        turn = await session.send_message("q")
        since = time.monotonic()
        outcome = await turn.join()
        assert time.monotonic() - since < 2
        assert isinstance(outcome, Cancelled if event == "turn_start" else Completed)
        payloads = [each.payload for each in session.history()]
        assert isinstance(payloads[0], UserMessage)
        assert len(bench.provider.requests) == (event == "turn_end")

    asyncio.run(scene())


@pytest.mark.req("S12", "S13", "E13")
def test_streaming_fires_the_same_hooks_as_submitting(bench: Bench) -> None:
    """The same events in the same order, and the end is told before the turn counts as over."""
    watch = Watch()
    counted: list[bool] = []
    opened: list[Session] = []

    class Counting(PluginBase):
        def turn_end(self, payload: HookPayload) -> None:
            counted.append("default" in opened[0].running())

    async def streamed(given: Session) -> None:
        async with given.submit_turn_stream("q") as turn:
            async for _ in turn:
                pass
        await given.finalize_turn(turn)
        await given.finalize_turn(turn)

    async def scene() -> None:
        session = await bench.session("a", "a", plugins=(watch, Counting()))
        opened.append(session)
        await session.submit_turn("q")
        submitted = [(each.event, each.data) for each in watch.heard]
        watch.heard.clear()
        await streamed(session)
        assert [(each.event, each.data) for each in watch.heard] == submitted
        assert [event for event, _ in submitted] == ["turn_start", "turn_end"]
        assert counted == [True, True]

    asyncio.run(scene())


@pytest.mark.req("E13", "dec15")
def test_hooks_of_two_slots_may_interleave_on_one_thread(bench: Bench) -> None:
    """A hook that waits in one slot doesn't hold the other slot's turn."""
    import threading

    threads: set[int] = set()
    tool_approval = asyncio.Event()

    class Waiting(PluginBase):
        async def turn_start(self, payload: HookPayload) -> None:
            threads.add(threading.get_ident())
            if payload.slot_id == "default":
                await tool_approval.wait()

        def turn_end(self, payload: HookPayload) -> None:
            threads.add(threading.get_ident())
            if payload.slot_id == "other":
                tool_approval.set()

    async def scene() -> None:
        session = await bench.session("a", "b", plugins=(Waiting(),))
        await session.create_slot("other")
        first = await session.send_message("q")
        await session.submit_turn("q", slot="other")
        assert isinstance(await first.join(), Completed)
        assert len(threads) == 1
        assert threads != {threading.get_ident()}

    asyncio.run(scene())


class Full(InMemoryStore):
    """A store whose disk can be full."""

    is_full = False

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        if self.is_full:
            raise StorageError("the disk is full")
        return await super().commit(lease, change)


@pytest.mark.req("E20.7", "E3")
def test_a_prompt_that_can_not_be_stored_ends_the_turn_untold(bench: Bench) -> None:
    """No ghost stays, no request is sent, and no end is told of a turn that never was."""
    watch = Watch()

    async def scene() -> None:
        provider, store = ScriptedProvider(["a"]), Full()
        builder = AgentBuilder(AgentConfig(default_model="scripted:x"))
        builder.register_model_provider(provider).register_session_storage(store)
        agent = await builder.register_skill(SKILL).register_plugin(watch).build()
        session = await agent.new_session()
        store.is_full = True
        turn = await session.send_message("/brief q")
        outcome = await turn.join()
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, StorageError)
        assert await kinds_of(turn) == ["TurnStarted", "TurnFailed"]
        assert (session.history(), provider.requests, watch.ends) == ((), [], [])
        store.is_full = False
        assert (await session.submit_turn("q")).text == "a"
        assert [type(each.payload).__name__ for each in session.history()] == [
            "UserMessage",
            "AssistantMessage",
        ]
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("E4", "E13")
def test_a_hook_that_closes_its_own_session_is_told_so(bench: Bench) -> None:
    """Waiting for itself would hang for ever; the turn goes on or fails by what it answers."""
    refused: list[str] = []

    class Closer(PluginBase):
        async def turn_end(self, payload: HookPayload) -> HookResult | None:
            try:
                await opened[0].close()
            except InputValidation as error:
                refused.append(error.message)
            return None

    opened: list[Session] = []

    async def scene() -> None:
        opened.append(await bench.session("ok", plugins=(Closer(),)))
        reply = await asyncio.wait_for(opened[0].submit_turn("go"), 5)
        assert reply.text == "ok"
        await opened[0].close()

    asyncio.run(scene())
    assert len(refused) == 1
    assert "can't close the session that waits for it" in refused[0]


@pytest.mark.req("E4", "E19")
def test_a_handle_outlives_its_agent_with_a_clear_answer(bench: Bench) -> None:
    """After a shutdown it says so; after a close alone it says that the handle is closed."""

    async def scene() -> None:
        agent = await bench.agent("ok")
        session = await agent.new_session()
        await agent.shutdown()
        with pytest.raises(AgentShutdown):
            await session.send_message("late")
        other = await bench.session("ok")
        await other.close()
        with pytest.raises(SessionNotFound):
            await other.send_message("late")

    asyncio.run(scene())
