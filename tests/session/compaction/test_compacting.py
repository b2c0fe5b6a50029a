"""Compaction, first form: a real summary from the model, one checkpoint, the raw log untouched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.chat import ChatEvent, ChatRequest, Retrying
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import (
    CompactError,
    CompactionStale,
    FixedContextExceedsBudget,
    NothingToCompact,
    TurnBusy,
)
from agent_magics.core.messages import Message, User, text_of
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.threads.loop import background_loop
from tests.session.filling import SUMMARY, summary

if TYPE_CHECKING:
    from tests.session.conftest import Bench

LONG = "They talked about the price of trains in May, at length. " * 20
KEEP_LITTLE = {"compaction": CompactionConfig(keep_recent_tokens=50)}


def spoken(message: Message) -> str:
    assert isinstance(message, User)
    return text_of(message.content)


async def long_session(bench: Bench, *steps: Any, turns: int = 4, **how: Any) -> Session:
    settings = {**KEEP_LITTLE, **how}
    answers = [f"{LONG} answer {n}" for n in range(turns)]
    session = await bench.session(*answers, *steps, **settings)
    for n in range(turns):
        await session.submit_turn(f"{LONG} prompt {n}")
    return session


@pytest.mark.req("C1", "C2", "C3", "C14", "C11", "C20.1", "C20.3", "C20.4")
def test_compacting_puts_a_summary_before_the_tail(bench: Bench) -> None:
    """The view is summary + newest turn; the log, its seqs and counts are what they were."""

    async def scene() -> None:
        session = await long_session(bench, summary(), "after", session_id="s")
        history, listed = session.history(), session.list_slots()[0]
        outcome = await session.compact()
        assert outcome.tokens_after < outcome.tokens_before / 2
        assert (outcome.summarised_turns, outcome.kept_turns) == (3, 1)
        assert outcome.first_retained_seq == session.turns()[-1].first_seq
        assert session.history() == history
        assert session.list_slots()[0].message_count == listed.message_count
        first, *tail = session.messages()
        assert isinstance(first, User)
        assert SUMMARY in text_of(first.content)
        assert len(tail) == 2
        info = session.context_info()
        assert info.used == outcome.tokens_after
        assert info.checkpoint_id == outcome.checkpoint_id
        before = session.messages()
        await session.close()
        again = await bench.resumed("s", "after", **KEEP_LITTLE)
        assert again.messages() == before
        assert bench.provider.requests == []
        assert (await again.submit_turn("next")).text == "after"

    asyncio.run(scene())


@pytest.mark.req("C10", "C14")
def test_one_request_without_tools_asks_for_what_the_person_wants_kept(bench: Bench) -> None:
    """The summary is one tool-less request that names the headings and the instructions."""

    async def scene() -> None:
        session = await long_session(bench, summary())
        await session.compact(instructions="keep the fare of 42.10 EUR")
        (request,) = [r for r in bench.provider.requests if r.purpose == "compaction"]
        assert request.tools == ()
        asked = spoken(request.messages[-1])
        assert "keep the fare of 42.10 EUR" in asked
        assert all(heading in asked for heading in SUMMARY_HEADINGS)
        assert request.params.max_tokens == 2048

    asyncio.run(scene())


@pytest.mark.req("C9", "C20.5", "C20.6")
def test_the_next_compaction_builds_on_the_one_before(bench: Bench) -> None:
    """The second source is the first summary and what is newly left behind, nothing older."""

    async def scene() -> None:
        session = await long_session(
            bench, summary(), f"{LONG} late", summary(SUMMARY + "\nmore"), "end"
        )
        await session.compact()
        with pytest.raises(NothingToCompact):
            await session.compact()
        await session.submit_turn(f"{LONG} new prompt")
        await session.compact()
        requests = [r for r in bench.provider.requests if r.purpose == "compaction"]
        assert len(requests) == 2
        asked = spoken(requests[-1].messages[-1])
        assert SUMMARY in asked
        assert "prompt 3" in asked
        assert "prompt 0" not in asked
        shown = spoken(session.messages()[0])
        assert "more" in shown
        assert (
            sum(SUMMARY in text_of(m.content) for m in session.messages() if isinstance(m, User))
            == 1
        )

    asyncio.run(scene())


@pytest.mark.req("C12", "C14", "dec36")
@pytest.mark.parametrize(
    "bad",
    [
        summary(""),
        summary("I can't help with that."),
        summary("Sure! The conversation was about trains."),
        summary(SUMMARY + LONG * 200),
        {"calls": [{"name": "f"}], "purpose": "compaction"},
        summary(finish="length"),
        summary(error="server"),
        summary(error="lost"),
    ],
    ids=["blank", "refusal", "no headings", "longer", "call", "cut", "server", "lost"],
)
def test_a_bad_summary_changes_nothing(bench: Bench, bad: dict[str, Any]) -> None:
    """A refused or failed summary leaves the view, says why, and its cost is counted."""

    async def scene() -> None:
        session = await long_session(bench, bad)
        before = session.messages()
        with pytest.raises(CompactError, match="nothing changed"):
            await session.compact()
        assert session.messages() == before
        assert session.context_info().checkpoint_id is None
        usage = session.frames.events()
        assert (usage["kind"] == "usage").sum() == 5

    asyncio.run(scene())


@pytest.mark.req("C14")
def test_a_dry_run_asks_nobody(bench: Bench) -> None:
    """The plan is told; no request goes out and nothing changes."""

    async def scene() -> None:
        session = await long_session(bench)
        asked = len(bench.provider.requests)
        plan = await session.compact(dry_run=True)
        assert (plan.checkpoint_id, plan.summarised_turns) == (None, 3)
        assert plan.tokens_after < plan.tokens_before
        assert len(bench.provider.requests) == asked
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("C8")
def test_a_short_conversation_has_nothing_to_compact(bench: Bench) -> None:
    """Where everything fits into what stays, that is said."""

    async def scene() -> None:
        session = await bench.session("a")
        await session.submit_turn("q")
        with pytest.raises(NothingToCompact, match='Nothing to compact in "default"'):
            await session.compact()

    asyncio.run(scene())


@pytest.mark.req("C7", "dec34")
def test_what_can_not_shrink_is_named(bench: Bench) -> None:
    """Fixed parts over the threshold: their tokens, and no request."""

    async def scene() -> None:
        session = await long_session(
            bench, system_instructions=("word " * 3000,), context_limit=4000
        )
        with pytest.raises(FixedContextExceedsBudget, match=r"system 3,\d\d\d"):
            await session.compact()

    asyncio.run(scene())


class Flaky(ScriptedProvider):
    """Its summaries come at the second try."""

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        if request.purpose == "compaction":
            yield Retrying(attempt=1, reason="busy", wait_s=0.5)
        async for event in super().chat(request):
            yield event


@pytest.mark.req("dec42", "P5")
def test_retries_of_a_summary_are_in_the_ledger(bench: Bench) -> None:
    """As those of a turn are: each with its reason, and counted in the usage."""

    async def scene() -> None:
        provider = Flaky([LONG, LONG, LONG, summary()])
        config = AgentConfig(default_model="scripted:test", compaction=KEEP_LITTLE["compaction"])
        agent = await AgentBuilder(config).register_model_provider(provider).build()
        session = await agent.new_session()
        for prompt in "123":
            await session.submit_turn(LONG + prompt)
        await session.compact()
        events = session.frames.events()
        assert events[events["kind"] == "retry"]["text"].tolist() == ["busy"]
        spent = msgspec.json.decode(events[events["kind"] == "usage"]["payload"].iloc[-1])
        assert (spent["purpose"], spent["attempt"]) == ("compaction", 2)
        await agent.shutdown()

    asyncio.run(scene())


@pytest.mark.req("C13", "C14")
def test_a_slot_is_busy_while_it_is_summarised(bench: Bench) -> None:
    """No turn starts in it meanwhile; other slots go on."""

    async def scene() -> None:
        session = await long_session(bench, summary(delay_s=0.3), "quick")
        await session.create_slot("other")
        compacting = asyncio.ensure_future(session.compact())
        await asyncio.sleep(0.1)
        with pytest.raises(TurnBusy, match="busy with a compaction"):
            await session.submit_turn("q")
        assert (await session.submit_turn("q", slot="other")).text == "quick"
        await compacting

    asyncio.run(scene())


@pytest.mark.req("C13", "C20.9")
def test_a_stale_candidate_loses(bench: Bench) -> None:
    """A commit compares the slot's generation: the loser changes nothing and says so."""

    async def scene() -> None:
        session = await long_session(bench)
        open_session = session._open_session
        slot = open_session.loaded.slot(None)
        await session.rewind(to_seq=session.turns()[-2].last_seq)
        stale = open_session.slot_changes.clear(slot)
        before = session.messages()
        with pytest.raises(CompactionStale):
            await background_loop().hop(lambda: open_session.commit(stale))
        assert session.messages() == before

    asyncio.run(scene())


@pytest.mark.req("C13", "dec11")
def test_a_cancelled_compaction_changes_nothing(bench: Bench) -> None:
    """Stopping in the middle of the summary leaves the view and frees the slot."""

    async def scene() -> None:
        session = await long_session(bench, summary(delay_s=30), "next")
        before = session.messages()
        compacting = asyncio.ensure_future(session.compact())
        await asyncio.sleep(0.1)
        compacting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await compacting
        assert session.messages() == before
        assert (await session.submit_turn("q")).text == "next"

    asyncio.run(scene())


@pytest.mark.req("dec18", "C3")
def test_a_child_starts_with_the_parents_checkpoint(bench: Bench) -> None:
    """The child sees summary and tail; what the parent compacts later doesn't touch it."""

    async def scene() -> None:
        session = await long_session(bench, summary(), f"{LONG} 5", summary(SUMMARY + "\n2nd"))
        await session.compact()
        await session.derive_slot("child", "default")
        assert session.messages("child") == session.messages()
        early = session.turns()[0].last_seq
        await session.derive_slot("early", "default", at_seq=early)
        assert len(session.messages("early")) == 2
        child = session.messages("child")
        await session.submit_turn(f"{LONG} more")
        await session.compact()
        assert session.messages("child") == child

    asyncio.run(scene())


@pytest.mark.req("dec25")
def test_rewinding_into_a_summary_takes_it_back(bench: Bench) -> None:
    """A rewind behind the boundary keeps the checkpoint; one before it drops it."""

    async def scene() -> None:
        session = await long_session(bench, summary(), "x")
        await session.compact()
        kept_to = session.turns()[-1].last_seq
        await session.submit_turn("one more")
        await session.rewind(to_seq=kept_to)
        assert SUMMARY in spoken(session.messages()[0])
        await session.rewind(to_seq=session.turns()[1].last_seq)
        assert len(session.messages()) == 4
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("dec25", "C13")
def test_undoing_a_rewind_brings_its_checkpoint_back(bench: Bench) -> None:
    """What was summarised before a rewind or clear is summarised again after its undo."""

    async def scene() -> None:
        session = await long_session(bench, summary())
        await session.compact()
        compacted = session.messages()
        gone = await session.rewind(to_seq=0)
        assert session.messages() == ()
        await session.rewind(to_seq=0, undoes=gone)
        assert session.messages() == compacted
        gone = await session.clear()
        await session.rewind(to_seq=0, undoes=gone)
        assert session.messages() == compacted

    asyncio.run(scene())


@pytest.mark.req("dec11", "dec50")
def test_closing_stops_a_compaction(bench: Bench) -> None:
    """A summary in flight ends with the session, in time and without a trace."""

    async def scene() -> None:
        session = await long_session(bench, summary(delay_s=30))
        compacting = asyncio.ensure_future(session.compact())
        await asyncio.sleep(0.1)
        await asyncio.wait_for(session.close(), 2)
        with pytest.raises(asyncio.CancelledError):
            await compacting

    asyncio.run(scene())
