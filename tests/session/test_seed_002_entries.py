"""The ways to a compaction: by hand, by itself, after overflows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.degrade import OMITTED
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import CompactError, ContextOverflow, StorageError, TurnBusy
from agent_magics.core.messages import ToolResult
from agent_magics.core.turns import Completed, ContextCompacted, Failed, TurnOutcome
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool
from tests.session.filling import (
    LONG,
    SMALL,
    SUMMARY,
    asked_for_summaries,
    filled,
    sql,
    summary,
    texts,
)
from tests.session.telling import overflow

if TYPE_CHECKING:
    from tests.session.conftest import Bench

BROKEN = (
    "CREATE TRIGGER broken BEFORE INSERT ON checkpoints BEGIN SELECT RAISE(ABORT, 'no room'); END"
)


async def watched(session: Session, prompt: str) -> tuple[list[ContextCompacted], TurnOutcome]:
    """Run a turn; give the compactions that it told of, and how it ended."""
    turn = await session.send_message(prompt)
    told = [event.payload async for event in turn]
    return [each for each in told if isinstance(each, ContextCompacted)], await turn.join()


def purposes(requests: Sequence[ChatRequest], since: int) -> list[str]:
    return [request.purpose for request in requests[since:]]


@pytest.mark.req("C14", "C20.1")
def test_compact_works_below_the_automatic_threshold(bench: Bench) -> None:
    """By hand nothing is asked of the threshold."""

    async def scene() -> None:
        session = await filled(bench, summary(), turns=2)
        info = session.context_info()
        assert info.used < info.limits.threshold
        outcome = await session.compact()
        assert outcome.tokens_after < outcome.tokens_before == info.used

    asyncio.run(scene())


@pytest.mark.req("C4", "C14", "C20.2")
def test_the_automatic_one_comes_after_the_threshold_and_once(bench: Bench) -> None:
    """None before; one in the turn that passes it, although that turn asks the model thrice."""

    @tool
    def look() -> str:
        """Look."""
        return "seen " * 200

    async def scene() -> None:
        calling = {"calls": [{"name": "look"}]}
        session = await filled(bench, summary(), calling, calling, "fine", turns=2, tools=[look])
        assert asked_for_summaries(bench) == 0
        since = len(bench.provider.requests)
        compacted, outcome = await watched(session, LONG * 3)
        assert isinstance(outcome, Completed)
        assert [each.reason for each in compacted] == ["auto"]
        assert purposes(bench.provider.requests, since) == ["compaction", *["turn"] * 3]

    asyncio.run(scene())


@pytest.mark.req("C14", "C12", "C20.11")
@pytest.mark.parametrize("bad", [summary(""), summary(error="server")], ids=["blank", "failed"])
def test_a_failed_automatic_summary_leaves_the_active_checkpoint(
    bench: Bench, bad: dict[str, Any]
) -> None:
    """The checkpoint before goes on being the one, in the store too, and the turn goes on."""

    async def scene() -> None:
        session = await filled(bench, summary(), f"{LONG} late", f"{LONG} later", bad, "fine")
        made = await session.compact()
        for _ in range(2):
            await session.submit_turn(LONG)
        before = sql(bench, "SELECT checkpoint_id, generation FROM slots")
        _, outcome = await watched(session, LONG * 2)
        assert isinstance(outcome, Completed)
        assert any("was not compacted" in warning for warning in outcome.warnings)
        assert session.context_info().checkpoint_id == made.checkpoint_id
        assert sql(bench, "SELECT checkpoint_id, generation FROM slots") == before

    asyncio.run(scene())


async def nearly_full(bench: Bench, *steps: Any) -> Session:
    """Make a session 50 tokens under its threshold, with 200 tokens that could be summed up."""
    session = await filled(bench, "ok", "ok", summary(), *steps, turns=0)
    await session.submit_turn("word " * 200)
    await session.submit_turn("word " * (1_950 - session.context_info().used))
    return session


@pytest.mark.req("C12", "dec36", "inv5")
def test_a_summary_that_hardly_helps_is_not_taken_by_itself(bench: Bench) -> None:
    """Under a tenth fewer tokens is no progress for the trigger."""

    async def scene() -> None:
        session = await nearly_full(bench, "fine")
        _, outcome = await watched(session, "word " * 150)
        assert isinstance(outcome, Completed)
        assert any("hardly" in warning for warning in outcome.warnings)
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("C12", "C14", "dec36")
def test_a_summary_that_helps_a_little_is_taken_by_hand(bench: Bench) -> None:
    """A person who asks for it gets it."""

    async def scene() -> None:
        done = await (await nearly_full(bench)).compact()
        assert 0.9 * done.tokens_before < done.tokens_after < done.tokens_before

    asyncio.run(scene())


@pytest.mark.req("C12", "inv5")
def test_a_context_that_stays_over_the_threshold_is_not_compacted(bench: Bench) -> None:
    """What must stay is too much by itself: nothing changes, and that is said."""

    async def scene() -> None:
        by_hand = CompactionConfig(enabled=False, reserve_tokens=2_000, keep_recent_tokens=300)
        session = await filled(bench, "ok", summary(), turns=2, compaction=by_hand)
        await session.submit_turn(LONG * 7)
        before = session.messages()
        with pytest.raises(CompactError, match="over the threshold of 2,000"):
            await session.compact()
        assert session.messages() == before
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


async def asked_with(bench: Bench, window: int) -> tuple[ChatRequest, Session]:
    """Compact 50,000 tokens in a session whose model has a window; give what was asked of it."""
    by_hand = CompactionConfig(enabled=False, keep_recent_tokens=50)
    fare = summary(SUMMARY + "\nThe fare is 42.10 EUR.")
    session = await filled(bench, fare, *["fine"] * 9, context_limit=None, compaction=by_hand)
    await session.compact()
    for n in range(8):
        await session.submit_turn(f"begin {n} {LONG * 20} end {n}")
    await session.submit_turn("the newest")
    await session.close()
    again = await bench.resumed("s", summary(), context_limit=window, compaction=by_hand)
    await again.compact()
    (request,) = bench.provider.requests
    return request, again


@pytest.mark.req("C10", "C20.13")
@pytest.mark.parametrize(
    ("window", "least", "most"),
    [(128_000, 45_000, 125_952), (16_000, 12_000, 13_952), (8_000, 5_000, 5_952)],
)
def test_the_source_of_a_summary_is_bounded_by_the_models_window(
    bench: Bench, window: int, least: int, most: int
) -> None:
    """No fixed number: a large window takes it all, a small one as much as it holds."""

    async def scene() -> None:
        request, _ = await asked_with(bench, window)
        assert least <= sum(map(count_message, request.messages)) <= most

    asyncio.run(scene())


@pytest.mark.req("C10", "C20.13")
def test_an_oversized_source_is_one_bounded_request_that_says_what_it_lacks(bench: Bench) -> None:
    """The previous summary and the newest material are in it, the oldest is counted as left out;
    what is stored stays whole.
    """

    async def scene() -> None:
        request, session = await asked_with(bench, 8_000)
        asked = texts(request.messages)[-1]
        assert "The fare is 42.10 EUR." in asked
        assert "begin 7" in asked or "end 7" in asked
        assert "begin 0" not in asked
        assert "don't fit and are left out" in asked
        assert "shortened in the middle" in asked
        said = [event.payload for event in session.history()]
        assert sum(LONG * 20 in str(payload) for payload in said) == 8

    asyncio.run(scene())


@pytest.mark.req("C15", "dec27", "dec30", "inv8")
def test_a_smaller_model_over_its_window_degrades_before_the_request(bench: Bench) -> None:
    """The summary fails, so turns are left out first; no doomed request is sent."""

    async def scene() -> None:
        large = ScriptedProvider([LONG] * 4, provider_id="large", context_window=8_000)
        steps: list[Any] = [summary(error="server"), "fine"]
        small = ScriptedProvider(steps, provider_id="small", context_window=2_200)
        config = AgentConfig(
            default_model="large:x",
            session_memory_tools=False,
            compaction=CompactionConfig(reserve_tokens=200),
        )
        builder = AgentBuilder(config).register_model_provider(large)
        agent = await builder.register_model_provider(small).build()
        session = await agent.new_session()
        for _ in range(4):
            await session.submit_turn(LONG)
        await session.set_model("small:x")
        assert session.context_info().used > 2_200
        compacted, outcome = await watched(session, "and?")
        assert isinstance(outcome, Completed)
        assert [(each.reason, each.degraded) for each in compacted] == [("overflow", True)]
        assert purposes(small.requests, 0) == ["compaction", "turn"]
        assert sum(map(count_message, small.requests[-1].messages)) <= 2_200
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("C15", "dec30")
@pytest.mark.parametrize("second", ["fine", overflow()], ids=["helps", "overflows again"])
def test_an_overflow_is_reckoned_with_the_new_window_and_tried_once_more(
    bench: Bench, second: Any
) -> None:
    """The threshold is the told window's; after the second request there is never a third."""

    async def scene() -> None:
        steps = [overflow(window=2_400), summary(), second]
        session = await filled(bench, *steps, context_limit=None)
        since = len(bench.provider.requests)
        _, outcome = await watched(session, "and?")
        assert isinstance(outcome, Completed) == (second == "fine")
        if isinstance(outcome, Failed):
            assert isinstance(outcome.error, ContextOverflow | CompactError)
            assert "history" in outcome.error.message
        assert purposes(bench.provider.requests, since) == ["turn", "compaction", "turn"]
        limits = session.context_info().limits
        assert (limits.window, limits.threshold) == (2_400, 1_200)
        sent = sum(map(count_message, bench.provider.requests[-1].messages))
        assert sent <= limits.threshold

    asyncio.run(scene())


@pytest.mark.req("C15", "C20.11", "inv2", "inv7")
def test_degrading_leaves_out_whole_turns_and_is_marked(bench: Bench) -> None:
    """The checkpoint begins at a turn, says so, claims nothing; the log has everything."""

    async def scene() -> None:
        session = await filled(bench, overflow(window=2_400), summary(""), "fine")
        raw = session.history()
        compacted, outcome = await watched(session, "and?")
        assert isinstance(outcome, Completed)
        assert [each.degraded for each in compacted] == [True]
        info = session.context_info()
        assert (info.degraded, info.reason) == (True, "overflow")
        ((first, degraded),) = sql(bench, "SELECT first_retained_seq, degraded FROM checkpoints")
        assert first in {span.first_seq for span in session.turns()}
        assert degraded == 1
        notice, *_ = texts(session.messages())
        assert OMITTED.split("{")[0] in notice
        assert "trains" not in notice
        assert session.history()[: len(raw)] == raw

    asyncio.run(scene())


async def overflowing_after_a_tool(
    bench: Bench, *last: Any
) -> tuple[list[int], TurnOutcome, list[ChatRequest]]:
    """Run a turn whose request after a tool overflows; `last` is what comes then."""
    ran: list[int] = []

    @tool
    def look(n: int) -> str:
        """Look."""
        ran.append(n)
        return f"seen {n}"

    calling = {"calls": [{"name": "look", "arguments": {"n": n}} for n in (1, 2)]}
    session = await filled(bench, calling, overflow(window=1_800), *last, "never", tools=[look])
    since = len(bench.provider.requests)
    _, outcome = await watched(session, "look twice")
    assert session.context_info().checkpoint_id is None
    return ran, outcome, bench.provider.requests[since:]


@pytest.mark.req("C15", "dec10", "C20.8")
def test_an_overflow_after_tools_is_tried_again_in_the_same_loop(bench: Bench) -> None:
    """Each tool ran once, and its call and result are in the request that is sent again."""

    async def scene() -> None:
        ran, outcome, requests = await overflowing_after_a_tool(bench, "fine")
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "fine"
        assert ran == [1, 2]
        assert [request.purpose for request in requests] == ["turn"] * 3
        *_, asking, one, two = requests[-1].messages
        assert [m.content for m in (one, two) if isinstance(m, ToolResult)] == ["seen 1", "seen 2"]
        assert len(getattr(asking, "calls", ())) == 2
        assert "look twice" in texts(requests[-1].messages)
        assert len(requests[-1].messages) < len(requests[-2].messages)

    asyncio.run(scene())


@pytest.mark.req("C15")
def test_a_second_overflow_after_tools_ends_the_turn(bench: Bench) -> None:
    """No request more, no tool again, and the next turn works."""

    async def scene() -> None:
        ran, outcome, requests = await overflowing_after_a_tool(bench, overflow())
        assert isinstance(outcome, Failed)
        assert ran == [1, 2]
        assert [request.purpose for request in requests] == ["turn"] * 3

    asyncio.run(scene())


@pytest.mark.req("C14", "dec7")
def test_compacting_during_a_turn_disturbs_nothing(bench: Bench) -> None:
    """It is refused with a word; the turn goes on and ends as if nothing had been asked."""

    async def scene() -> None:
        session = await filled(bench, {"text": "one two three", "chunk_delay_s": 0.05}, summary())
        turn = await session.send_message("go on")
        with pytest.raises(TurnBusy, match="busy with a turn"):
            await session.compact()
        outcome = await turn.join()
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "one two three"
        assert asked_for_summaries(bench) == 0
        assert (await session.compact()).checkpoint_id is not None

    asyncio.run(scene())


@pytest.mark.req("C13", "dec32", "inv4", "C20.9")
@pytest.mark.parametrize("way", ["by hand", "by itself"])
def test_a_store_that_fails_parts_no_memory_from_the_file(bench: Bench, way: str) -> None:
    """The view before stays, here and for another process; once the store works, it works."""

    async def scene() -> None:
        steps = ["fine", summary()] if way == "by hand" else [summary(), "fine"]
        session = await filled(bench, summary(), *steps)
        before, raw = session.messages(), session.history()
        sql(bench, BROKEN)
        if way == "by hand":
            with pytest.raises(StorageError):
                await session.compact()
            assert session.history() == raw
        else:
            _, outcome = await watched(session, LONG)
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.error, StorageError)
        assert session.messages()[: len(before)] == before
        assert session.context_info().checkpoint_id is None
        shown = session.messages()
        await session.close()
        sql(bench, "DROP TRIGGER broken")
        again = await bench.resumed("s", summary(), "fine", **SMALL)
        assert again.messages() == shown
        assert (await again.submit_turn(LONG)).text == "fine"
        assert again.context_info().reason == "auto"

    asyncio.run(scene())
