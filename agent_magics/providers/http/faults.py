"""What is wrong, judged from a server's error by kinds of shapes and not by vendor.

The order of judgement: an explicit code, words that veto, the status, the wording, the numbers.
"""

from __future__ import annotations

import re
from typing import Literal

from agent_magics.core.values import Value
from agent_magics.providers.http.error_body import ErrorBody, read_error_body
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.http.token_limits import read_token_limits

FaultKind = Literal[
    "input_overflow",
    "output_reservation",
    "body_size",
    "quota",
    "malformed_history",
    "auth",
    "other",
]

FIRST_ERROR = 400
_PAYMENT_REQUIRED = 402
_FIRST_SERVER_ERROR = 500
_RESEND_STATUS = frozenset({408, 409, 429})

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
    }
)
_QUOTA_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "too_many_requests",
        "resource_exhausted",
    }
)
_SPENT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_AUTH_CODES = frozenset(
    {
        "invalid_api_key",
        "authentication_error",
        "permission_error",
        "unauthenticated",
        "permission_denied",
        "no_db_connection",  # LiteLLM without a database, of a key that it doesn't know
    }
)
_PASSING_CODES = frozenset(
    {"server_error", "overloaded_error", "internal_server_error", "api_error"}
)

_VETO = re.compile(
    r"quota|throttl|per[ _-]?min|rate[ _-]?limit|too many requests|please wait|\((?:TPM|RPM|TPD)\)",
    re.IGNORECASE,
)
_MALFORMED = re.compile(
    r"`?tool_use`? ids? were found without|unexpected `?tool_use_id|"
    r"'?tool_calls'? must be followed by|role '?tool'? must be a response|"
    r"no tool (?:call|output) found for|tool_call_id\b.{0,40}(?:not found|did not have)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    # context length / window / size, and that it is passed
    r"context[ _-]*(?:length|window|size|limit).{0,160}?"
    r"(?:exceed|too (?:long|large|many)|however|reduce|n_ctx|larger)"
    r"|(?:exceed|too (?:long|large)|greater than|longer than|over).{0,80}?"
    r"context[ _-]*(?:length|window|size|limit)"
    # a prompt or its tokens, and that they are too many
    r"|\b(?:prompt|input|messages?)\b[^:.]{0,20}?\btoo (?:long|large)"
    r"|\btokens?\b.{0,100}?(?:exceeds?\b|must be <=|greater than)"
    r"|\btoo many (?:input )?tokens\b"
    r"|n_keep \(\d+\) >= n_ctx"
    r"|maximum (?:prompt|model) length (?:is|of) \d"
    r"|\binput length \(\d+ tokens\) exceeds"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|max_tokens must be at least 1, got -",
    re.IGNORECASE | re.DOTALL,
)
_OUTPUT_TOO_LONG = re.compile(
    r"max_(?:completion_|output_|new_)?tokens.{0,80}?(?:too large|maximum allowed|at most)"
    r"|at most \d+ (?:completion|output) tokens",
    re.IGNORECASE | re.DOTALL,
)

_BY_CODE: tuple[tuple[frozenset[str], FaultKind], ...] = (
    (_QUOTA_CODES, "quota"),
    (frozenset({"request_too_large"}), "body_size"),
    (_AUTH_CODES, "auth"),
)
_BY_STATUS: dict[int, FaultKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    413: "body_size",
    429: "quota",
}


class Fault(Value):
    """What a server's error means; `window` and `used` in tokens, None where untrustworthy.

    `message` is the server's own words, whole and on one line. `may_pass`: the same request may
    succeed later.
    """

    kind: FaultKind
    message: str
    window: int | None = None
    used: int | None = None
    status: int | None = None
    may_pass: bool = False


def read_fault(status: int, body: bytes | str | JSONObject | list[object]) -> Fault:
    """Judge an error response, or an error object that came in a stream (status 200)."""
    said = read_error_body(body)
    # In a stream the status was 200 long before the error; its code may be one.
    if status < FIRST_ERROR:
        status = _status_in(said) or status
    kind = _kind(status, said)
    limits = read_token_limits(said) if kind == "input_overflow" else None
    if limits is not None and limits.fits:
        kind = "output_reservation"
    return Fault(
        kind=kind,
        message=said.words,
        window=limits.window if limits else None,
        used=limits.used if limits else None,
        status=status,
        may_pass=_may_pass(kind, status, said),
    )


def _kind(status: int, said: ErrorBody) -> FaultKind:
    if said.has_code(_OVERFLOW_CODES):
        return "input_overflow"
    for codes, kind in _BY_CODE:
        if said.has_code(codes):
            return kind
    if _MALFORMED.search(said.text):
        return "malformed_history"
    # Before the wording: rate limits speak of tokens, too.
    if _VETO.search(said.text):
        return "quota"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return _kind_by_wording(said)


def _kind_by_wording(said: ErrorBody) -> FaultKind:
    if _TOO_LONG.search(said.text) or "n_ctx" in said.numbers:
        return "input_overflow"
    return "output_reservation" if _OUTPUT_TOO_LONG.search(said.text) else "other"


def _may_pass(kind: FaultKind, status: int, said: ErrorBody) -> bool:
    if kind not in {"quota", "other"} or said.has_code(_SPENT_CODES):
        return False
    if kind == "quota" and "request too large" in said.text.lower():
        return False  # larger than the limit itself: waiting doesn't make it smaller
    return (
        status in _RESEND_STATUS
        or status >= _FIRST_SERVER_ERROR
        or (kind == "quota" and status != _PAYMENT_REQUIRED)
        or said.has_code(_PASSING_CODES)
    )


def _status_in(said: ErrorBody) -> int | None:
    for code in said.codes:
        if re.fullmatch(r"[45]\d\d", code, re.ASCII):
            return int(code)
    return None
