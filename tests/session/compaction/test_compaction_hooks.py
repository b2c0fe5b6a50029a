"""Plugins are asked before a slot is compacted; what their no ends depends on who wanted it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.errors import CompactError, PluginAborted
from agent_magics.core.hooks import Abort, BeforeCompact, HookPayload
from agent_magics.core.turns import Completed, ContextCompacted, Failed, TurnWarning
from agent_magics.session.extensions.plugins import PluginBase
from tests.session.compaction.test_fitting import LONG, SMALL, filled
from tests.session.filling import summary
from tests.session.telling import overflow, told

if TYPE_CHECKING:
    from tests.session.conftest import Bench


class Keeper(PluginBase):
    """Lets nothing be compacted while it keeps."""

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        self.asked: list[HookPayload] = []

    def before_compact(self, payload: HookPayload) -> Abort | None:
        self.asked.append(payload)
        return Abort(reason="an audit runs") if self.keeps else None


@pytest.mark.req("E13", "C14")
def test_an_automatic_compaction_that_is_refused_is_left_out(bench: Bench) -> None:
    """The turn goes on with its whole history and a warning; no summary is asked for."""
    keeper = Keeper()

    async def scene() -> None:
        session = await filled(bench, "fine", plugins=(keeper,))
        events, outcome = await told(session, LONG)
        assert isinstance(outcome, Completed)
        assert outcome.reply.text == "fine"
        (warning,) = [event.text for event in events if isinstance(event, TurnWarning)]
        assert "not compacted" in warning
        assert "before_compact: keeper: an audit runs" in warning
        assert not any(isinstance(event, ContextCompacted) for event in events)
        assert bench.provider.requests[-1].purpose == "turn"
        (asked,) = keeper.asked
        assert (asked.slot_id, asked.turn_id) == ("default", outcome.reply.turn_id)
        assert asked.turn_index == 4
        assert isinstance(asked.data, BeforeCompact)
        assert asked.data.message_count == 7
        assert asked.data.estimated_tokens > 2_000

    asyncio.run(scene())


@pytest.mark.req("E13", "C14")
def test_a_refused_compaction_raises_to_who_asked_for_it(bench: Bench) -> None:
    """Nothing changes; a plan asks nobody; later it goes through."""
    keeper = Keeper()

    async def scene() -> None:
        session = await filled(bench, summary(), plugins=(keeper,))
        before = session.context_info()
        with pytest.raises(PluginAborted, match="an audit runs"):
            await session.compact()
        assert session.context_info() == before
        assert (keeper.asked[0].slot_id, keeper.asked[0].turn_id) == ("default", None)
        await session.compact(dry_run=True)
        assert len(keeper.asked) == 1
        keeper.keeps = False
        done = await session.compact()
        assert done.tokens_after < before.used

    asyncio.run(scene())


@pytest.mark.req("E13", "C15", "E19", "E20.27")
def test_an_overflow_that_may_not_be_compacted_ends_the_turn(bench: Bench) -> None:
    """It isn't skipped, because it must be: `CompactError`, and no second request."""
    keeper = Keeper()

    async def scene() -> None:
        session = await bench.session(
            LONG, LONG, overflow(window=900), "never", plugins=(keeper,), context_limit=8_000
        )
        for _ in range(2):
            await session.submit_turn(LONG)
        sent = len(bench.provider.requests)
        _, outcome = await told(session, "q")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, CompactError)
        assert "keeper: an audit runs" in outcome.error.message
        assert len(bench.provider.requests) == sent + 1
        assert session.context_info().checkpoint_id is None

    asyncio.run(scene())


@pytest.mark.req("E13", "C15")
def test_older_turns_are_not_left_out_against_a_plugin(bench: Bench) -> None:
    """Over the hard window before anything is sent, its no ends the turn as well."""
    keeper = Keeper()

    async def scene() -> None:
        session = await filled(bench, "never", turns=7, plugins=(keeper,), **_unlimited())
        await session.configure_slot("default", context_limit=2_000)
        sent = len(bench.provider.requests)
        _, outcome = await told(session, "q")
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, CompactError)
        assert len(keeper.asked) == 1
        assert len(bench.provider.requests) == sent

    asyncio.run(scene())


@pytest.mark.req("E13", "C15")
def test_one_recovery_asks_once(bench: Bench) -> None:
    """A plugin that let the summary be tried is not asked again when older turns are left out."""
    keeper = Keeper(keeps=False)

    async def scene() -> None:
        session = await bench.session(
            LONG,
            LONG,
            overflow(window=900),
            summary("no"),
            "fine",
            plugins=(keeper,),
            context_limit=8_000,
        )
        for _ in range(2):
            await session.submit_turn(LONG)
        events, outcome = await told(session, "q")
        assert isinstance(outcome, Completed), outcome
        assert [e.degraded for e in events if isinstance(e, ContextCompacted)] == [True]
        assert len(keeper.asked) == 1

    asyncio.run(scene())


def _unlimited() -> dict[str, Any]:
    """Give settings under which seven long turns are far from any limit."""
    return {**SMALL, "context_limit": 60_000}
