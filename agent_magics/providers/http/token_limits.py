"""The numbers in which servers say that a request is too long."""

from __future__ import annotations

import re

from agent_magics.core.values import Value
from agent_magics.providers.http.error_body import ErrorBody
from agent_magics.providers.http.json_values import is_token_count

SMALLEST_TRUSTED_WINDOW = 1_000

_N = r"(\d[\d,_]{0,18})"
_WINDOW = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"n_ctx:? ?\(?{_N}",
        rf"maximum (?:context|prompt|model) length ?(?:is|of)?:? ?{_N}",
        rf"maximum allowed length \({_N} tokens",
        rf"{_N} maximum context length",
        rf"context (?:window|length|size|limit) (?:of|is)(?: only)? {_N}",
        rf"context (?:size|window|length) \({_N} tokens",
        rf"(?:configured )?limit of {_N}",
        rf"tokens allowed \({_N}\)",
        rf"must be <= ?{_N}",
        rf"\d > {_N}",
        rf"tokens > {_N}",
    )
)
_USED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"n_keep:? ?\(?{_N}",
        rf"to keep the first {_N} tokens",
        rf"\({_N} of text input(?:, [\d,]{{1,19}} in the output)?\)",
        rf"request (?:has|contains) {_N} (?:input )?tokens",
        rf"{_N} tokens from the input messages",
        rf"(?:input|input length) \({_N} tokens\)",
        rf"prompt \(length {_N}\)",
        rf"\({_N} in (?:the|your) (?:messages|prompt)",
        rf"messages resulted in {_N} tokens",
        rf"limit: {_N} \+",
        rf"prompt is too long: {_N}",
        rf"token count (?:of |\(){_N}",
        rf"prompt contains {_N} (?:input )?tokens",
        rf"requested tokens \({_N}\)",
        rf"request \({_N} tokens",
        rf"given: {_N} `?inputs`?",
    )
)
_LEAST = re.compile(rf"contains at least {_N} input tokens", re.IGNORECASE)
_OUTPUT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_N} (?:tokens )?(?:in|for) the (?:completion|output)",
        rf"max_(?:completion_)?tokens'? is too large: {_N}",
        rf"requested {_N} output tokens",
        rf"limit: [\d,_]+ \+ {_N} >",
        rf"{_N} `?max_new_tokens",
    )
)


class TokenLimits(Value):
    """What an error says of a request's length, in tokens; None where it can't be trusted.

    `fits`: the prompt alone fits into the window, and only its answer's reservation doesn't.
    """

    window: int | None
    used: int | None
    fits: bool


def read_token_limits(body: ErrorBody) -> TokenLimits:
    """Read the numbers of an error that says that something is too long."""
    text = body.text
    window = body.numbers.get("n_ctx") or _first(_WINDOW, text)
    used = body.numbers.get("n_prompt_tokens") or _first(_USED, text)
    # A smaller one is another number of the sentence; a wrong window would ruin all that follows.
    window = window if window and window >= SMALLEST_TRUSTED_WINDOW else None
    prompt = used if used is not None else _first((_LEAST,), text)
    has_output = _first(_OUTPUT, text) is not None
    is_shorter = window is not None and prompt is not None and prompt < window
    return TokenLimits(window=window, used=used, fits=has_output and is_shorter)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            number = int(re.sub(r"\D", "", found.group(1)))
            return number if is_token_count(number) else None
    return None
