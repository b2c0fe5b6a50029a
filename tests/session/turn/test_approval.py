"""A tool that changes something runs when a person, or the settings, let it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.approval import ApprovalRequest
from agent_magics.core.events import Approval, ToolAnswered, ToolCalled
from agent_magics.core.messages import ToolResult
from agent_magics.core.turns import (
    ApprovalAnswered,
    ApprovalRequested,
    Cancelled,
    Completed,
    Failed,
    ToolEnded,
    ToolStarted,
)
from agent_magics.session.turn.tool_approval import visible
from agent_magics.tools.schema import tool
from tests.session.approving import Disk, Person, batch, results, shown, stored, word, write

if TYPE_CHECKING:
    from tests.session.conftest import Bench

NOBODY = "nobody is here to give it"


async def asked(bench: Bench, disk: Disk, step: Any, **settings: Any) -> Any:
    """Give a session whose model makes one batch of calls in its first turn."""
    return await bench.session(step, "done", tools=disk.tools, **settings)


@pytest.mark.req("N8", "dec55")
def test_a_yes_runs_what_was_shown(bench: Bench) -> None:
    """The person reads exactly what will run; the answer is recorded before it runs."""

    async def scene() -> None:
        disk = Disk()
        person = Person(word("yes"))
        session = await asked(bench, disk, batch(write("a.txt", text="x\u202ey")), approver=person)
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        assert isinstance(await turn.join(), Completed)
        (request,) = person.asked
        assert request.preview == 'write_file(\n  path="a.txt",\n  text="x\\u202ey",\n)'
        assert request.arguments == {"path": "a.txt", "text": "x\u202ey"}
        assert (request.session_id, request.slot_id) == (session.session_id, "default")
        assert (request.turn_id, request.call_id) == (turn.turn_id, "call-1")
        kinds = [type(event) for event in events]
        order = [kinds.index(kind) for kind in (ApprovalRequested, ApprovalAnswered, ToolStarted)]
        assert order == sorted(order)
        payloads = [event.payload for event in await stored(bench.path, session)]
        kept = [p for p in payloads if isinstance(p, Approval | ToolAnswered | ToolCalled)]
        assert [type(p) for p in kept] == [ToolCalled, Approval, ToolAnswered]
        assert kept[1] == Approval(call_id="call-1", tool_name="write_file", answer="yes")
        assert disk.did == ["write a.txt x\u202ey"]

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55", "E8")
@pytest.mark.parametrize(
    ("says", "told"),
    [
        pytest.param(word("no"), "the person refused it]", id="no"),
        pytest.param(word("no", reason="wrong file"), "and said: wrong file]", id="no, because"),
        pytest.param(word("no", arguments={"path": "b"}), "refused it]", id="no, with arguments"),
        pytest.param(None, NOBODY, id="nobody answers"),
        pytest.param(
            RuntimeError("no tty"), "could not be asked: RuntimeError: no tty", id="raises"
        ),
        pytest.param(KeyboardInterrupt(), "could not be asked", id="interrupted"),
        pytest.param(asyncio.CancelledError(), "could not be asked", id="its own cancel"),
        pytest.param("sure", "could not be asked: the answer was 'sure'", id="no answer of ours"),
        pytest.param(word("edited"), "without them", id="edited to nothing"),
        pytest.param({"word": "yes", "arguments": [1]}, "could not be asked", id="odd arguments"),
    ],
)
def test_what_is_no_leave_is_told_to_the_model(bench: Bench, says: Any, told: str) -> None:
    """The call doesn't run, nor the rest; the model reads why, and the turn goes on."""

    async def scene() -> None:
        disk = Disk()
        step = batch(write(), write("b"))
        session = await asked(bench, disk, step, approver=Person(says))
        assert (await session.submit_turn("go")).text == "done"
        first, second = results(session)
        assert told in first
        assert second == "[Tool not run: `write_file` was not approved before it]"
        assert disk.did == []
        sent = [m for m in bench.provider.requests[-1].messages if isinstance(m, ToolResult)]
        assert [(m.content, m.is_error) for m in sent] == [(first, True), (second, True)]

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55")
def test_with_nobody_to_ask_a_mutating_tool_is_refused(bench: Bench) -> None:
    """What changes nothing runs all the same."""

    async def scene() -> None:
        disk = Disk()
        session = await asked(bench, disk, batch(("look", {}), write()))
        await session.submit_turn("go")
        first, second = results(session)
        assert first == "seen"
        assert NOBODY in second
        assert disk.did == ["look"]

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55")
def test_edited_arguments_run_are_recorded_and_told(bench: Bench) -> None:
    """The model's call stays in the log as it was; what ran stands beside it."""

    async def scene() -> None:
        disk = Disk()
        edited = {"path": "b.txt", "text": "better"}
        person = Person(word("edited", arguments=edited))
        session = await asked(bench, disk, batch(write("a.txt")), approver=person)
        turn = await session.send_message("go")
        events = [event.payload for event in await shown(turn)]
        assert disk.did == ["write b.txt better"]
        told = f"[The person edited the arguments before it ran. It ran with: {json.dumps(edited)}]"
        assert results(session) == [f"{told}\n\nwrote b.txt"]
        started = [event for event in events if isinstance(event, ToolStarted)]
        assert [event.arguments for event in started] == [edited]
        payloads = [event.payload for event in await stored(bench.path, session)]
        call = next(p for p in payloads if isinstance(p, ToolCalled))
        approval = next(p for p in payloads if isinstance(p, Approval))
        result = next(p for p in payloads if isinstance(p, ToolAnswered))
        assert call.arguments == {"path": "a.txt"}
        assert (approval.answer, approval.arguments) == ("edited", edited)
        assert result.ran_with == edited

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55")
def test_edited_arguments_that_do_not_fit_are_told_too(bench: Bench) -> None:
    """The note stands before the error, or the model would mend its own call."""

    async def scene() -> None:
        person = Person(word("edited", arguments={"where": "b"}))
        session = await asked(bench, Disk(), batch(write()), approver=person)
        await session.submit_turn("go")
        (result,) = results(session)
        assert result.startswith('[The person edited the arguments before it ran. It ran with: {"w')
        assert "don't fit" in result

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55")
def test_always_is_this_tool_in_this_session(bench: Bench) -> None:
    """It holds in later turns and other slots, not for other tools, and not once reopened."""

    async def scene() -> None:
        disk = Disk()
        person = Person(word("always"), word("no"), word("no"))
        both = batch(write("a"), ("remove", {"path": "a"}))
        session = await bench.session(
            both, "done", batch(write("b")), "done", tools=disk.tools, approver=person
        )
        await session.submit_turn("go")
        await session.create_slot("other")
        await (await session.send_message("go on", slot="other")).join()
        assert disk.did == ["write a", "write b"]
        assert [request.tool_name for request in person.asked] == ["write_file", "remove"]
        await session.close()
        again = await bench.resumed(
            session.session_id, batch(write("c")), "ok", tools=disk.tools, approver=person
        )
        await again.submit_turn("go")
        assert disk.did == ["write a", "write b"]
        assert len(person.asked) == 3

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55")
@pytest.mark.parametrize("named", ["write_file", "*"])
def test_always_ends_where_a_slot_says_anew_how_to_ask(bench: Bench, named: str) -> None:
    """What was answered once can be seen, and taken back."""

    async def scene() -> None:
        disk = Disk()
        person = Person(word("always"), word("no"))
        steps = (batch(write("a")), "done", batch(write("b")), "done")
        session = await bench.session(*steps, tools=disk.tools, approver=person)
        await session.submit_turn("go")
        assert session.is_always_allowed("write_file")
        await session.configure_slot("default", approval={named: "ask"})
        assert not session.is_always_allowed("write_file")
        await session.submit_turn("go")
        assert disk.did == ["write a"]
        assert len(person.asked) == 2

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55", "S16")
@pytest.mark.parametrize(
    ("agent", "slot", "did"),
    [
        pytest.param({"*": "auto"}, {}, ["write a"], id="the agent lets all run"),
        pytest.param({"write_file": "auto"}, {}, ["write a"], id="the agent lets this one run"),
        pytest.param({"write_file": "auto"}, {"*": "never"}, [], id="the slot's word goes first"),
        pytest.param({"*": "never"}, {"write_file": "auto"}, ["write a"], id="a slot may allow"),
        pytest.param({"*": "auto", "write_file": "never"}, {}, [], id="a name goes before all"),
        pytest.param({"remove": "auto"}, {}, [], id="another tool"),
    ],
)
def test_settings_may_answer(
    bench: Bench, agent: dict[str, str], slot: dict[str, str], did: list[str]
) -> None:
    """ "auto" asks nobody, "never" is refused, by tool or for all, by slot before agent."""

    async def scene() -> None:
        disk = Disk()
        session = await asked(bench, disk, batch(write()), approval=agent)
        await session.configure_slot("default", approval=slot)
        await session.submit_turn("go")
        assert disk.did == did
        if "never" in (*agent.values(), *slot.values()) and not did:
            assert results(session) == ["[Tool not run: the settings here don't allow it]"]

    asyncio.run(scene())


@pytest.mark.req("N8", "dec55", "dec15", "B5")
def test_slots_ask_one_after_the_other(bench: Bench) -> None:
    """A person is asked one question at a time, however many slots run."""

    async def scene() -> None:
        disk = Disk()
        open_now: list[int] = []

        async def slowly(_request: ApprovalRequest) -> Any:
            open_now.append(1)
            assert len(open_now) == 1
            await asyncio.sleep(0.02)
            open_now.pop()
            return word("yes")

        person = Person(slowly, slowly, slowly)
        names = ("default", "b", "c")
        steps = [batch(write(name)) for name in names] + ["done"] * 3
        session = await bench.session(*steps, tools=disk.tools, approver=person)
        for name in names[1:]:
            await session.create_slot(name)
        turns = [await session.send_message("go", slot=name) for name in names]
        for turn in turns:
            assert isinstance(await turn.join(), Completed)
        assert len(disk.did) == 3
        assert sorted(request.slot_id for request in person.asked) == sorted(names)

    asyncio.run(scene())


@pytest.mark.req("N7", "dec11", "dec55", "E9")
def test_a_stop_withdraws_the_question(bench: Bench) -> None:
    """Whoever was asked hears of it at once; the call and the rest are cancelled, nothing runs."""

    async def scene() -> None:
        disk = Disk()
        withdrawn = asyncio.Event()

        async def never(_request: ApprovalRequest) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                withdrawn.set()

        session = await asked(bench, disk, batch(write(), write("b")), approver=Person(never))
        turn = await session.send_message("go")
        began = 0.0
        ended: list[str] = []
        async for event in turn:
            if isinstance(event.payload, ToolEnded):
                ended.append(event.payload.call_id)
            if isinstance(event.payload, ApprovalRequested):
                began = time.monotonic()
                turn.cancel()
        assert isinstance(await turn.join(), Cancelled)
        assert time.monotonic() - began < 0.2
        assert withdrawn.is_set()
        assert results(session) == ["[Tool cancelled]", "[Tool cancelled]"]
        assert disk.did == []
        assert ended == ["call-1", "call-2"]

    asyncio.run(scene())


@pytest.mark.req("dec55", "E9")
def test_the_wait_for_an_answer_is_not_the_tool_s_time(bench: Bench) -> None:
    """A person may take longer than the tool may."""

    async def scene() -> None:
        disk = Disk()

        async def slowly(_request: ApprovalRequest) -> Any:
            await asyncio.sleep(0.1)
            return word("yes")

        session = await asked(
            bench, disk, batch(write()), approver=Person(slowly), tool_timeout_ms=50
        )
        await session.submit_turn("go")
        assert disk.did == ["write a"]

    asyncio.run(scene())


@pytest.mark.req("dec55", "inv18")
@pytest.mark.parametrize("broken", [False, True])
def test_a_tool_may_say_itself_what_will_run(bench: Bench, *, broken: bool) -> None:
    """Its preview is shown with nothing hidden in it; where it fails, the call is."""

    async def scene() -> None:
        def show(arguments: dict[str, Any]) -> str:
            if broken:
                raise RuntimeError
            return f"will run:\n{arguments['code']}"

        @tool(mutating=True, preview=show)
        def run_python(code: str) -> str:
            return code

        person = Person(word("no"))
        code = "a = 1\n\x1b[2K\rimport os\u200b"
        session = await bench.session(
            batch(("run_python", {"code": code})), "ok", tools=[run_python], approver=person
        )
        await session.submit_turn("go")
        shown_code = "a = 1\n\\x1b[2K\\rimport os\\u200b"
        as_call = 'run_python(\n  code="a = 1\\n\\u001b[2K\\rimport os\\u200b",\n)'
        expected = as_call if broken else f"will run:\n{shown_code}"
        assert person.asked[0].preview == expected

    asyncio.run(scene())


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "größe → 数 😀"])
def test_what_can_be_seen_is_shown_as_it_is(text: str) -> None:
    """Only what nobody sees is written out."""
    assert visible(text) == text


@pytest.mark.req("E2", "dec55")
def test_an_answer_that_cannot_be_recorded_runs_nothing(bench: Bench) -> None:
    """The ledger is the fact: no record, no deed."""

    async def scene() -> None:
        disk = Disk()
        session: Any = None

        async def taken(_request: ApprovalRequest) -> Any:
            other = await bench.agent(tools=disk.tools)
            await other.resume_session(session.session_id, take=True)
            return word("yes")

        session = await asked(bench, disk, batch(write()), approver=Person(taken))
        outcome = await (await session.send_message("go")).join()
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "SESSION_LOCKED"
        assert disk.did == []

    asyncio.run(scene())
