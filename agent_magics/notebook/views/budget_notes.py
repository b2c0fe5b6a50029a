"""What the budget says of itself in words: where its numbers are from, what was compacted."""

from __future__ import annotations

from datetime import datetime

from agent_magics.context.budget import ContextInfo, Limits
from agent_magics.core.money import Spent, percent, tokens_short

LEAST_SHOWN_FACTOR = 1.005
SPENT = "spent in this slot: "
NOTHING_SPENT = Spent()


def budget_notes(
    info: ContextInfo, spent: Spent = NOTHING_SPENT, *, is_exact: bool
) -> tuple[str, ...]:
    """Write the lines under a budget; without `is_exact` they hold no time and no price."""
    notes = [_source(info), _limits(info.limits), _shares(info), _room(info), _clipped(info)]
    notes += [_compaction(info, is_exact=is_exact), _spent(spent, is_exact=is_exact)]
    return tuple(filter(None, notes))


def _source(info: ContextInfo) -> str:
    if info.source == "measured":
        return "measured: the model's server counted this very request"
    said = "estimated"
    if info.factor >= LEAST_SHOWN_FACTOR:
        said += f" (× {info.factor:.2f}, learnt from this model)"  # noqa: RUF001 - it is meant
    if info.last_measured is not None:
        said += f" · the last request was measured: {info.last_measured:,}"
    return said


def _limits(limits: Limits) -> str:
    """Say what a compaction leaves free and as it is, and what was set where that is more."""
    reserve = _capped(limits.reserve, limits.configured_reserve)
    keep = _capped(limits.keep, limits.configured_keep)
    return f"reserve: {reserve} · newest turns kept as they are: {keep}"


def _shares(info: ContextInfo) -> str:
    """Say what is used of each share; tool results alone are shortened to theirs."""
    used = " · ".join(
        f"{share.name.replace('_', ' ')} {share.used:,} of {share.tokens:,}"
        for share in info.shares
    )
    return f"shares: {used}" if used else ""


def _capped(acts: int, configured: int) -> str:
    return f"{acts:,}" if acts == configured else f"{acts:,} (set: {configured:,})"


def _room(info: ContextInfo) -> str:
    over = info.used - info.limits.threshold
    if over <= 0:
        return ""
    return f"past the threshold by {over:,}: %compact summarises older turns now"


def _clipped(info: ContextInfo) -> str:
    count = info.clipped_results
    if not count:
        return ""
    results = "1 old tool result is" if count == 1 else f"{count:,} old tool results are"
    return f"{results} shortened in the request; the log has all of it"


def _compaction(info: ContextInfo, *, is_exact: bool) -> str:
    if info.checkpoint_id is None:
        return ""
    facts = [info.reason or "", _time(info.compacted_at) if is_exact else ""]
    how = ", ".join(filter(None, facts))
    turns = f"{info.turns_behind:,} turn{'' if info.turns_behind == 1 else 's'}"
    if info.is_turn_cut:
        start = "the beginning of"
        turns = f"{turns} and {start} the next" if info.turns_behind else f"{start} a long turn"
    behind = f"{turns} left out without a summary" if info.degraded else f"{turns} behind it"
    return (
        f"last compaction{f' ({how})' if how else ''}:"
        f" {info.tokens_before or 0:,} → {info.tokens_after or 0:,} tokens, {behind}"
        " · undo: %compact --undo"
    )


def _spent(spent: Spent, *, is_exact: bool) -> str:
    if not spent.requests:
        return ""
    lost = f"{spent.uncounted:,} request{'' if spent.uncounted == 1 else 's'} not counted"
    if spent.uncounted == spent.requests and not spent.tokens:
        return f"{SPENT}not known, {lost}"
    cached = f" ({percent(spent.cached_share)} cached)" if spent.cached_tokens else ""
    parts = [
        f"{tokens_short(spent.input_tokens)} in{cached}",
        f"{tokens_short(spent.output_tokens)} out",
        spent.price if is_exact and spent.priced else "",
        lost if spent.uncounted else "",
    ]
    return f"{SPENT}{', '.join(filter(None, parts))}"


def _time(at: datetime | None) -> str:
    """Return the time here, with the day where it is another one."""
    if at is None:
        return ""
    here = at.astimezone()
    is_today = here.date() == datetime.now().astimezone().date()
    return f"{here:%H:%M}" if is_today else f"{here:%Y-%m-%d %H:%M}"
