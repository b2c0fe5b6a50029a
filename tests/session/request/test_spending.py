"""Money and tokens: what a turn cost, and the limits that end it before the next request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.chat import CallReady, ChatEvent, ChatRequest, ReasoningDelta, Retrying
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import AgentError
from agent_magics.core.events import Retry, Usage
from agent_magics.core.messages import ToolCall
from agent_magics.core.money import Price, SpendingLimit, Spent
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    Failed,
    ReasoningChunk,
    RetryScheduled,
    TurnOutcome,
)
from agent_magics.core.values import TokenUsage
from agent_magics.providers.recorded import RecordedProvider, RecordingMode
from agent_magics.providers.recorded.cassette import Cassette
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.session.conftest import Bench
from tests.session.filling import LONG

PRICES = {"scripted:test": Price(input=1.0, output=10.0, cached=0.1)}
USAGE = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cached_tokens": 500_000}
LOOK = {"calls": [{"name": "look", "arguments": {}}], "usage": USAGE}


@tool
def look() -> str:
    """Look."""
    return "seen"


async def outcome(session: Session, prompt: str = "go") -> TurnOutcome:
    return await (await session.send_message(prompt)).join()


def usages(session: Session) -> list[Usage]:
    payloads = (event.payload for event in session._open_session.loaded.events)
    return [each for each in payloads if isinstance(each, Usage)]


def step(**more: Any) -> dict[str, Any]:
    return {"text": "ok", "usage": USAGE, **more}


@pytest.mark.req("P7", "dec42")
def test_a_request_is_priced_when_it_is_recorded(bench: Bench) -> None:
    """The ledger keeps the price of that day; the reply sums the turn's requests."""

    async def scene() -> None:
        session = await bench.session(LOOK, step(), prices=PRICES, tools=[look])
        reply = await session.submit_turn("go")
        assert reply.cost_usd == pytest.approx(2 * 1.55)
        spent = usages(session)
        assert [usage.cost_usd for usage in spent] == pytest.approx([1.55, 1.55])

    asyncio.run(scene())


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("steps", "prices"),
    [(["ok"], PRICES), ([step()], {}), ([LOOK, "ok"], PRICES)],
    ids=["no count", "no price", "one of two not counted"],
)
def test_an_unknown_price_is_not_zero(
    bench: Bench, steps: list[Any], prices: dict[str, Price]
) -> None:
    """Where a part isn't known, the whole isn't."""

    async def scene() -> None:
        session = await bench.session(*steps, prices=prices, tools=[look])
        assert (await session.submit_turn("go")).cost_usd is None

    asyncio.run(scene())


@pytest.mark.req("N13", "dec57")
@pytest.mark.parametrize(
    "limit", [SpendingLimit(usd=1.5), SpendingLimit(tokens=1_000_000)], ids=["money", "tokens"]
)
def test_a_turn_ends_before_the_request_past_its_limit(bench: Bench, limit: SpendingLimit) -> None:
    """What was done is kept; nothing more is sent; the next turn begins anew."""

    async def scene() -> None:
        session = await bench.session(
            LOOK, step(text="next"), prices=PRICES, tools=[look], max_cost_per_turn=limit
        )
        ended = await outcome(session)
        assert isinstance(ended, Failed)
        assert ended.error.code == "SPENDING_LIMIT_REACHED"
        assert "max_cost_per_turn" in ended.error.message
        assert len(bench.provider.requests) == 1
        assert "seen" in str(session.messages())
        assert isinstance(await outcome(session), Completed)

    asyncio.run(scene())


@pytest.mark.req("N13", "dec57", "E18")
def test_a_session_limit_counts_all_slots_and_holds_after_a_restart(bench: Bench) -> None:
    """The sum is read from the ledger; deleted slots count."""

    async def scene() -> None:
        limits: dict[str, Any] = {
            "prices": PRICES,
            "max_cost_per_session": SpendingLimit(usd=3.0),
        }
        session = await bench.session(step(), step(), session_id="s", **limits)
        await session.create_slot("side")
        await session.submit_turn("go", slot="side")
        await session.delete_slot("side")
        await session.submit_turn("go")
        ended = await outcome(session)
        assert isinstance(ended, Failed)
        assert "$3.10 of $3.00" in ended.error.message
        await session.close()
        again = await bench.resumed("s", "never asked", **limits)
        ended = await outcome(again)
        assert isinstance(ended, Failed)
        assert bench.provider.requests == []
        assert again._open_session.loaded.spent.usd == pytest.approx(3.1)

    asyncio.run(scene())


@pytest.mark.req("N13")
def test_a_limit_in_money_says_where_it_cannot_hold(bench: Bench) -> None:
    """Without a price a warning names the two ways out; once for each model is enough."""

    async def scene() -> None:
        limit = SpendingLimit(usd=0.01)
        session = await bench.session(*[step() for _ in range(4)], max_cost_per_turn=limit)
        for name, is_told in (("test", True), ("test", False), ("other", True), ("other", False)):
            model = f"scripted:{name}"
            await session.set_model(model)
            ended = await outcome(session)
            assert isinstance(ended, Completed)
            told = f"The price of {model} isn't known, so a spending limit in money can't hold it"
            assert [told in warning for warning in ended.warnings] == ([True] if is_told else [])

    asyncio.run(scene())


@pytest.mark.req("N13", "dec57")
@pytest.mark.parametrize(
    ("first", "is_held"),
    [
        ("word " * 50, True),
        ({"calls": [{"name": "look", "arguments": {"what": "word " * 50}}]}, True),
        ({"error": "auth"}, False),
    ],
    ids=["text", "calls", "nothing came"],
)
def test_a_limit_in_tokens_holds_where_no_server_counts(
    bench: Bench, first: Any, *, is_held: bool
) -> None:
    """Our estimate stands in for an answer that came, and for none that didn't."""

    async def scene() -> None:
        limit = SpendingLimit(tokens=60)
        session = await bench.session(first, "ok", tools=[look], max_cost_per_session=limit)
        await outcome(session)
        ended = await outcome(session)
        assert isinstance(ended, Failed) is is_held
        if is_held:
            assert isinstance(ended, Failed)
            assert "about " in ended.error.message
            assert len(bench.provider.requests) == 1

    asyncio.run(scene())


class Stumbling(ScriptedProvider):
    """Fails once, after its server has counted the prompt."""

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        counted = TokenUsage(input_tokens=1_000_000, output_tokens=0)
        yield Retrying(attempt=1, reason="overloaded", wait_s=0.0, usage=counted)
        async for event in super().chat(request):
            yield event


@pytest.mark.req("P5", "P7", "dec42")
def test_what_failed_attempts_cost_is_in_the_ledger() -> None:
    """Each attempt that its server counted is a request of its own, and is paid for."""

    async def scene() -> None:
        config = AgentConfig(default_model="scripted:test", prices=PRICES)
        model = Stumbling([step()])
        agent = await AgentBuilder(config).register_model_provider(model).build()
        session = await agent.new_session()
        reply = await session.submit_turn("go")
        said = [e.payload for e in session._open_session.loaded.events]
        asked = [each for each in said if isinstance(each, Usage)]
        assert [each.attempt for each in asked] == [1, 2]
        assert [each.input_tokens for each in asked] == [1_000_000, 1_000_000]
        assert [each.attempt for each in said if isinstance(each, Retry)] == [1]
        assert reply.cost_usd == pytest.approx(1.0 + 1.55)
        assert reply.usage == TokenUsage(
            input_tokens=2_000_000, output_tokens=100_000, cached_tokens=500_000
        )
        assert session._open_session.loaded.spent.requests == 2
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("N13")
def test_what_no_server_counted_is_told_apart(bench: Bench) -> None:
    """A sum knows how many requests it doesn't know."""

    async def scene() -> None:
        session = await bench.session("ok", step(), prices=PRICES)
        await session.submit_turn("one")
        await session.submit_turn("two")
        asked = usages(session)
        assert [each.estimated_output_tokens for each in asked] == [1, 0]
        assert session._open_session.loaded.spent == Spent(
            requests=2,
            input_tokens=1_000_000,
            cached_tokens=500_000,
            output_tokens=100_000,
            usd=1.55,
            priced=1,
            uncounted=1,
            estimated_tokens=asked[0].estimated_input_tokens + 1,
            estimated_usd=(asked[0].estimated_input_tokens + 10) / 1_000_000,
        )

    asyncio.run(scene())


@pytest.mark.req("N13", "P4", "dec61")
@pytest.mark.parametrize(
    ("mode", "repeated"), [("auto", Completed), ("replay", Completed), ("record", Failed)]
)
def test_a_limit_holds_no_replay(
    tmp_path: Path, mode: RecordingMode, repeated: type[TurnOutcome]
) -> None:
    """What is in the recording costs nothing; the first request that isn't, is held."""

    async def scene() -> None:
        model, cassette = (
            ScriptedProvider([LOOK, step(), "never"]),
            Cassette(tmp_path / "a.recording.jsonl"),
        )
        provider = RecordedProvider(model, cassette, "auto")
        config = AgentConfig(
            default_model="scripted:test",
            prices=PRICES,
            max_cost_per_session=SpendingLimit(usd=3.0),
            session_memory_tools=False,
        )
        builder = AgentBuilder(config).register_model_provider(provider).register_tool(look)
        agent = await builder.build()
        session = await agent.new_session()
        assert isinstance(await outcome(session), Completed)
        await session.clear()
        cassette.go_back({})  # as a cell that runs again
        provider._mode = mode
        ended = await outcome(session)
        assert isinstance(ended, repeated)
        if mode != "record":
            assert ended.reply.text == "ok"
        ended = await outcome(session, "something new")
        assert isinstance(ended, Failed)
        assert ended.error.code == (
            "PROVIDER_ERROR" if mode == "replay" else "SPENDING_LIMIT_REACHED"
        )
        assert len(model.requests) == 2
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("N13", "P4", "dec57", "dec61")
def test_a_recorded_answer_lets_one_of_several_slots_past_a_limit(tmp_path: Path) -> None:
    """Slots that ask the same thing at once: one has the recorded answer, the others are held."""

    async def scene() -> None:
        cassette = Cassette(tmp_path / "a.recording.jsonl")
        model = ScriptedProvider([step(), "never", "never"])
        config = AgentConfig(
            default_model="scripted:test",
            prices=PRICES,
            max_cost_per_session=SpendingLimit(usd=1.5),
            session_memory_tools=False,
        )
        recorded = RecordedProvider(model, cassette, "auto")
        agent = await AgentBuilder(config).register_model_provider(recorded).build()
        session = await agent.new_session()
        assert isinstance(await outcome(session), Completed)
        cassette.go_back({})
        for name in ("a", "b", "c"):
            await session.create_slot(name)
        ended = await session.fan_out("go", ["a", "b", "c"])
        assert sorted(type(each).__name__ for each in ended.values()) == [
            "Completed",
            "Failed",
            "Failed",
        ]
        assert len(model.requests) == 1
        assert list(cassette.places().values()) == [1]
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("N13", "dec57")
def test_a_limit_in_money_holds_no_model_that_costs_nothing(bench: Bench) -> None:
    """What is known to be free goes on past a limit in money; a limit in tokens holds it."""

    async def scene() -> None:
        limits: dict[str, Any] = {"max_cost_per_session": SpendingLimit(usd=1.0)}
        session = await bench.session(step(), session_id="s", prices=PRICES, **limits)
        await session.submit_turn("go")
        assert isinstance(await outcome(session), Failed)
        await session.close()
        free = {"scripted:test": Price(input=0, output=0)}
        again = await bench.resumed("s", "free", prices=free, **limits)
        assert isinstance(await outcome(again), Completed)
        await again.close()
        limits = {"max_cost_per_session": SpendingLimit(usd=1.0, tokens=1_000)}
        again = await bench.resumed("s", "never", prices=free, **limits)
        assert isinstance(await outcome(again), Failed)

    asyncio.run(scene())


class Leaving(ScriptedProvider):
    """Gives some events and then nothing more, as a server that hangs."""

    def __init__(self, *events: ChatEvent) -> None:
        super().__init__([])
        self._events = events

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        for event in self._events:
            yield event
        await asyncio.sleep(60)


async def stopped_after(*events: ChatEvent) -> tuple[TurnOutcome, list[Usage], Spent]:
    """Stop a turn once it has shown something; give what was recorded of its requests."""
    config = AgentConfig(default_model="scripted:test", prices=PRICES)
    agent = await AgentBuilder(config).register_model_provider(Leaving(*events)).build()
    session = await agent.new_session()
    turn = await session.send_message("go")
    async for event in turn:
        if isinstance(event.payload, ReasoningChunk | RetryScheduled):
            turn.cancel()
    ended = await turn.join()
    await agent.shutdown()
    return ended, usages(session), session._open_session.loaded.spent


@pytest.mark.req("N13", "dec42", "dec57")
def test_a_stopped_answer_without_text_counts_what_came() -> None:
    """Reasoning and calls are weighed, and the prompt with them."""

    async def scene() -> None:
        call = ToolCall(call_id="c", tool_name="look", arguments={"what": "word " * 50})
        ended, (usage,), spent = await stopped_after(
            CallReady(call=call), ReasoningDelta(text="word " * 50)
        )
        assert isinstance(ended, Cancelled)
        assert usage.estimated_output_tokens > 100  # 50 of either
        assert spent.estimated_tokens == (
            usage.estimated_input_tokens + usage.estimated_output_tokens
        )
        assert spent.estimated_usd > 0

    asyncio.run(scene())


@pytest.mark.req("N13", "dec42", "dec57")
def test_a_request_beside_the_turns_counts_reasoning_and_calls(bench: Bench) -> None:
    """A summary that became a call was paid for, too."""

    async def scene() -> None:
        lost = {
            "reasoning": "word " * 50,
            "calls": [{"name": "look", "arguments": {"what": "word " * 50}}],
            "purpose": "compaction",
        }
        keep = CompactionConfig(keep_recent_tokens=1)
        session = await bench.session("one", "two", lost, lost, lost, compaction=keep)
        await session.submit_turn("go")
        await session.submit_turn("go on")
        with pytest.raises(AgentError):
            await session.compact()
        used = usages(session)[-1]
        assert used.purpose == "compaction"
        assert used.estimated_output_tokens > 100

    asyncio.run(scene())


@pytest.mark.req("P5", "dec42")
@pytest.mark.parametrize(
    "counted", [None, TokenUsage(input_tokens=1_000_000, output_tokens=0)], ids=["not", "counted"]
)
def test_a_stop_in_the_wait_for_a_retry_records_what_was_sent(counted: TokenUsage | None) -> None:
    """The attempt that never began is no request."""

    async def scene() -> None:
        retry = Retrying(attempt=1, reason="overloaded", wait_s=60.0, usage=counted)
        ended, (usage,), spent = await stopped_after(retry)
        assert isinstance(ended, Cancelled)
        assert usage.attempt == 1
        assert usage.told == counted
        assert spent.requests == 1
        assert ended.reply.cost_usd == (None if counted is None else pytest.approx(1.0))

    asyncio.run(scene())


@pytest.mark.req("N13", "dec57")
def test_a_limit_in_money_holds_where_no_server_counts(bench: Bench) -> None:
    """Where the price is known our estimate is priced, for the limit alone."""

    async def scene() -> None:
        limit = SpendingLimit(usd=0.001)
        session = await bench.session(
            "word " * 200, "never", prices=PRICES, max_cost_per_session=limit
        )
        first = await outcome(session)
        assert isinstance(first, Completed)
        assert first.reply.cost_usd is None
        ended = await outcome(session)
        assert isinstance(ended, Failed)
        assert "about $0.0" in ended.error.message
        assert session._open_session.loaded.spent.usd == 0.0

    asyncio.run(scene())


@pytest.mark.req("P7", "N13", "dec42")
def test_a_count_of_the_output_alone_is_kept(bench: Bench) -> None:
    """The input is unknown, and for limits what we estimate."""

    async def scene() -> None:
        session = await bench.session(step(usage={"output_tokens": 90_000}), step(), prices=PRICES)
        reply = await session.submit_turn("go")
        assert reply.usage == TokenUsage(output_tokens=90_000)
        assert str(reply.usage) == "? → 90,000 tokens"
        assert reply.cost_usd is None
        (usage,) = usages(session)
        spent = session._open_session.loaded.spent
        assert (spent.output_tokens, spent.uncounted) == (90_000, 1)
        assert spent.estimated_tokens == usage.estimated_input_tokens > 0
        assert spent.estimated_usd > 0.9

    asyncio.run(scene())


@pytest.mark.req("N13", "C14", "dec57")
def test_nothing_is_given_up_for_a_request_that_a_limit_holds(tmp_path: Path) -> None:
    """A recording that has other answers lets no turns be left out for one that it hasn't."""

    async def scene() -> None:
        counted = {"text": "three", "usage": {"input_tokens": 1_000_000, "output_tokens": 1}}
        model = ScriptedProvider([LONG, LONG, counted, "never"])
        recorded = RecordedProvider(model, Cassette(tmp_path / "a.recording.jsonl"), "auto")
        config = AgentConfig(
            default_model="scripted:test",
            context_limit=4_000,
            compaction=CompactionConfig(enabled=False, reserve_tokens=2_000),
            max_cost_per_session=SpendingLimit(tokens=500_000),
            session_memory_tools=False,
        )
        agent = await AgentBuilder(config).register_model_provider(recorded).build()
        session = await agent.new_session()
        for prompt in (LONG, LONG, "three"):
            assert isinstance(await outcome(session, prompt), Completed)
        info = session.next_request().info
        assert info.used > info.limits.window  # what was counted makes it so
        ended = await outcome(session, "four")
        assert isinstance(ended, Failed)
        assert ended.error.code == "SPENDING_LIMIT_REACHED"
        assert session.context_info().checkpoint_id is None
        await agent.shutdown()

    asyncio.run(scene())
