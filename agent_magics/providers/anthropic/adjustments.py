"""What some of Anthropic's models refuse of a request, and how it is written for them instead."""

from __future__ import annotations

import re
from typing import Literal

from agent_magics.core.errors import ProviderError

Adjustment = Literal["no_temperature", "thinking_by_budget", "no_thinking"]

_REFUSING_STATUS = frozenset({400, 422})
_REFUSALS: tuple[tuple[Adjustment, re.Pattern[str]], ...] = (
    ("no_temperature", re.compile(r"\btemperature\b", re.IGNORECASE)),
    (
        "thinking_by_budget",
        re.compile(r"adaptive|output_config|effort|thinking\.[^ ]*display", re.IGNORECASE),
    ),
    ("no_thinking", re.compile(r"thinking|budget_tokens", re.IGNORECASE)),
)
_MOST_OUTPUT = re.compile(r"max_tokens: \d+ > (\d{2,9})\b")


def adjustment_for(error: ProviderError, made: frozenset[Adjustment]) -> Adjustment | None:
    """Return what to leave out or say otherwise, so that a model that refused may answer."""
    if error.kind != "other" or error.status not in _REFUSING_STATUS:
        return None
    for adjustment, wording in _REFUSALS:
        if adjustment not in made and wording.search(error.message):
            return adjustment
    return None


def most_output(error: ProviderError) -> int | None:
    """Parse the largest `max_tokens` that a model allows out of its refusal."""
    found = _MOST_OUTPUT.search(error.message) if error.status in _REFUSING_STATUS else None
    return int(found.group(1)) if found else None
