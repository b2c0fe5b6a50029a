"""Windows, reserves and thresholds: their formulas in tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.context.budget import (
    PARTS,
    Limits,
    Share,
    limits_for,
    shares_for,
    shares_used,
    should_compact,
)
from agent_magics.core.config import AgentConfig, CompactionConfig
from agent_magics.core.errors import InputValidation
from agent_magics.core.slots import ContextBudget, SlotConfig


def config(**settings: Any) -> AgentConfig:
    compaction = CompactionConfig(
        **{k: settings.pop(k) for k in ("reserve_tokens", "keep_recent_tokens") if k in settings}
    )
    return AgentConfig(default_model="scripted:x", compaction=compaction, **settings)


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("window", "reserve", "threshold", "keep"),
    [
        pytest.param(128_000, 16_384, 111_616, 20_000, id="128k"),
        pytest.param(8_192, 4_096, 4_096, 2_048, id="8k scales both"),
        pytest.param(32_768, 16_384, 16_384, 8_192, id="just twice the reserve"),
        pytest.param(200_000, 16_384, 183_616, 20_000, id="200k"),
        pytest.param(3, 1, 2, 1, id="tiny and odd"),
        pytest.param(1, 0, 1, 0, id="the least there is"),
    ],
)
def test_reserve_and_keep_are_capped_for_small_windows(
    window: int, reserve: int, threshold: int, keep: int
) -> None:
    """min(reserve, window/2) and min(keep, threshold/2), by default and shown beside them."""
    limits = limits_for(window, config(), SlotConfig())
    assert limits == Limits(
        window=window,
        reserve=reserve,
        keep=keep,
        threshold=threshold,
        configured_reserve=16_384,
        configured_keep=20_000,
    )


@pytest.mark.req("dec29")
@pytest.mark.parametrize(
    ("settings", "budget", "reserve"),
    [
        pytest.param({}, None, 16_384, id="default"),
        pytest.param({"reserve_tokens": 5_000}, None, 5_000, id="configured"),
        pytest.param({"reserve_tokens": 0}, None, 0, id="none at all"),
        pytest.param({"compact_threshold": 0.8}, None, 20_000, id="by threshold"),
        pytest.param({}, ContextBudget(), 10_000, id="a slot's own, by its default"),
        pytest.param({"reserve_tokens": 5_000}, ContextBudget(reserve=7_000), 7_000, id="slot"),
        pytest.param({"compact_threshold": 0.8}, ContextBudget(reserve=7), 7, id="over threshold"),
        pytest.param(
            {"reserve_tokens": 5_000}, ContextBudget(reserve=None), 5_000, id="the session's"
        ),
        pytest.param({"reserve_tokens": 90_000}, None, 50_000, id="capped at half"),
        pytest.param({}, ContextBudget(reserve=90_000), 50_000, id="the slot's too"),
        pytest.param({"compact_threshold": 0.1}, None, 50_000, id="and the threshold's"),
    ],
)
def test_the_reserve_comes_from_the_nearest_setting(
    settings: dict[str, Any], budget: ContextBudget | None, reserve: int
) -> None:
    """The slot's explicit one, else the agent's, else 16,384; never over half the window."""
    limits = limits_for(100_000, config(**settings), SlotConfig(budget=budget))
    assert (limits.reserve, limits.threshold) == (reserve, 100_000 - reserve)


@pytest.mark.req("dec30", "P7", "C20.14")
@pytest.mark.parametrize(
    ("model", "agent", "slot", "learnt", "window"),
    [
        pytest.param(None, None, None, None, 128_000, id="unknown"),
        pytest.param(32_000, None, None, None, 32_000, id="the model's"),
        pytest.param(200_000, 50_000, None, None, 50_000, id="the agent's is smaller"),
        pytest.param(200_000, 50_000, 9_000, None, 9_000, id="the slot's is smallest"),
        pytest.param(32_000, 50_000, 90_000, None, 32_000, id="limits never widen"),
        pytest.param(None, 200_000, None, None, 128_000, id="not the unknown one either"),
        pytest.param(32_000, None, None, 4_096, 4_096, id="learnt from an overflow"),
        pytest.param(32_000, None, None, 64_000, 32_000, id="what is learnt only tightens"),
    ],
)
def test_the_window_is_the_least_of_all(
    model: int | None, agent: int | None, slot: int | None, learnt: int | None, window: int
) -> None:
    """Model or 128,000, the agent's limit, the slot's, one that was learnt: limits tighten."""
    limits = limits_for(model, config(context_limit=agent), SlotConfig(context_limit=slot), learnt)
    assert limits.window == window


@pytest.mark.req("dec29", "dec30")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: limits_for(0, config(), SlotConfig()), "the model's window is 0"),
        (lambda: limits_for(9, config(context_limit=-1), SlotConfig()), "context_limit is -1"),
        (lambda: limits_for(9, config(), SlotConfig(context_limit=0)), "slot's context_limit is 0"),
        (
            lambda: limits_for(9, config(reserve_tokens=1, compact_threshold=0.5), SlotConfig()),
            "Both compact_threshold",
        ),
        (
            lambda: limits_for(9, config(), SlotConfig(budget=ContextBudget(reserve=-1))),
            "budget.reserve is -1",
        ),
    ],
)
def test_what_cannot_be_is_named(call: Any, words: str) -> None:
    """A limit below one, a negative reserve, two settings for one thing."""
    with pytest.raises(InputValidation, match=words):
        call()


@pytest.mark.req("C4")
def test_the_threshold_itself_does_not_trigger() -> None:
    """Only what is over the threshold is too much."""
    limits = limits_for(128_000, config(), SlotConfig())
    assert not should_compact(111_616, limits)
    assert should_compact(111_617, limits)


@pytest.mark.req("C4")
@given(st.integers(1, 2_000_000), st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_fresh_tail_never_triggers_again(window: int, reserve: int, keep: int) -> None:
    """What is kept is at most half of the threshold, which is at least half of the window."""
    limits = limits_for(
        window, config(reserve_tokens=reserve, keep_recent_tokens=keep), SlotConfig()
    )
    assert limits.threshold == limits.window - limits.reserve
    assert limits.threshold * 2 >= limits.window
    assert limits.keep * 2 <= limits.threshold


@pytest.mark.req("S15", "dec29")
def test_a_slot_without_a_budget_shares_the_window_in_proportion() -> None:
    """The shares are the slot's own, else those of the window."""
    limits = limits_for(64_000, config(), SlotConfig())
    assert shares_for(SlotConfig(), limits).tool_results == 10_000
    assert shares_for(SlotConfig(budget=ContextBudget(tool_results=3)), limits).tool_results == 3


@pytest.mark.req("S15")
def test_a_budget_has_the_seeds_shares_and_any_window_is_shared_out_alike() -> None:
    """8k, 80k, 10k, 20k and 10k are 128k; `auto` keeps their proportions."""
    assert ContextBudget() == ContextBudget(
        system=8_000, history=80_000, tools=10_000, tool_results=20_000, reserve=10_000
    )
    assert ContextBudget.auto(128_000) == ContextBudget()
    assert ContextBudget.auto(8_000) == ContextBudget(
        system=500, history=5_000, tools=625, tool_results=1_250, reserve=625
    )
    with pytest.raises(InputValidation, match="context_window is 0"):
        ContextBudget.auto(0)


@pytest.mark.req("C16", "S15")
def test_every_part_is_counted_to_one_share() -> None:
    """What a request weighs is what its shares use together."""
    parts = {name: 10**at for at, name in enumerate(PARTS)}
    shares = shares_used(parts, ContextBudget(system=1, history=2, tools=3, tool_results=4))
    assert sum(share.used for share in shares) == sum(parts.values())
    assert [(share.name, share.tokens) for share in shares] == [
        ("system", 1),
        ("history", 2),
        ("tools", 3),
        ("tool_results", 4),
    ]
    assert shares[3] == Share(name="tool_results", used=parts["tool_results"], tokens=4)
