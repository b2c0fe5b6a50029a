"""Turns larger than the window: cut at an iteration, and never in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_magics.context.tokens import count_message, count_tools
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import FixedContextExceedsBudget, NothingHelped
from agent_magics.core.messages import Assistant, ToolResult, User, text_of
from agent_magics.core.ports import Tool
from agent_magics.core.turns import Completed, ContextCompacted, Failed, TurnWarning
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.context.strict import assert_strict
from tests.session.filling import SUMMARY
from tests.session.telling import overflow, told

if TYPE_CHECKING:
    from tests.session.conftest import Bench

WORDS = "They talked about the price of trains in May, at length. "
LONG = WORDS * 22  # about 310 tokens
SMALL: dict[str, Any] = {
    "context_limit": 4_000,
    "compaction": CompactionConfig(reserve_tokens=2_000),
}
WROTE = {"text": SUMMARY, "purpose": "compaction"}
FAILS = {"purpose": "compaction", "error": "server"}
ITERATIONS_LEFT_OUT = "the first tool calls of this turn are left out"


class Looking:
    """A tool that counts how often it ran, and with what."""

    def __init__(self, answer: str = "seen") -> None:
        self.ran: list[int] = []
        self.answer = answer

    def tool(self) -> Tool:
        @tool
        def look(n: int) -> str:
            """Look."""
            self.ran.append(n)
            return f"{self.answer} {n}"

        return look


def looks(count: int, text: str = LONG) -> list[dict[str, Any]]:
    """Script that many iterations: a long word, one call."""
    return [
        {"text": f"{n}: {text}", "calls": [{"name": "look", "arguments": {"n": n}}]}
        for n in range(count)
    ]


def turn_requests(provider: ScriptedProvider) -> list[ChatRequest]:
    return [request for request in provider.requests if request.purpose == "turn"]


def weight_of(request: ChatRequest) -> int:
    return sum(map(count_message, request.messages)) + count_tools(request.tools)


def prompts_of(request: ChatRequest) -> list[str]:
    return [text_of(m.content) for m in request.messages if isinstance(m, User)]


def warnings_of(events: list[Any]) -> list[str]:
    return [event.text for event in events if isinstance(event, TurnWarning)]


async def giant_turn(bench: Bench, *steps: Any, count: int = 14, **how: Any) -> Session:
    """Make a session with a small turn, then one of twice the window."""
    script = ["hello", *looks(count), "done", *steps]
    session = await bench.session(*script, **{**SMALL, "tools": [Looking().tool()], **how})
    await session.submit_turn("hi")
    await session.submit_turn("look at everything")
    return session


@pytest.mark.req("C15", "dec35", "dec10", "inv9", "inv3")
def test_a_running_turn_larger_than_the_window_goes_on(bench: Bench) -> None:
    """No request is over the window; the prompt and the newest calls are in each, each tool runs
    once, the person is told once, and no checkpoint is made.
    """
    looking = Looking()

    async def scene() -> None:
        prompt = f"look at everything {LONG}"
        session = await bench.session("hello", *looks(14), "done", tools=[looking.tool()], **SMALL)
        await session.submit_turn("hi")
        events, outcome = await told(session, prompt)
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "done"
        assert looking.ran == list(range(14))
        assert sum(ITERATIONS_LEFT_OUT in text for text in warnings_of(events)) == 1
        assert not any(isinstance(event, ContextCompacted) for event in events)
        sent = turn_requests(bench.provider)[1:]
        assert len(sent) == 15
        for number, request in enumerate(sent):
            assert weight_of(request) <= 4_000
            assert_strict(request.messages, is_request=True)
            assert prompt in prompts_of(request)
            if number:
                newest = request.messages[-1]
                assert isinstance(newest, ToolResult)
                assert newest.content == f"seen {number - 1}"
        assert "not shown and not summarised" in prompts_of(sent[-1])[0]
        assert session.context_info().checkpoint_id is None
        assert len(session.history()) == 2 + 1 + 14 * 3 + 1

    asyncio.run(scene())


@pytest.mark.req("C15", "dec35", "C16")
def test_what_is_left_out_of_a_running_turn_moves_in_steps(bench: Bench) -> None:
    """The start of its requests stays the same for several of them, for a server's cache."""

    async def scene() -> None:
        await giant_turn(bench, count=30)
        sent = turn_requests(bench.provider)[1:]
        starts = [tuple(m.seq for m in request.messages[1:4]) for request in sent]
        assert len(starts) == 31
        assert 3 <= len(set(starts)) <= 5
        assert starts == sorted(starts, key=starts.index)

    asyncio.run(scene())


@pytest.mark.req("C15", "dec35", "inv1", "inv2", "inv3", "inv16")
@pytest.mark.parametrize(
    ("step", "is_degraded"), [(WROTE, False), (FAILS, True)], ids=["summarised", "left out"]
)
def test_after_a_giant_turn_a_checkpoint_begins_at_an_iteration(
    bench: Bench,
    step: dict[str, Any],
    is_degraded: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """With a summary or without, the end of the turn stays as it was; reloaded too."""

    async def scene() -> None:
        session = await giant_turn(bench, step, "fine", session_id="s")
        giant = session.turns()[-1]
        events, outcome = await told(session, "and now?")
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "fine"
        compacted = [event for event in events if isinstance(event, ContextCompacted)]
        assert [(e.reason, e.degraded) for e in compacted] == [("overflow", is_degraded)]
        assert compacted[0].is_turn_cut
        sent = turn_requests(bench.provider)[-1]
        assert_strict(sent.messages, is_request=True)
        assert weight_of(sent) <= 4_000
        first = sent.messages[2]
        assert isinstance(first, Assistant)
        assert first.calls
        assert first.seq is not None
        assert giant.first_seq < first.seq < giant.last_seq
        fates = session.fates()
        assert set(fates) == {event.seq for event in session.history()}
        assert {fates[seq] for seq in fates if seq < first.seq} == {"summarised"}
        assert {fates[seq] for seq in fates if seq >= first.seq} == {"retained"}
        info, messages = session.context_info(), session.messages()
        assert info.is_turn_cut
        assert info.used <= info.limits.threshold
        await session.close()
        again = await bench.resumed("s", tools=[Looking().tool()], **SMALL)
        assert again.messages() == messages
        assert again.context_info() == info

    asyncio.run(scene())


@pytest.mark.req("C8", "dec35", "C9")
def test_the_compaction_after_that_goes_on_where_it_ended(bench: Bench) -> None:
    """The rest of the giant turn is summarised with what came since, whole turns again."""

    async def scene() -> None:
        session = await giant_turn(bench, WROTE, LONG, LONG, {**WROTE, "text": SUMMARY + "\nmore"})
        await session.submit_turn("and now?")
        await session.submit_turn("and then?")
        assert session.context_info().is_turn_cut
        outcome = await session.compact()
        assert outcome.first_retained_seq == session.turns()[-2].first_seq
        assert not outcome.is_turn_cut
        first, second = [r for r in bench.provider.requests if r.purpose == "compaction"]
        assert "10: They talked" in prompts_of(first)[0]
        asked = prompts_of(second)[0]
        assert "10: They talked" not in asked
        assert "13: They talked" in asked
        assert "Assistant: done" in asked

    asyncio.run(scene())


@pytest.mark.req("C15", "dec25", "dec18", "dec37")
def test_rewinding_deriving_and_undoing_around_an_iteration(bench: Bench) -> None:
    """At the end of the cut turn the checkpoint holds, before it it doesn't."""

    async def scene() -> None:
        session = await giant_turn(bench, WROTE, "fine")
        small, giant = session.turns()
        await session.submit_turn("and now?")
        await session.derive_slot("late", "default", at_seq=giant.last_seq)
        await session.derive_slot("early", "default", at_seq=small.last_seq)
        assert session.context_info("late").checkpoint_id is not None
        assert session.context_info("early").checkpoint_id is None
        assert len(session.messages("early")) == 2
        await session.rewind(to_seq=giant.last_seq)
        assert session.context_info().checkpoint_id is not None
        assert await session.undo_compaction() is None
        assert len(session.messages()) == 2 + 1 + 14 * 2 + 1

    asyncio.run(scene())


@pytest.mark.req("C15", "C14", "dec35")
def test_a_whole_turn_that_fits_is_not_cut(bench: Bench) -> None:
    """Where leaving out older turns is enough, the newest complete one stays whole."""

    async def scene() -> None:
        session = await bench.session(
            *[f"{LONG} {n}" for n in range(5)], WROTE, "fine", tools=[Looking().tool()], **SMALL
        )
        for n in range(5):
            await session.submit_turn(f"{LONG} prompt {n}")
            await session.configure_slot("default", compact=False)
        await session.configure_slot("default", compact=True)
        events, _ = await told(session, LONG * 2)
        (compacted,) = [event for event in events if isinstance(event, ContextCompacted)]
        assert not compacted.is_turn_cut
        assert bench.provider.requests[-1].messages[2].seq == session.turns()[-2].first_seq

    asyncio.run(scene())


@pytest.mark.req("C15", "dec35", "dec10")
@pytest.mark.parametrize(
    "facts", [{"window": 2_500, "used": 2_800}, {}], ids=["window told", "nothing told"]
)
def test_a_server_that_refuses_in_a_giant_turn_gets_a_shorter_request(
    bench: Bench, facts: dict[str, int]
) -> None:
    """After tools ran: one more request, without the oldest calls; no tool runs twice."""
    looking = Looking()
    refused = overflow(**facts)

    async def scene() -> None:
        session = await bench.session(*looks(8), refused, "done", tools=[looking.tool()])
        events, outcome = await told(session, "look at everything")
        assert isinstance(outcome, Completed)
        assert looking.ran == list(range(8))
        assert [ITERATIONS_LEFT_OUT in text for text in warnings_of(events)] == [True]
        before, after = turn_requests(bench.provider)[-2:]
        assert weight_of(after) < 0.75 * weight_of(before)
        assert prompts_of(after)[-1] == "look at everything"
        assert after.messages[-2:] == before.messages[-2:]
        assert_strict(after.messages, is_request=True)

    asyncio.run(scene())


@pytest.mark.req("C15", "inv5")
def test_what_a_server_refused_is_not_tried_again_in_the_turn(bench: Bench) -> None:
    """A server that tells no window refuses once, not before every answer."""
    refused = {"error": {"kind": "overflow"}}

    async def scene() -> None:
        session = await bench.session(
            *looks(8), refused, *looks(3), "done", tools=[Looking().tool()]
        )
        await session.submit_turn("look at everything")
        weights = [weight_of(request) for request in turn_requests(bench.provider)]
        assert max(weights[9:]) <= 0.75 * weights[8]

    asyncio.run(scene())


@pytest.mark.req("C15", "C7", "inv5", "inv8")
def test_what_can_not_shrink_in_a_turn_is_named(bench: Bench) -> None:
    """The newest calls alone over the window: no doomed request, tokens by part and a remedy; the
    next turn starts without them.
    """

    async def scene() -> None:
        session = await bench.session(
            *looks(1, LONG * 15), WROTE, "fine", tools=[Looking().tool()], **SMALL
        )
        _, outcome = await told(session, "look")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NothingHelped)
        assert "history 4," in outcome.error.message
        assert "raise context_limit, which is 4,000" in outcome.error.message
        assert len(turn_requests(bench.provider)) == 1
        events, outcome = await told(session, "and now?")
        assert isinstance(outcome, Completed)
        assert [e.degraded for e in events if isinstance(e, ContextCompacted)] == [False]
        assert prompts_of(turn_requests(bench.provider)[-1])[-1] == "and now?"
        assert len(turn_requests(bench.provider)[-1].messages) == 3

    asyncio.run(scene())


@pytest.mark.req("C15", "inv5")
def test_a_refused_request_that_can_not_shrink_is_not_sent_twice(bench: Bench) -> None:
    """The server is asked once; the error is its own, with the parts."""

    async def scene() -> None:
        session = await bench.session({"error": {"kind": "overflow"}}, "next")
        _, outcome = await told(session, "hello")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, NothingHelped)
        assert "system" in outcome.error.message
        assert len(bench.provider.requests) == 1
        assert (await session.submit_turn("again")).text == "next"

    asyncio.run(scene())


@pytest.mark.req("C15", "inv7", "inv9")
def test_a_summary_gives_way_to_a_large_prompt(bench: Bench) -> None:
    """Where prompt and summary don't fit together, the prompt is sent and the summary isn't."""
    large = SUMMARY + "\n" + WORDS * 30
    how: dict[str, Any] = {
        "context_limit": 2_000,
        "compaction": CompactionConfig(reserve_tokens=200),
    }

    async def scene() -> None:
        session = await bench.session(
            f"{LONG}1", f"{LONG}2", {**WROTE, "text": large}, FAILS, "fine", **how
        )
        await session.submit_turn(f"{LONG}one")
        await session.submit_turn(f"{LONG}two")
        await session.configure_slot("default", compact=False)
        await session.compact()
        prompt = WORDS * 125
        events, outcome = await told(session, prompt)
        assert isinstance(outcome, Completed)
        sent = bench.provider.requests[-1]
        assert weight_of(sent) <= 2_000
        assert prompts_of(sent)[-1] == prompt
        assert "Short." not in prompts_of(sent)[0]
        assert "2 older turns are not shown and not summarised" in prompts_of(sent)[0]
        assert [e.degraded for e in events if isinstance(e, ContextCompacted)] == [True]

    asyncio.run(scene())


class Server(ScriptedProvider):
    """A server with a window: what is longer is refused, told or not; it never just cuts."""

    def __init__(self, sizes: list[int], window: int, *, tells: bool) -> None:
        super().__init__(repeat=True, steps=[self.answer])
        self.sizes, self.window, self.tells = sizes, window, tells
        self.refused = 0
        self.asked = 0

    def answer(self, request: ChatRequest) -> dict[str, Any]:
        assert_strict(request.messages, is_request=True)
        if weight_of(request) > self.window:
            self.refused += 1
            told = {"window": self.window, "used": weight_of(request)} if self.tells else {}
            return {"error": {"kind": "overflow", **told}}
        if request.purpose == "compaction":
            return {"text": SUMMARY}
        self.asked += 1
        if self.asked > len(self.sizes):
            return {"text": "done"}
        text = WORDS * self.sizes[self.asked - 1]
        return {
            "text": text,
            "calls": [{"name": "look", "arguments": {"n": self.asked, "why": text[:200]}}],
        }


async def with_server(
    server: Server, scene: Callable[[Session, list[int]], Any], **how: Any
) -> None:
    ran: list[int] = []

    @tool
    def look(n: int, why: str) -> str:
        """Look."""
        ran.append(n)
        return why * (n % 4)

    config = AgentConfig(default_model="scripted:test", **how)
    agent = await AgentBuilder(config).register_model_provider(server).register_tool(look).build()
    await scene(await agent.new_session(), ran)
    await agent.shutdown()


@pytest.mark.slow
@pytest.mark.req("C15", "inv3", "inv5", "inv7", "inv9", "dec35")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=14),
    prompt=st.integers(1, 80),
    window=st.integers(900, 4_000),
    tells=st.booleans(),
    knows=st.booleans(),
)
def test_any_turn_ends_in_a_bounded_number_of_requests(
    sizes: list[int],
    prompt: int,
    window: int,
    tells: bool,  # noqa: FBT001 - drawn
    knows: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever the sizes: each request is sent at most twice, the prompt is in every one, each
    tool runs once, and a turn that fails says what fills the window. So does the turn after it.
    """

    async def scene(session: Session, ran: list[int]) -> None:
        for text in (f"first {WORDS * prompt}", "second"):
            before, refused = len(turn_requests(server)), server.refused
            _, outcome = await told(session, text)
            sent = turn_requests(server)[before:]
            assert all(text in prompts_of(request) for request in sent)
            assert server.refused - refused <= len(sent) / 2 + 1
            assert len(sent) <= 2 * (len(sizes) + 1)
            assert ran == sorted(set(ran))
            if isinstance(outcome, Failed):
                assert isinstance(outcome.error, NothingHelped | FixedContextExceedsBudget)
                assert "history" in outcome.error.message or "system" in outcome.error.message
            else:
                assert isinstance(outcome, Completed)
            assert set(session.fates()) == {event.seq for event in session.history()}

    server = Server(sizes, window, tells=tells)
    limit: dict[str, Any] = {"context_limit": window} if knows else {}
    asyncio.run(with_server(server, scene, max_tool_calls_per_turn=20, **limit))
