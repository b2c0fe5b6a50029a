"""How much fits, when to compact, and what a request is made of, in tokens.

Why: docs/decisions.md#29.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from agent_magics.core.chat import UNKNOWN_WINDOW
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import InputValidation
from agent_magics.core.slots import ContextBudget, SlotConfig
from agent_magics.core.values import Value

DEFAULT_RESERVE_TOKENS = 16_384
PARTS = (
    "system",
    "tools",
    "skills",
    "memories",
    "dynamic",
    "summary",
    "history",
    "tool_results",
    "user_input",
    "media",
)
PARTS_OF_SHARES = {
    "system": ("system", "skills", "memories", "dynamic"),
    "history": ("summary", "history", "user_input", "media"),
    "tools": ("tools",),
    "tool_results": ("tool_results",),
}


MODELS_WINDOW = "the model's window"
CONTEXT_LIMIT = "context_limit"


class Limits(Value):
    """What holds for one slot and model, in tokens. `reserve` and `keep` are what acts: the
    configured ones, capped for small windows. `held_by` is whose window it is.
    """

    window: int
    reserve: int
    keep: int
    threshold: int
    configured_reserve: int
    configured_keep: int
    held_by: str = MODELS_WINDOW

    @property
    def larger(self) -> str:
        """What to do for a larger window, as the end of a sentence."""
        if self.held_by.endswith(CONTEXT_LIMIT):
            return f"raise {self.held_by}, which is {self.window:,}"
        return "use a model with a larger window"


class Share(Value):
    """One share of a slot's budget and what the next request uses of it, in tokens."""

    name: str
    used: int
    tokens: int


class ContextInfo(Value):
    """What `%context` shows of a slot's next request, the numbers that the trigger uses.

    `parts` has every key of `PARTS` and sums to `used` where `source` is "estimated".
    `factor` is what this model's servers taught us to multiply estimates by (parts have it in);
    `estimate` is the sum without it. `last_measured` is the server's count of the last request.
    `shares` are those of the slot's budget: only the one of tool results acts.
    `checkpoint_id`, `tokens_before`, `tokens_after`, `degraded`, `reason`, `compacted_at`: of the
    active checkpoint, None where there is none; `turns_behind` are those it stands for, and where
    `is_turn_cut` also the beginning of the next.
    """

    slot_id: str
    model: str
    limits: Limits
    parts: dict[str, int]
    used: int
    remaining: int
    source: Literal["estimated", "measured"]
    checkpoint_id: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    degraded: bool | None = None
    factor: float = 1.0
    estimate: int = 0
    clipped_results: int = 0
    last_measured: int | None = None
    reason: Literal["manual", "auto", "overflow"] | None = None
    compacted_at: datetime | None = None
    turns_behind: int = 0
    is_turn_cut: bool = False
    shares: tuple[Share, ...] = ()


def limits_for(
    model_window: int | None,
    config: AgentConfig,
    slot: SlotConfig,
    learnt_window: int | None = None,
) -> Limits:
    """Work out the limits of a slot for a model.

    Limits only tighten (docs/decisions.md#30): the window is the least of the model's (128,000
    where nobody knows it), the agent's, the slot's and one learnt from an overflow. Raises
    `InputValidation` for a limit below 1, or where both `compact_threshold` and `reserve_tokens`
    are set.
    """
    limits = {
        MODELS_WINDOW: UNKNOWN_WINDOW if model_window is None else model_window,
        CONTEXT_LIMIT: config.context_limit,
        f"the slot's {CONTEXT_LIMIT}": slot.context_limit,
        "the learnt window": learnt_window,
    }
    known = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in known.items():
        if limit < 1:
            raise InputValidation(f"{name} is {limit}; give a positive number of tokens.")
    held_by = min(known, key=known.__getitem__)
    window = known[held_by]
    configured_reserve = _configured_reserve(window, config, slot)
    configured_keep = config.compaction.keep_recent_tokens
    reserve = min(configured_reserve, window // 2)
    threshold = window - reserve
    return Limits(
        window=window,
        reserve=reserve,
        keep=min(configured_keep, threshold // 2),
        threshold=threshold,
        configured_reserve=configured_reserve,
        configured_keep=configured_keep,
        held_by=held_by,
    )


def should_compact(used: int, limits: Limits) -> bool:
    """Return whether `used` tokens are over the threshold; exactly on it is not over."""
    return used > limits.threshold


def shares_for(slot: SlotConfig, limits: Limits) -> ContextBudget:
    """Return a slot's shares of the window: its own, else those that fit the window.

    Only the share of tool results acts; the others are shown.
    """
    return slot.budget or ContextBudget.auto(limits.window)


def shares_used(parts: Mapping[str, int], budget: ContextBudget) -> tuple[Share, ...]:
    """Return what the parts of a request use of each share; every part counts to one."""
    return tuple(
        Share(name=name, used=sum(parts.get(part, 0) for part in within), tokens=tokens)
        for (name, within), tokens in zip(
            PARTS_OF_SHARES.items(),
            (budget.system, budget.history, budget.tools, budget.tool_results),
            strict=True,
        )
    )


def _configured_reserve(window: int, config: AgentConfig, slot: SlotConfig) -> int:
    reserve = config.compaction.reserve_tokens
    threshold = config.compact_threshold
    if reserve is not None and threshold is not None:
        raise InputValidation(
            "Both compact_threshold and compaction.reserve_tokens are set; keep one."
        )
    if slot.budget is not None and slot.budget.reserve is not None:
        if slot.budget.reserve < 0:
            raise InputValidation(f"budget.reserve is {slot.budget.reserve}; give 0 or more.")
        return slot.budget.reserve
    if reserve is not None:
        return reserve
    if threshold is not None:
        return round(window * (1 - threshold))
    return DEFAULT_RESERVE_TOKENS
