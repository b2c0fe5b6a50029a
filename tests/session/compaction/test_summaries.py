"""Automatic summaries: when they are due, what they are made of, where they go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import AgentConfig, SummaryConfig
from agent_magics.core.errors import InputValidation, InvalidModelConfig
from agent_magics.core.events import Usage
from agent_magics.core.messages import User, text_of
from agent_magics.core.slots import Focused, Full, Readonly
from agent_magics.core.turns import (
    Cancelled,
    Completed,
    Failed,
    SummaryFailed,
    SummaryWritten,
    TurnOutcome,
)
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from tests.session.extracting import Reached

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SOON = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=1)


def summary(text: str = "They like trains.", **more: Any) -> dict[str, Any]:
    return {"text": text, "purpose": "summary", **more}


async def focused(bench: Bench, *steps: Any, config: SummaryConfig | None = SOON) -> Session:
    session = await bench.session(*steps, summary_config=config, session_id="s")
    await session.configure_slot("default", mode=Focused(recent_messages=2))
    return session


async def shown(session: Session, prompt: str) -> list[Any]:
    turn = await session.send_message(prompt)
    events = [event.payload async for event in turn]
    assert isinstance(await turn.join(), Completed)
    return events


def asked(bench: Bench) -> list[str]:
    """Give the prompts of the summary requests."""
    return [
        text_of(request.messages[-1].content)  # type: ignore[union-attr,arg-type]
        for request in bench.provider.requests
        if request.purpose == "summary"
    ]


@pytest.mark.req("Y1")
def test_summary_config_defaults() -> None:
    """Off unless set; the builder's method sets it."""
    config = SummaryConfig()
    assert (config.trigger_token_ratio, config.max_context_tokens) == (0.75, 32_000)
    assert (config.debounce_turns, config.max_tool_result_chars) == (3, 500)
    assert (config.summary_prompt, config.summary_model) == (None, None)
    assert AgentConfig(default_model="x:y").summary_config is None
    builder = AgentBuilder(AgentConfig(default_model="scripted:x"))
    builder.register_model_provider(ScriptedProvider([])).summary_config(config)
    assert asyncio.run(builder.build()).config.summary_config == config


@pytest.mark.req("Y1")
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (SummaryConfig(trigger_token_ratio=0), InputValidation),
        (SummaryConfig(debounce_turns=0), InputValidation),
        (SummaryConfig(max_context_tokens=0), InputValidation),
        (SummaryConfig(summary_model="nobody:x"), InvalidModelConfig),
    ],
    ids=["ratio", "debounce", "window", "model"],
)
def test_wrong_settings_are_refused_at_build(
    bench: Bench, wrong: SummaryConfig, error: type[Exception]
) -> None:
    """One sentence before anything runs."""
    with pytest.raises(error):
        asyncio.run(bench.agent(summary_config=wrong))


@pytest.mark.req("Y2")
def test_summary_not_generated_below_threshold(bench: Bench) -> None:
    """Under the mark no call is made."""

    async def scene() -> None:
        session = await focused(bench, "a", "b", config=SummaryConfig(debounce_turns=1))
        await shown(session, "q")
        await shown(session, "r")
        assert asked(bench) == []
        assert session.get_conversation_summary() is None

    asyncio.run(scene())


@pytest.mark.req("Y2", "Y3", "Y6", "dec39")
def test_summary_generated_above_threshold(bench: Bench) -> None:
    """One tool-less call of up to 1,024 tokens; its cost is counted, not in the turn's usage."""

    async def scene() -> None:
        usage = {"input_tokens": 7, "output_tokens": 3}
        session = await focused(bench, "a " * 30, summary(usage=usage))
        events = await shown(session, "do they like trains?")
        assert [e.slot_id for e in events if isinstance(e, SummaryWritten)] == ["default"]
        (request,) = [r for r in bench.provider.requests if r.purpose == "summary"]
        assert request.tools == ()
        assert request.params.max_tokens == 1_024
        assert "User: do they like trains?" in asked(bench)[0]
        spent = [
            e.payload for e in session._open_session.loaded.events if isinstance(e.payload, Usage)
        ]
        assert [(u.purpose, u.input_tokens) for u in spent] == [("turn", None), ("summary", 7)]
        assert session.frames.turns()["input_tokens"].isna().all()

    asyncio.run(scene())


@pytest.mark.req("Y2")
def test_summary_debounce_works(bench: Bench) -> None:
    """Between two summaries at least `debounce_turns` turns pass."""

    async def scene() -> None:
        config = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=3)
        steps = [*["a " * 30] * 6, summary("first."), summary("second.")]
        session = await focused(bench, *steps, config=config)
        counts = []
        for _ in range(6):
            await shown(session, "q")
            counts.append(len(asked(bench)))
        assert counts == [0, 0, 1, 1, 1, 2]
        assert "Summary of what came before: first." in asked(bench)[1]

    asyncio.run(scene())


@pytest.mark.req("Y3", "S10")
def test_summary_injected_into_focused(bench: Bench) -> None:
    """The next request has it after the kept messages, also in a new process."""

    async def scene() -> None:
        session = await focused(bench, "a " * 30, summary(), "fine")
        await shown(session, "q")
        texts = [text_of(m.content) for m in session.messages() if isinstance(m, User)]
        assert any("[Context summary] They like trains." in text for text in texts)
        await session.close()
        again = await bench.resumed("s")
        assert again.messages() == session.messages()

    asyncio.run(scene())


@pytest.mark.req("Y3", "dec39", "dec3")
def test_summary_written_to_session_memory(bench: Bench) -> None:
    """The newest of any slot, and each slot's own; never in the snapshot."""

    async def scene() -> None:
        session = await focused(bench, "a " * 30, summary("one."), "b " * 30, summary("two."))
        await shown(session, "q")
        await session.create_slot("other")
        turn = await session.send_message("r", slot="other")
        await turn.join()
        assert session.get_conversation_summary() == "two."
        assert session.get_conversation_summary("default") == "one."
        assert session.get_conversation_summary("other") == "two."
        assert "one." not in await session.memory.snapshot()

    asyncio.run(scene())


@pytest.mark.req("Y3")
@pytest.mark.parametrize("mode", [Full(), Readonly()], ids=["full", "readonly"])
def test_summary_not_injected_in_full_mode(bench: Bench, mode: Full | Readonly) -> None:
    """A full slot keeps its settings, its summary is in memory only; a read-only one has none."""

    async def scene() -> None:
        session = await bench.session("a " * 30, summary(), summary_config=SOON)
        await shown(session, "q")
        await session.configure_slot("default", mode=mode)
        assert session.slot_config("default").mode == mode
        assert session.get_conversation_summary() == "They like trains."
        assert len(session.messages()) == 2

    asyncio.run(scene())


@pytest.mark.req("Y4")
@pytest.mark.parametrize(
    "bad",
    [
        summary(error="server"),
        summary(""),
        summary("I can't help with that."),
        summary(error="lost"),
    ],
    ids=["server", "blank", "refusal", "lost"],
)
def test_summary_failure_does_not_block(bench: Bench, bad: dict[str, Any]) -> None:
    """The turn completes, the failure is told, and it is tried again after the debounce only."""

    async def scene() -> None:
        config = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=2)
        session = await focused(bench, *["a " * 30] * 4, bad, summary("late."), config=config)
        told = [[type(e).__name__ for e in await shown(session, "q")] for _ in range(4)]
        assert ["SummaryFailed" in names for names in told] == [False, True, False, False]
        assert ["SummaryWritten" in names for names in told] == [False, False, False, True]
        assert session.get_conversation_summary() == "late."

    asyncio.run(scene())


@pytest.mark.req("Y2", "dec39")
@pytest.mark.parametrize(
    ("step", "ending"),
    [({"error": "lost"}, Failed), ({"delay_s": 30}, Cancelled)],
    ids=["failed", "stopped"],
)
def test_a_turn_that_did_not_complete_is_not_summarised(
    bench: Bench, step: dict[str, Any], ending: type[TurnOutcome]
) -> None:
    """However long it is: the next one that completes is the occasion."""

    async def scene() -> None:
        first = Reached({"text": "a " * 30, **step})
        session = await focused(bench, first, "b " * 30, summary())
        turn = await session.send_message("why trains? " * 30)
        await first.wait()
        if ending is Cancelled:
            turn.cancel()
        assert isinstance(await turn.join(), ending)
        assert asked(bench) == []
        await shown(session, "and now?")
        assert len(asked(bench)) == 1

    asyncio.run(scene())


@pytest.mark.req("Y6", "S13")
def test_summary_stream_path(bench: Bench) -> None:
    """Streaming leaves the same summary as submitting."""

    async def scene() -> None:
        session = await focused(bench, "a " * 30, summary())
        async with session.submit_turn_stream("q") as turn:
            async for _ in turn:
                pass
            await session.finalize_turn(turn)
        assert session.get_conversation_summary() == "They like trains."

    asyncio.run(scene())


@pytest.mark.req("Y6")
def test_summary_skipped_for_empty_messages(bench: Bench) -> None:
    """An empty slot has nothing to summarise: no call."""

    async def scene() -> None:
        session = await focused(bench)
        summaries = session._open_session.compaction.summaries
        assert summaries is not None
        assert not summaries.is_due(session._open_session.loaded.slot(None))
        assert bench.provider.requests == []

    asyncio.run(scene())


@pytest.mark.req("Y2")
def test_summary_not_generated_if_max_context_unreachable(bench: Bench) -> None:
    """A mark beyond all that is said never triggers."""

    async def scene() -> None:
        config = SummaryConfig(max_context_tokens=10_000_000, debounce_turns=1)
        session = await focused(bench, *["a " * 500] * 3, config=config)
        for _ in range(3):
            await shown(session, "q")
        assert asked(bench) == []

    asyncio.run(scene())


@pytest.mark.req("Y2", "Y4", "dec11")
def test_a_stop_during_the_summary_keeps_the_turn(bench: Bench) -> None:
    """The answer was complete; only the summary is given up."""

    async def scene() -> None:
        session = await focused(bench, "a " * 30, summary(delay_s=30))
        turn = await session.send_message("q")
        await asyncio.sleep(0.3)
        turn.cancel()
        assert isinstance(await asyncio.wait_for(turn.join(), 5), Completed)
        assert session.get_conversation_summary() is None

    asyncio.run(scene())


@pytest.mark.req("Y4", "dec16", "dec57")
@pytest.mark.parametrize("bad", ["raises", "calls", "cut"])
def test_whatever_a_provider_does_fails_no_turn(bench: Bench, bad: str) -> None:
    """An exception, a tool call, half an answer: the turn is complete, and it is said."""

    def broken(_: Any) -> Any:
        raise ZeroDivisionError("a bug of theirs")

    steps: dict[str, Any] = {
        "raises": broken,
        "calls": summary("ok then", calls=[{"name": "x"}]),
        "cut": summary("They like", finish="length"),
    }

    async def scene() -> None:
        session = await focused(bench, "Trains are nice, and so are ships.", steps[bad])
        events = await shown(session, "What do you like, and why do you like it so much?")
        assert sum(isinstance(event, SummaryFailed) for event in events) == 1
        assert session.get_conversation_summary() is None

    asyncio.run(scene())
