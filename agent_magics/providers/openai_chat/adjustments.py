"""What to leave out of a request, or write otherwise, so that a server that refused it takes it.

A refusal is a 4xx whose words name a part of the request that we did send. Each is learnt once per
model (`stream_options` per server) and remembered as long as the provider lives.
"""

from __future__ import annotations

import re
from typing import Literal

from agent_magics.core.errors import ProviderError
from agent_magics.providers.http.json_values import JSONObject

Adjustment = Literal[
    "no_stream_options",
    "max_completion_tokens",
    "max_tokens",
    "no_temperature",
    "no_reasoning_effort",
    "no_system_role",
    "reasoning_everywhere",
    "no_reasoning",
    "no_tool_choice",
    "no_parallel_tools",
    "assistant_after_tool",
]

_REFUSED = (
    r"(?:not (?:support|permit|allow|recogni[sz]e|accept)|n't (?:support|permit|allow|accept)"
    r"|unsupported|unrecogni[sz]ed|unknown|unexpected|extra|forbidden|invalid|only the default"
    r"|deprecated|must be (?:removed|omitted|unset)|incompatible)"
)


def _named(field: str) -> re.Pattern[str]:
    """Match words that refuse a field by its name, the name before or behind."""
    return re.compile(
        rf"\b(?:{field})\b.{{0,120}}{_REFUSED}|{_REFUSED}.{{0,120}}\b(?:{field})\b",
        re.IGNORECASE | re.DOTALL,
    )


_WORDINGS: tuple[tuple[Adjustment, re.Pattern[str]], ...] = (
    ("no_stream_options", re.compile(r"stream_options|include_usage", re.IGNORECASE)),
    (
        "max_completion_tokens",
        re.compile(r"use .{0,5}max_completion_tokens", re.IGNORECASE),
    ),
    ("max_tokens", _named("max_completion_tokens")),
    ("no_temperature", _named("temperature")),
    ("no_reasoning_effort", _named("reasoning_effort")),
    ("no_reasoning_effort", _named("thinking|reasoning value")),
    (
        "reasoning_everywhere",
        re.compile(
            r"(?:reasoning_content|reasoning|thinking).{0,80}must be (?:passed back|provided)"
            r"|missing .{0,5}reasoning_content",
            re.IGNORECASE,
        ),
    ),
    ("no_reasoning", _named("reasoning_content|reasoning_details|reasoning")),
    ("no_tool_choice", _named("tool_choice")),
    ("no_parallel_tools", _named("parallel_tool_calls")),
    (
        "assistant_after_tool",
        re.compile(r"unexpected role .?user.? after role .?tool", re.IGNORECASE),
    ),
    (
        "no_system_role",
        re.compile(
            r"(?:system|developer)(?:.? role| messages?| instructions?).{0,20} not"
            r"|(?:not|un)\W*support\w*.{0,20}(?:system|developer) (?:role|message)",
            re.IGNORECASE,
        ),
    ),
)
_REFUSING_STATUS = frozenset({400, 404, 422, 500, 501})


def adjustment_for(
    error: ProviderError, made: frozenset[Adjustment], body: JSONObject
) -> Adjustment | None:
    """Return what would make a server take the request `body`, which it refused; None for nothing.

    Only what the body has is looked for: a server's words may name fields that weren't sent.
    """
    if error.kind != "other" or error.status not in _REFUSING_STATUS:
        return None
    parts = _parts(body)
    for adjustment, wording in _WORDINGS:
        is_new = adjustment not in made and not parts.isdisjoint(_CHANGES[adjustment])
        if is_new and wording.search(error.message):
            return adjustment
    return None


# What a adjustment changes: a field of the request or of a message, or a message's role.
_CHANGES: dict[Adjustment, frozenset[str]] = {
    "no_stream_options": frozenset({"stream_options"}),
    "max_completion_tokens": frozenset({"max_tokens"}),
    "max_tokens": frozenset({"max_completion_tokens"}),
    "no_temperature": frozenset({"temperature"}),
    "no_reasoning_effort": frozenset({"reasoning_effort"}),
    "no_system_role": frozenset({"role system", "role developer"}),
    "reasoning_everywhere": frozenset({"role assistant"}),
    "no_reasoning": frozenset({"reasoning", "reasoning_content", "reasoning_details"}),
    "no_tool_choice": frozenset({"tool_choice"}),
    "no_parallel_tools": frozenset({"parallel_tool_calls"}),
    "assistant_after_tool": frozenset({"role tool"}),
}


def _parts(body: JSONObject) -> set[str]:
    messages = body["messages"]
    roles = {f"role {message['role']}" for message in messages}
    return {*body, *roles, *(name for message in messages for name in message)}
