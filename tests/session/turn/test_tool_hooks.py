"""Plugins before and after tools: what they change, stop and end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.events import AssistantMessage, ToolAnswered
from agent_magics.core.hooks import (
    Abort,
    AfterToolUse,
    BeforeToolUse,
    BeforeToolUsePatch,
    ContinueWith,
    HookPayload,
    TurnStartPatch,
)
from agent_magics.core.messages import ToolOutput, ToolResult
from agent_magics.core.turns import (
    Completed,
    ErrorNoted,
    Failed,
    Panicked,
    ToolEnded,
    ToolStarted,
)
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.tools.schema import tool
from tests.session.approving import Disk, Person, batch, results, shown, word, write

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LOOK: tuple[str, dict[str, Any]] = ("look", {})


class Before(PluginBase):
    """Says what it is told to before the tools of some calls."""

    def __init__(self, **says: Any) -> None:
        self.says = says
        self.seen: list[BeforeToolUse] = []

    def before_tool_use(self, payload: HookPayload) -> Any:
        assert isinstance(payload.data, BeforeToolUse)
        self.seen.append(payload.data)
        said = self.says.get(payload.data.call_id.replace("-", "_"))
        if isinstance(said, BaseException):
            raise said
        return said


class After(PluginBase):
    """Says what it is told to after the tools of some calls."""

    def __init__(self, **says: Any) -> None:
        self.says = says
        self.seen: list[AfterToolUse] = []

    def after_tool_use(self, payload: HookPayload) -> Any:
        assert isinstance(payload.data, AfterToolUse)
        self.seen.append(payload.data)
        said = self.says.get(payload.data.call_id.replace("-", "_"))
        if isinstance(said, BaseException):
            raise said
        return said


def patch(**arguments: Any) -> ContinueWith:
    return ContinueWith(patch=BeforeToolUsePatch(arguments=arguments))


@pytest.mark.req("E10", "E13", "E20.13", "inv16")
def test_an_output_is_the_same_wherever_it_goes(bench: Bench) -> None:
    """Event, hook, ledger and a later resume have its metadata; the model reads content only."""
    given = ToolOutput(content="4 rows", metadata={"path": "a.csv", "rows": [1, {"n": None}]})

    @tool
    def read() -> ToolOutput:
        return given

    async def scene() -> None:
        after = After()
        session = await bench.session(
            batch(("read", {})), "done", tools=[read], plugins=[after], session_id="s"
        )
        events = [event.payload for event in await shown(await session.send_message("go"))]
        assert [event.output for event in events if isinstance(event, ToolEnded)] == [given]
        assert [seen.output for seen in after.seen] == [given]
        await session.close()
        again = await bench.resumed("s", "ok")
        kept = [e.payload for e in again.history() if isinstance(e.payload, ToolAnswered)]
        assert [result.output for result in kept] == [given]
        await again.submit_turn("and?")
        assert "a.csv" not in str(bench.provider.requests[-1])

    asyncio.run(scene())


@pytest.mark.req("E13", "E20.19")
def test_the_last_plugin_s_arguments_run(bench: Bench) -> None:
    """Each sees what the one before made of the call; the ledger has the call and what ran."""

    async def scene() -> None:
        disk = Disk()
        first = Before(call_1=patch(path="b", text="1"))
        second = Before(call_1=patch(path="c"))
        second.plugin_id = "second"
        person = Person(word("yes"))
        session = await bench.session(
            batch(write("a")), "done", tools=disk.tools, plugins=[first, second], approver=person
        )
        events = [event.payload for event in await shown(await session.send_message("go"))]
        assert [seen.arguments for seen in first.seen] == [{"path": "a"}]
        assert [seen.arguments for seen in second.seen] == [{"path": "b", "text": "1"}]
        assert person.asked[0].arguments == {"path": "c"}  # what will run is what is asked
        assert disk.did == ["write c"]
        started = [event.arguments for event in events if isinstance(event, ToolStarted)]
        assert started == [{"path": "c"}]
        kept = [e.payload for e in session.history() if isinstance(e.payload, ToolAnswered)]
        assert [(result.ran_with, result.output.content) for result in kept] == [
            ({"path": "c"}, "wrote c")
        ]

    asyncio.run(scene())


@pytest.mark.req("E13", "E8", "E20.26")
@pytest.mark.parametrize("mutating", [False, True])
def test_a_call_that_a_plugin_stops_does_not_run(bench: Bench, *, mutating: bool) -> None:
    """Others of a read-only batch do; the rest of a mutating one says why it didn't."""

    async def scene() -> None:
        disk = Disk()
        after = After()
        last = write("z") if mutating else LOOK
        session = await bench.session(
            batch(LOOK, LOOK, last),
            "done",
            tools=disk.tools,
            plugins=[Before(call_2=Abort(reason="not today")), after],
            approval={"*": "auto"},
        )
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        assert isinstance(await turn.join(), Completed)
        told = {result.call_id: result for result in events if isinstance(result, ToolEnded)}
        assert "before: not today" in told["call-2"].output.content
        noted = [event for event in events if isinstance(event, ErrorNoted)]
        assert [(event.code, event.call_id) for event in noted] == [("PLUGIN_ABORTED", "call-2")]
        skipped = "[Tool not run: `look` was stopped by a plugin before it]"
        assert told["call-3"].output.content == (skipped if mutating else "seen")
        assert disk.did == (["look"] if mutating else ["look", "look"])
        assert {seen.call_id for seen in after.seen} == {"call-1", "call-3"} - (
            {"call-3"} if mutating else set()
        )

    asyncio.run(scene())


@pytest.mark.req("E13", "E20.22", "dec14")
def test_an_abort_after_a_mutating_tool_ends_the_calls(bench: Bench) -> None:
    """What ran is recorded, the rest is skipped, one closing request without tools follows."""

    async def scene() -> None:
        disk = Disk()
        after = After(call_1=Abort(reason="that was enough"))
        session = await bench.session(
            batch(write("a"), write("b"), LOOK),
            "I wrote a.",
            tools=disk.tools,
            plugins=[after],
            approval={"*": "auto"},
        )
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        outcome = await turn.join()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "PLUGIN_ABORTED"
        assert "that was enough" in outcome.error.message
        assert outcome.reply.text == "I wrote a."
        assert disk.did == ["write a"]
        first, *rest = results(session)
        assert first == "wrote a"
        assert all("a plugin ended the tool calls" in said for said in rest)
        assert len(rest) == 2
        assert [request.tool_choice for request in bench.provider.requests] == ["auto", "none"]
        last = session.history()[-1].payload
        assert isinstance(last, AssistantMessage)
        assert last.cause == "ended by a plugin"
        assert sum(isinstance(event, ToolEnded) for event in events) == 3

    asyncio.run(scene())


@pytest.mark.req("E13", "E20.28", "dec14")
def test_an_abort_after_a_read_only_tool_lets_those_in_flight_finish(bench: Bench) -> None:
    """They are recorded as they end; then the turn is closed."""

    async def scene() -> None:
        aborted = asyncio.Event()

        class Ends(After):
            def after_tool_use(self, payload: HookPayload) -> Any:
                aborted.set()
                return super().after_tool_use(payload)

        @tool
        async def slow() -> str:
            await aborted.wait()
            return "landed"

        plugin = Ends(call_2=Abort(reason="enough"))
        session = await bench.session(
            batch(("slow", {}), LOOK, ("slow", {})),
            "closing",
            tools=[slow, *Disk().tools],
            plugins=[plugin],
        )
        outcome = await (await session.send_message("go")).join()
        assert isinstance(outcome, Failed)
        assert (outcome.error.code, outcome.reply.text) == ("PLUGIN_ABORTED", "closing")
        assert sorted(results(session)) == ["landed", "landed", "seen"]
        assert len(plugin.seen) == 3
        sent = [m for m in bench.provider.requests[-1].messages if isinstance(m, ToolResult)]
        assert [message.content for message in sent] == ["landed", "seen", "landed"]

    asyncio.run(scene())


@pytest.mark.req("E13", "E19", "E20.14")
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            ContinueWith(patch=TurnStartPatch(append_dynamic_sections=("x",))), id="another hook's"
        ),
        pytest.param("run it", id="no answer"),
    ],
)
def test_a_wrong_answer_before_a_tool_stops_that_call(bench: Bench, said: Any) -> None:
    """The call fails with the contract's code; the turn goes on."""

    async def scene() -> None:
        disk = Disk()
        session = await bench.session(
            batch(LOOK), "done", tools=disk.tools, plugins=[Before(call_1=said)]
        )
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        assert isinstance(await turn.join(), Completed)
        noted = [event.code for event in events if isinstance(event, ErrorNoted)]
        assert noted == ["PLUGIN_HOOK_CONTRACT_VIOLATION"]
        assert disk.did == []
        assert results(session)[0].startswith("[Tool not run. ")

    asyncio.run(scene())


@pytest.mark.req("E13", "dec16", "E9", "inv10")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mutating", [False, True])
def test_a_plugin_that_breaks_leaves_no_call_open(
    bench: Bench, when: str, *, mutating: bool
) -> None:
    """The turn panics with the plugin's name; each call has one result, and the talk goes on."""

    async def scene() -> None:
        disk = Disk()
        fault = RuntimeError("bug")
        plugin: PluginBase = Before(call_1=fault) if when == "before" else After(call_1=fault)
        session = await bench.session(
            batch(write() if mutating else LOOK, LOOK, LOOK),
            "closing",
            "on we go",
            tools=disk.tools,
            plugins=[plugin],
            approval={"*": "auto"},
        )
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        outcome = await turn.join()
        assert isinstance(outcome, Panicked)
        assert 'Plugin "' in str(outcome.error)
        ended = [event.call_id for event in events if isinstance(event, ToolEnded)]
        assert sorted(ended) == ["call-1", "call-2", "call-3"]
        assert len(results(session)) == 3
        assert (await session.submit_turn("again")).text == "on we go"

    asyncio.run(scene())


@pytest.mark.req("dec15")
def test_hooks_of_one_slot_never_overlap(bench: Bench) -> None:
    """Also where tools run at once, and also those that wait."""
    inside: list[str] = []
    crowds: list[int] = []

    class Slow(PluginBase):
        """Takes its time at both ends of a tool."""

        async def _wait(self, payload: HookPayload) -> None:
            inside.append(payload.event)
            crowds.append(len(inside))
            await asyncio.sleep(0.003)
            inside.remove(payload.event)

        async def before_tool_use(self, payload: HookPayload) -> None:
            await self._wait(payload)

        async def after_tool_use(self, payload: HookPayload) -> None:
            await self._wait(payload)

    async def scene() -> None:
        session = await bench.session(
            batch(*[LOOK] * 5), "done", tools=Disk().tools, plugins=[Slow()]
        )
        await session.submit_turn("go")
        assert crowds == [1] * 10

    asyncio.run(scene())


@pytest.mark.req("E13")
def test_a_plugin_sees_how_a_tool_ended(bench: Bench) -> None:
    """Success, failure and time-out; not what never ran."""

    @tool
    def fails() -> str:
        raise ValueError("no")

    @tool
    async def hangs() -> None:
        await asyncio.sleep(60)

    async def scene() -> None:
        after = After()
        session = await bench.session(
            batch(LOOK, ("fails", {}), ("hangs", {}), ("nobody", {})),
            "done",
            tools=[fails, hangs, *Disk().tools],
            plugins=[after],
            tool_timeout_ms=30,
        )
        await session.submit_turn("go")
        seen = {each.call_id: (each.tool_name, each.success) for each in after.seen}
        assert seen == {
            "call-1": ("look", True),
            "call-2": ("fails", False),
            "call-3": ("hangs", False),
        }
        assert after.seen[-1].duration_ms >= 30

    asyncio.run(scene())
