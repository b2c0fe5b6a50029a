"""Requests that would not fit: compacted before, shortened after, and never in silence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.degrade import OMITTED
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import FixedContextExceedsBudget, NothingHelped, TurnBusy
from agent_magics.core.messages import Message, ToolResult, text_of
from agent_magics.core.turns import Completed, ContextCompacted, Failed, TurnWarning
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.session.filling import SUMMARY, summary
from tests.session.telling import overflow, told

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 22  # about 310 tokens
SMALL = {"context_limit": 4_000, "compaction": CompactionConfig(reserve_tokens=2_000)}


def texts(request: ChatRequest) -> list[str]:
    return [spoken(message) for message in request.messages]


def spoken(message: Message) -> str:
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else text_of(content)


async def filled(bench: Bench, *steps: Any, turns: int = 3, **how: Any) -> Session:
    """Make a session whose next turn of one more LONG prompt passes a threshold of 2,000."""
    answers = [f"{LONG} {n}" for n in range(turns)]
    session = await bench.session(*answers, *steps, **{**SMALL, **how})
    for n in range(turns):
        await session.submit_turn(f"{LONG} prompt {n}")
    return session


@pytest.mark.req("C4", "C14", "inv5", "inv9", "C20.2", "C20.10")
def test_the_trigger_compacts_before_the_request(bench: Bench) -> None:
    """One summary, told before the answer; the request has it and the whole new prompt."""

    async def scene() -> None:
        session = await filled(bench, summary(), "fine")
        prompt = LONG + "and now?"
        events, outcome = await told(session, prompt)
        assert isinstance(outcome, Completed)
        compacted = [e for e in events if isinstance(e, ContextCompacted)]
        assert [(e.reason, e.degraded) for e in compacted] == [("auto", False)]
        sent = bench.provider.requests[-1]
        assert SUMMARY in texts(sent)[1]
        assert texts(sent)[-1] == prompt
        info = session.context_info()
        assert info.used <= info.limits.threshold
        assert info.tokens_before == compacted[0].tokens_before > info.limits.threshold

    asyncio.run(scene())


@pytest.mark.req("C5", "S2")
@pytest.mark.parametrize(
    "how",
    [
        {"compaction": CompactionConfig(enabled=False, reserve_tokens=2_000)},
        {"slot": {"compact": False}},
    ],
    ids=["session", "slot"],
)
def test_the_trigger_can_be_turned_off(bench: Bench, how: dict[str, Any]) -> None:
    """Off for a session or a slot, only the automatic one stops."""

    async def scene() -> None:
        slot = how.get("slot", {})
        session = await filled(
            bench, "fine", summary(), **{k: v for k, v in how.items() if k != "slot"}
        )
        if slot:
            await session.configure_slot("default", **slot)
        _, outcome = await told(session, LONG)
        assert outcome.reply.text == "fine"
        assert session.context_info().checkpoint_id is None
        assert (await session.compact()).checkpoint_id is not None

    asyncio.run(scene())


@pytest.mark.req("C14", "inv6", "dec36", "C20.11")
def test_a_failed_summary_under_the_window_goes_on_with_a_warning(bench: Bench) -> None:
    """The turn completes uncompacted; the trigger rests until a twentieth of the window came."""

    async def scene() -> None:
        session = await filled(bench, summary("I can't."), "fine", "again", summary(), "third")
        events, outcome = await told(session, LONG)
        assert isinstance(outcome, Completed)
        warnings = [e.text for e in events if isinstance(e, TurnWarning)]
        assert any("was not compacted" in text for text in warnings)
        assert outcome.warnings == tuple(warnings)
        assert session.context_info().checkpoint_id is None
        _, outcome = await told(session, "short")
        assert outcome.reply.text == "again"
        asked = [r for r in bench.provider.requests if r.purpose == "compaction"]
        assert len(asked) == 1
        _, outcome = await told(session, LONG)
        assert outcome.reply.text == "third"
        assert session.context_info().checkpoint_id is not None

    asyncio.run(scene())


@pytest.mark.req("C15", "inv7", "inv8")
def test_over_the_window_old_turns_are_left_out_before_sending(bench: Bench) -> None:
    """No doomed request: a degraded checkpoint that claims nothing, marked, told, reloadable."""

    async def scene() -> None:
        session = await filled(
            bench,
            summary(error="server"),
            "fine",
            turns=3,
            context_limit=2_200,
            session_id="s",
            compaction=CompactionConfig(reserve_tokens=200),
        )
        events, outcome = await told(session, LONG * 2)
        assert isinstance(outcome, Completed)
        assert [e.degraded for e in events if isinstance(e, ContextCompacted)] == [True]
        info = session.context_info()
        assert info.degraded
        assert info.used <= info.limits.window
        first = texts(bench.provider.requests[-1])[1]
        assert OMITTED.split("{")[0] in first
        assert "Short." not in first
        messages = session.messages()
        await session.close()
        again = await bench.resumed(
            "s", context_limit=2_200, compaction=CompactionConfig(reserve_tokens=200)
        )
        assert again.messages() == messages
        assert len(again.turns()) == 4

    asyncio.run(scene())


@pytest.mark.req("C7", "C15", "dec34", "inv8")
def test_a_prompt_that_can_not_fit_is_named(bench: Bench) -> None:
    """What is sent anyway over the window: its parts, no request, nothing given up."""

    async def scene() -> None:
        session = await bench.session("a", context_limit=500)
        _, outcome = await told(session, LONG * 4)
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, FixedContextExceedsBudget)
        assert "user_input 1," in outcome.error.message
        assert bench.provider.requests == []
        assert (await session.submit_turn("short")).text == "a"

    asyncio.run(scene())


@pytest.mark.req("C15", "dec30")
def test_an_overflow_teaches_the_window_and_is_answered_once_more(bench: Bench) -> None:
    """The server's window holds from then on; one summary, one retry, each request counted."""

    async def scene() -> None:
        session = await filled(
            bench, overflow(window=1_500, used=1_900), summary(), "fine", context_limit=None
        )
        events, outcome = await told(session, "and?")
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "fine"
        assert [e.reason for e in events if isinstance(e, ContextCompacted)] == ["overflow"]
        info = session.context_info()
        assert info.limits.window == 1_500
        assert info.used <= 1_500
        purposes = [r.purpose for r in bench.provider.requests[-3:]]
        assert purposes == ["turn", "compaction", "turn"]

    asyncio.run(scene())


@pytest.mark.req("C15", "inv5", "inv7")
def test_an_overflow_is_recovered_without_a_summary_too(bench: Bench) -> None:
    """With the summary refused, whole turns are left out; the turn still completes."""

    async def scene() -> None:
        session = await filled(bench, overflow(), summary(""), "fine")
        events, outcome = await told(session, "and?")
        assert isinstance(outcome, Completed)
        assert [e.degraded for e in events if isinstance(e, ContextCompacted)] == [True]

    asyncio.run(scene())


@pytest.mark.req("C15", "inv5")
def test_a_second_overflow_ends_the_turn_with_a_diagnosis(bench: Bench) -> None:
    """Two requests, never a third; the parts that fill the window are named."""

    async def scene() -> None:
        session = await filled(bench, overflow(), summary(), overflow(), "next")
        _, outcome = await told(session, "and?")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NothingHelped)
        assert "history" in outcome.error.message
        assert [r.purpose for r in bench.provider.requests[-3:]] == ["turn", "compaction", "turn"]
        assert (await session.submit_turn("short")).text == "next"

    asyncio.run(scene())


@pytest.mark.req("C15", "C12")
def test_turns_that_weigh_less_than_the_note_of_them_stay(bench: Bench) -> None:
    """Leaving them out would make the request longer: nothing is given up, nothing sent again."""

    async def scene() -> None:
        session = await bench.session("hello", overflow(), "next")
        await session.submit_turn("hi")
        _, outcome = await told(session, "and?")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NothingHelped)
        assert [r.purpose for r in bench.provider.requests] == ["turn", "turn"]
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("C15", "dec10")
def test_after_a_tool_ran_only_the_copy_is_trimmed(bench: Bench) -> None:
    """The tool runs once; the retry keeps its call and result; no checkpoint is made."""
    ran: list[int] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append(1)
        return "seen"

    async def scene() -> None:
        session = await filled(
            bench, {"calls": [{"name": "look"}]}, overflow(window=1_200), "fine", tools=[look]
        )
        events, outcome = await told(session, "look")
        assert isinstance(outcome, Completed)
        assert len(ran) == 1
        assert not any(isinstance(e, ContextCompacted) for e in events)
        assert [e.text for e in events if isinstance(e, TurnWarning)] == [
            "Older turns are left out of this turn's next requests, to make room."
        ]
        assert session.context_info().checkpoint_id is None
        last = bench.provider.requests[-1]
        assert isinstance(last.messages[-1], ToolResult)
        assert len(last.messages) < len(bench.provider.requests[-2].messages)
        assert any(text == "look" for text in texts(last))

    asyncio.run(scene())


@pytest.mark.req("P6")
def test_a_server_that_wants_less_output_gets_it(bench: Bench) -> None:
    """Lowering max_tokens is enough: no history is given up."""

    async def scene() -> None:
        session = await bench.session(
            {"error": {"kind": "max_tokens", "window": 4096, "used": 3700}}, "fine"
        )
        assert (await session.submit_turn("q")).text == "fine"
        first, second = bench.provider.requests
        assert first.messages == second.messages
        assert second.params.max_tokens == 396

    asyncio.run(scene())


@pytest.mark.req("C16", "dec35", "inv17")
def test_old_tool_output_over_its_share_is_clipped_in_the_copy(bench: Bench) -> None:
    """Oldest first, marked, the newest whole; the log keeps every word."""

    @tool
    def dump(n: int) -> str:
        """Dump."""
        return f"start {n} " + "row of data " * 150 + f" end {n}"

    async def scene() -> None:
        steps = [{"calls": [{"name": "dump", "arguments": {"n": n}}]} for n in range(6)]
        session = await bench.session(
            *[each for step in steps for each in (step, "ok")], tools=[dump], context_limit=9_000
        )
        for _ in range(6):
            await session.submit_turn("dump")
        sent = [m for m in session.messages() if isinstance(m, ToolResult)]
        info = session.context_info()
        assert info.clipped_results > 0
        assert "are left out here" in sent[0].content
        assert "are left out here" not in sent[-1].content
        assert sent[0].content.startswith("start 0")
        assert sent[0].content.endswith("end 0")
        assert info.parts["tool_results"] <= 9_000 * 20_000 // 128_000
        stored = session.frames.events()
        assert stored.loc[stored["kind"] == "tool_result", "text"].str.len().min() > 1_500

    asyncio.run(scene())


@pytest.mark.req("C6", "dec38")
def test_a_factor_is_learnt_from_what_servers_count(bench: Bench) -> None:
    """Estimates are multiplied by it, it is shown, and it is there again after a resume."""

    async def scene() -> None:
        counted = {"text": LONG, "usage": {"input_tokens": 900, "output_tokens": 9}}
        session = await bench.session(counted, session_id="s")
        await session.submit_turn(LONG * 2)
        info = session.context_info()
        assert info.factor == pytest.approx(900 / 615, rel=0.1)
        assert info.used == pytest.approx(info.estimate * info.factor, rel=0.02)
        assert info.last_measured == 900
        await session.close()
        again = await bench.resumed("s")
        assert again.context_info() == info

    asyncio.run(scene())


@pytest.mark.req("C6", "dec51")
def test_a_factor_goes_with_the_turns_that_taught_it(bench: Bench) -> None:
    """A child inherits it with their turns; a slot that goes back is measured as the first time."""

    async def scene() -> None:
        counted = {"text": LONG, "usage": {"input_tokens": 900, "output_tokens": 9}}
        session = await bench.session(counted, session_id="s")
        await session.create_slot("new")
        before = session.context_info("default").factor
        await session.submit_turn(LONG * 2)
        await session.derive_slot("child", "default")
        factors = {slot: session.context_info(slot).factor for slot in ("default", "child", "new")}
        assert factors["default"] == factors["child"] > 1.3
        assert factors["new"] == before == 1
        await session.rewind("default", to_seq=0)
        assert session.context_info("default").factor == 1
        assert session.context_info("child").factor == factors["child"]
        await session.close()
        again = await bench.resumed("s")
        assert again.context_info("default").factor == 1
        assert again.context_info("child").factor == factors["child"]

    asyncio.run(scene())


@pytest.mark.req("C13", "C20.7", "dec12")
def test_what_arrives_during_a_summary_is_in_the_tail(bench: Bench) -> None:
    """A steering message recorded while the summary is written goes with the request after it."""

    async def scene() -> None:
        session = await filled(bench, summary(delay_s=0.3), "fine")
        turn = await session.send_message(LONG)
        await asyncio.sleep(0.15)
        await turn.steer("in euros, please")
        assert isinstance(await turn.join(), Completed)
        assert session.context_info().checkpoint_id is not None
        assert texts(bench.provider.requests[-1])[-1] == "in euros, please"
        assert set(session.fates()) == {event.seq for event in session.history()}

    asyncio.run(scene())


@pytest.mark.req("C13")
def test_two_compactions_at_once_are_one(bench: Bench) -> None:
    """The second is told that the slot is busy; so is a clear; one summary is asked for."""

    async def scene() -> None:
        session = await filled(bench, summary(delay_s=0.3))
        first = asyncio.ensure_future(session.compact())
        await asyncio.sleep(0.1)
        for refused in (session.compact(), session.clear(), session.undo_compaction()):
            with pytest.raises(TurnBusy, match="a compaction"):
                await refused
        assert (await first).checkpoint_id is not None
        asked = [r for r in bench.provider.requests if r.purpose == "compaction"]
        assert len(asked) == 1

    asyncio.run(scene())
