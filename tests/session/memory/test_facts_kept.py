"""What a chain of compactions can lose: only what its summaries leave out, or what is recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent_magics.context.budget import Limits
from agent_magics.context.clipping import clip_results
from agent_magics.context.compaction import (
    CompactionPlan,
    judge_summary,
    plan_compaction,
    summary_request,
)
from agent_magics.context.projection import project
from agent_magics.context.prompt import SUMMARY_HEADINGS, render_summary
from agent_magics.context.source import head_and_tail, item_of
from agent_magics.context.tokens import count_message
from agent_magics.context.view import SlotHistory, turns_of
from agent_magics.core.chat import ChatRequest
from agent_magics.core.config import CompactionConfig
from agent_magics.core.events import Metadata
from agent_magics.core.messages import ToolResult, User, text_of
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Checkpoint, Full
from agent_magics.ledger.sqlite.store import SqlStore
from benchmarks.facts import Summariser, facts_in, words_of
from benchmarks.keeping import fates_of, replay
from benchmarks.recorded import (
    CONVERSATIONS,
    Conversation,
    Script,
    read_conversations,
    script_of,
)

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SUMMARY = "\n".join(f"## {heading}\nnone" for heading in SUMMARY_HEADINGS)
WORDS = "many words about tea and ports "
WIDE = 10_000_000


def markers(state: SessionState) -> list[dict[str, Any]]:
    """Give what the ledger says of each compaction."""
    return [
        event.payload.value
        for event in state.events
        if isinstance(event.payload, Metadata) and event.payload.key == "context_compaction"
    ]


async def stored(bench: Bench, session_id: str) -> SessionState:
    store = SqlStore(bench.path)
    try:
        state = await store.load(session_id)
    finally:
        await store.aclose()
    assert state is not None
    return state


def asked(request: ChatRequest) -> str:
    """Give the words of a compaction's request."""
    last = request.messages[-1]
    assert isinstance(last, User)
    return text_of(last.content)


@pytest.mark.req("C10")
def test_what_the_summariser_was_not_given_is_recorded(bench: Bench) -> None:
    """The ledger has how many messages the source had, left out and cut, as the model was told."""
    step = {"text": SUMMARY, "purpose": "compaction"}
    how: dict[str, Any] = {
        "context_limit": 6_000,
        "compaction": CompactionConfig(enabled=False, keep_recent_tokens=100),
    }

    async def scene() -> None:
        session = await bench.session(*["yes"] * 6, step, session_id="s", **how)
        for number in range(5):
            await session.submit_turn(f"{number}: {WORDS * 180}")
        await session.submit_turn("and now?")
        await session.compact()
        (marker,) = markers(await stored(bench, "s"))
        source = marker["source"]
        assert source["messages"] == 10
        assert source["omitted"] > 0
        assert source["shortened"] == 1
        assert source["is_previous_shortened"] is False
        (request,) = [r for r in bench.provider.requests if r.purpose == "compaction"]
        told = asked(request)
        assert f"has 10 messages; the oldest {source['omitted']} don't fit" in told
        assert told.count("User: ") + told.count("Assistant: ") == 10 - source["omitted"]

    asyncio.run(scene())


@pytest.mark.req("C14", "C15", "dec36")
def test_a_failed_summary_rests_no_longer_than_the_context_is_as_large(bench: Bench) -> None:
    """A failure over the window is no reason to leave all later turns out without a summary."""
    failed = {"error": "server", "purpose": "compaction"}
    written = {"text": SUMMARY, "purpose": "compaction"}

    async def scene() -> None:
        steps = [*["yes"] * 10, failed, written]
        session = await bench.session(*steps, session_id="s", context_limit=6_000)
        for number in range(3):  # the third is over the window: a summary fails, turns are left out
            await session.submit_turn(f"{number}: {WORDS * 350}")
        for number in range(5):
            await session.submit_turn(f"{number}: {WORDS * 100}")
        degraded = [marker["degraded"] for marker in markers(await stored(bench, "s"))]
        assert degraded == [True, False]

    asyncio.run(scene())


@pytest.mark.req("C10", "C16")
def test_a_cut_makes_no_fact_up() -> None:
    """Wherever the middle of a text is cut out, no identifier or number is left in half."""
    lines = (
        f"HAT{n:03} on 2024-05-20T10:{n % 60:02}:00 for 1,{n:03}.50, credit_card_{4_421_486 + n}"
        for n in range(100)
    )
    text = "\n".join(lines)
    for tokens in range(48, 300, 7):
        assert set(facts_in(head_and_tail(text, tokens))) <= set(facts_in(text))
        (result,) = clip_results(
            [ToolResult(call_id="c", tool_name="f", content=text)], tokens
        ).messages
        assert isinstance(result, ToolResult)
        assert result.content != text
        assert set(facts_in(result.content)) <= set(facts_in(text))


LIMITS = Limits(
    window=WIDE, reserve=0, keep=1, threshold=WIDE, configured_reserve=0, configured_keep=1
)


@pytest.fixture(scope="module")
def recording(root: Path) -> list[Conversation]:
    """Ten recorded conversations, which every checkout has."""
    return read_conversations(root / "tests" / "data" / "conversations.jsonl.gz")


@pytest.mark.req("C3", "C9", "C10")
def test_a_chain_without_limits_keeps_every_fact(recording: list[Conversation]) -> None:
    """Where source and summary have room, all that users and tools said is carried through."""
    check_chain_without_limits(recording, every=3)


@pytest.mark.slow
@pytest.mark.req("C3", "C9", "C10")
def test_a_long_chain_without_limits_keeps_every_fact(shared: Path) -> None:
    """The same of 150 conversations, over a hundred compactions."""
    recording = read_conversations(shared / "data" / CONVERSATIONS.name)
    check_chain_without_limits(recording, every=8)


def check_chain_without_limits(conversations: list[Conversation], *, every: int) -> None:
    events = asyncio.run(replay(script_of(conversations), window=32_000)).spoken
    view = SlotHistory(slot_uid=events[0].slot_uid or "", events=tuple(events))
    ends = [span.last_seq for span in turns_of(view)][every - 1 :: every]
    checkpoint: Checkpoint | None = None
    whole: set[str] = set()
    for end in ends:
        seen = msgspec.structs.replace(view, events=tuple(e for e in events if e.seq <= end))
        plan = plan_compaction(
            seen, slot_id="default", mode=Full(), checkpoint=checkpoint, limits=LIMITS
        )
        request = summary_request(plan, model="m", window=WIDE)
        text = Summariser(is_unlimited=True)(request)["text"]
        assert judge_summary(text, plan=plan, output_limit=WIDE) is None
        cut = [item_of(message)[1] for message in plan.source]
        assert (request.source.omitted, request.source.shortened) == (0, sum(cut))
        for message, is_cut in zip(plan.source, cut, strict=True):
            whole |= set() if is_cut else set(facts_in(words_of(message)))
        checkpoint = checkpoint_of(plan, text)
    messages = project(view, mode=Full(), checkpoint=checkpoint).messages
    assert len(whole) > 300
    assert whole <= set(facts_in("\n".join(map(words_of, messages))))


def checkpoint_of(plan: CompactionPlan, summary: str) -> Checkpoint:
    return Checkpoint(
        checkpoint_id="c",
        slot_uid="default",
        generation=1,
        parent_checkpoint_id=None,
        summary=summary,
        rendered=render_summary(summary),
        first_retained_seq=plan.first_retained_seq,
        source_max_seq=plan.source_max_seq,
        reason="manual",
        provider="scripted",
        model="m",
        tokens_before=1,
        tokens_after=0,
        degraded=False,
        created_at=datetime(2030, 1, 1, tzinfo=UTC),
    )


@pytest.mark.req("C9", "C10", "C12")
def test_a_session_that_is_compacted_again_and_again_keeps_every_fact(
    recording: list[Conversation],
) -> None:
    """The same through the engine and its store, as long as a summary has room for the facts."""
    chain = asyncio.run(
        replay(
            script_of(recording),
            window=128_000,
            compaction=CompactionConfig(enabled=False, keep_recent_tokens=1),
            compact_every=3,
        )
    )
    assert len(list(chain.compactions())) > 15
    fates = Counter(fates_of(chain).values())
    assert fates.total() > 300
    assert set(fates) <= {"in the summary", "in the tail", "cut in the source"}
    assert fates["cut in the source"] < 10


@pytest.mark.req("C9", "C10", "C15", "C16")
def test_no_fact_is_lost_without_a_record(recording: list[Conversation]) -> None:
    """In a small window much is left out; each loss is where the ledger says that something was."""
    chain = asyncio.run(replay(script_of(recording), window=6_000))
    sources = [source for _, source in chain.compactions() if source is not None]
    assert any(source.omitted for source in sources)
    assert any(source.shortened for source in sources)
    assert "lost without a record" not in set(fates_of(chain).values())


@pytest.mark.req("C10", "dec30")
def test_a_summary_is_asked_for_within_the_limits_of_its_model(
    recording: list[Conversation],
) -> None:
    """A model that tells a large window, in a session with a small one: no request is over it."""
    chain = asyncio.run(replay(script_of(recording), window=128_000, context_limit=8_000))
    assert len(chain.summariser.summaries) > 3
    for summary in chain.summariser.summaries:
        asked = summary.request
        assert asked.params.max_tokens is not None
        assert sum(map(count_message, asked.messages)) + asked.params.max_tokens <= 8_000


@pytest.mark.req("C10", "C12", "C15")
def test_in_overflow_a_summary_is_asked_for_that_can_be_taken() -> None:
    """Where a summary of full length would leave no room, a shorter one is better than none."""
    prompts = [cards(4_400_000), cards(5_500_000), cards(6_600_000)]
    script = Script(prompts=prompts, steps=[{"text": "yes"}] * 3)
    chain = asyncio.run(replay(script, window=6_000))
    (source,) = [source for _, source in chain.compactions()]
    assert source is not None
    (summary,) = chain.summariser.summaries
    assert summary.request.params.max_tokens is not None
    assert summary.request.params.max_tokens < 1_500
    assert f"at most {summary.request.params.max_tokens // 2:,} words" in asked(summary.request)
    assert Counter(fates_of(chain).values())["in the summary"] > 50


def cards(first: int) -> str:
    return " ".join(f"credit_card_{first + n}" for n in range(350))
