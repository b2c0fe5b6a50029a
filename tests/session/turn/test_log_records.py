"""What goes into log records: ids and numbers, never a word of what was said."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.core.chat import ChatEvent, ChatRequest
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import AgentError, CompactError, NothingToCompact, ProviderError
from agent_magics.core.turns import Completed, Failed, Panicked
from agent_magics.providers.scripted import ScriptedProvider
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.tools.schema import tool

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SECRET = "xyzzy-sk-4711"  # stands for words and keys alike
LONG = f"{SECRET} They talked about the price of trains in May. " * 22
SUMMARY = "\n".join(f"## {heading}\n{SECRET}" for heading in SUMMARY_HEADINGS)
KEEP_LITTLE: dict[str, Any] = {"compaction": CompactionConfig(keep_recent_tokens=50)}
DONE = re.compile(
    r"compacted session=s slot=default checkpoint=c\w+ generation=1 reason=manual"
    r" before=([\d]+) after=([\d]+) first_retained_seq=(\d+) degraded=False"
)


def written(text: str = SUMMARY, **more: Any) -> dict[str, Any]:
    return {"text": text, "purpose": "compaction", **more}


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.startswith("agent_magics")]


def assert_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Fail where a record, its arguments or its traceback holds the secret."""
    formatter = logging.Formatter("%(message)s")
    for record in caplog.records:
        assert SECRET not in formatter.format(record), record.name
        assert SECRET not in repr(record.__dict__), record.name


async def long_session(bench: Bench, *steps: Any) -> Session:
    session = await bench.session(*[LONG] * 4, *steps, session_id="s", **KEEP_LITTLE)
    for n in range(4):
        await session.submit_turn(f"{LONG}{n}")
    return session


@pytest.mark.req("C19")
def test_a_compaction_is_one_record_of_numbers(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Session, slot, checkpoint, generation, reason, tokens, boundary, degraded."""

    async def scene() -> None:
        session = await long_session(bench, written())
        await session.memory.set("key", SECRET)
        outcome = await session.compact(instructions=f"keep {SECRET}")
        (record,) = ours(caplog)
        found = DONE.fullmatch(record.getMessage())
        assert found is not None
        assert [int(number) for number in found.groups()] == [
            outcome.tokens_before,
            outcome.tokens_after,
            outcome.first_retained_seq,
        ]
        assert record.levelno == logging.INFO

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    assert_silent(caplog)


@pytest.mark.req("C19", "C12")
@pytest.mark.parametrize(
    ("step", "error"),
    [
        (written(f"I can't: {SECRET}"), CompactError),
        (written(error="server", text=SECRET), CompactError),
        (written(error={"kind": "auth", "message": f"key {SECRET} is wrong"}), CompactError),
    ],
    ids=["refused", "broken off", "refused key"],
)
def test_a_failed_compaction_is_a_record_with_the_errors_class(
    bench: Bench, caplog: pytest.LogCaptureFixture, step: Any, error: type[AgentError]
) -> None:
    """Its sentence may quote a model or a server, so it isn't logged."""

    async def scene() -> None:
        session = await long_session(bench, step)
        with pytest.raises(error):
            await session.compact()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    (record,) = ours(caplog)
    assert record.getMessage() == (
        f"not compacted session=s slot=default generation=0 reason=manual error={error.__name__}"
    )
    assert record.levelno == logging.WARNING
    assert_silent(caplog)


@pytest.mark.req("C19", "C9")
def test_nothing_to_do_is_no_warning(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """It is told all the same, with its class."""

    async def scene() -> None:
        session = await bench.session("a")
        with pytest.raises(NothingToCompact):
            await session.compact()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    (record,) = ours(caplog)
    assert record.getMessage().endswith("reason=manual error=NothingToCompact")
    assert record.levelno == logging.INFO


@pytest.mark.req("C19", "C15")
def test_overflow_recovery_is_logged_as_degraded(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """The failed summary and what was done instead, one record each."""

    async def scene() -> None:
        refused = {"error": {"kind": "overflow", "message": SECRET}}
        session = await bench.session(*[LONG] * 3, refused, written(""), "fine")
        for n in range(3):
            await session.submit_turn(f"{LONG}{n}")
        outcome = await (await session.send_message(SECRET)).join()
        assert isinstance(outcome, Completed)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    failed, done = [record.getMessage() for record in ours(caplog)]
    assert "reason=overflow error=" in failed
    assert "reason=overflow" in done
    assert done.endswith("degraded=True")
    assert_silent(caplog)


class Breaking(ScriptedProvider):
    """A provider that breaks once, as foreign code does, with the prompt in its exception."""

    has_broken = False

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        if len(self.requests) == 2 and not self.has_broken:
            self.has_broken = True
            raise ValueError(SECRET)
        async for event in super().chat(request):
            yield event


@pytest.mark.req("C19", "E16")
def test_no_trouble_puts_words_into_a_record(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that raises, a model that breaks, a listener that does, a server's refusal."""

    @tool
    def look(what: str) -> str:
        """Look."""
        raise RuntimeError(what)

    def listener() -> None:
        raise RuntimeError(SECRET)

    async def scene() -> None:
        provider = Breaking(
            [
                {"text": SECRET, "calls": [{"name": "look", "arguments": {"what": SECRET}}]},
                SECRET,
                {"error": {"kind": "auth", "message": f"bad key {SECRET}"}},
            ]
        )
        config = AgentConfig(default_model="scripted:test", personality=SECRET)
        builder = AgentBuilder(config).register_model_provider(provider).register_tool(look)
        agent = await builder.build()
        session = await agent.new_session()
        session.subscribe(listener)
        outcomes = [await (await session.send_message(SECRET)).join() for _ in range(3)]
        await agent.shutdown()
        assert [type(outcome) for outcome in outcomes] == [Completed, Panicked, Failed]
        assert isinstance(outcomes[2], Failed)
        assert isinstance(outcomes[2].error, ProviderError)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    assert ours(caplog)
    assert_silent(caplog)
