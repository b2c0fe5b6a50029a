"""Tell from a server's error what is wrong, by kinds of shapes and not by vendor.

Order of judgement (providers.md § Too long): explicit code, veto words, status, wording, numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from agent_magics.core.errors import ContextOverflow, ProviderError
from agent_magics.core.messages import Value
from agent_magics.core.redact import key_end, redact
from agent_magics.providers.openai_chat.model_info import is_count

FaultKind = Literal[
    "input_overflow",
    "output_reservation",
    "body_size",
    "quota",
    "malformed_history",
    "auth",
    "other",
]

MAX_MESSAGE_CHARACTERS = 600
MAX_JUDGED_CHARACTERS = 20_000  # patterns look no further: a body may be made to keep them busy
SMALLEST_TRUSTED_WINDOW = 1_000
_MAX_DEPTH = 6
_RESEND_STATUS = frozenset({408, 409, 429})
_FIRST_ERROR = 400
_PAYMENT_REQUIRED = 402
_FIRST_SERVER_ERROR = 500


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


class Facts(Value):
    """What an error body says, wherever in it it is said."""

    codes: tuple[str, ...]
    messages: tuple[str, ...]
    numbers: dict[str, int]

    @property
    def text(self) -> str:
        return "\n".join(self.messages)[:MAX_JUDGED_CHARACTERS]


_MESSAGE_KEYS = ("message", "error", "detail", "msg", "error_message", "errors")
_CODE_KEYS = ("code", "type", "status", "error_type")
_NUMBER_KEYS = ("n_ctx", "n_prompt_tokens")

_OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
}
_QUOTA_CODES = {
    "rate_limit_exceeded",
    "rate_limit_error",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "too_many_requests",
    "resource_exhausted",
}
_SPENT_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
_AUTH_CODES = {
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "unauthenticated",
    "permission_denied",
    "no_db_connection",  # LiteLLM without a database, of a key that it doesn't know
}
_PASSING_CODES = {"server_error", "overloaded_error", "internal_server_error", "api_error"}

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


def read_fault(status: int, body: bytes | str | dict[str, Any] | list[Any]) -> Fault:
    """Judge an error answer, or an error object that came in a stream (status 200)."""
    parsed = _parsed(body)
    facts = _facts(parsed)
    if status < _FIRST_ERROR:
        status = _status_in(facts) or status
    kind, window, used = _judged(status, facts)
    return Fault(
        kind=kind,
        message=_words(parsed, facts),
        window=window,
        used=used,
        status=status,
        may_pass=_may_pass(kind, status, facts),
    )


def error_of(
    fault: Fault, *, provider: str, key: str | None = None, key_name: str | None = None
) -> ProviderError:
    """Make the error to raise: one sentence, the server's words in it, keys redacted."""
    words = _cut(redact(fault.message, [key]))
    said = f": {words}" if words else "."
    number = f" ({fault.status})" if (fault.status or 0) >= _FIRST_ERROR else ""
    match fault.kind:
        case "input_overflow":
            error = ContextOverflow(
                f"The request is longer than {provider}'s model allows{number}{said}",
                window=fault.window,
                used=fault.used,
            )
            error.status = fault.status
            return error
        case "auth":
            text = _auth_sentence(provider, number, words, key, key_name)
        case "quota":
            text = f"{provider} has no room for this request now{number}{said}"
        case "body_size":
            text = f"The request has too many bytes for {provider}{number}{said}"
        case "output_reservation":
            text = f"max_tokens is too large for what is left of {provider}'s window{number}{said}"
        case "malformed_history":
            text = (
                f"{provider} refused the shape of the conversation{number}{said}"
                " This is a fault of agent-magics; please report it."
            )
        case "other":
            text = f"{provider} failed{number}{said}"
    return ProviderError(
        text,
        retryable=fault.may_pass,
        status=fault.status,
        kind=fault.kind,
        window=fault.window,
        used=fault.used,
    )


def _auth_sentence(
    provider: str, number: str, words: str, key: str | None, key_name: str | None
) -> str:
    if not key:
        where = f"set {key_name}" if key_name else "give it one"
        return (
            f"{provider} wants a key{number}: {where}, or choose another model with %agent model."
        )
    named = f"The key in {key_name}" if key_name else "The key"
    said = "" if number == " (401)" or not words else f": {words.rstrip('.')}"
    return (
        f"{provider} refused the key{number}{said}. {named} ends in {key_end(key)};"
        " check it, or choose another model with %agent model."
    )


def _judged(status: int, facts: Facts) -> tuple[FaultKind, int | None, int | None]:
    codes, text = set(facts.codes), facts.text
    if codes & _OVERFLOW_CODES:
        return _measured(facts)
    for wanted, kind in _BY_CODE:
        if codes & wanted:
            return kind, None, None
    if _MALFORMED.search(text):
        return "malformed_history", None, None
    if _VETO.search(text):
        return "quota", None, None
    return _by_status_and_wording(status, facts)


def _by_status_and_wording(status: int, facts: Facts) -> tuple[FaultKind, int | None, int | None]:
    if status in _BY_STATUS:
        return _BY_STATUS[status], None, None
    if _TOO_LONG.search(facts.text) or "n_ctx" in facts.numbers:
        return _measured(facts)
    if _OUTPUT_TOO_LONG.search(facts.text):
        return "output_reservation", None, None
    return "other", None, None


_BY_CODE: tuple[tuple[set[str], FaultKind], ...] = (
    (_QUOTA_CODES, "quota"),
    ({"request_too_large"}, "body_size"),
    (_AUTH_CODES, "auth"),
)
_BY_STATUS: dict[int, FaultKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    413: "body_size",
    429: "quota",
}


def _measured(facts: Facts) -> tuple[FaultKind, int | None, int | None]:
    """Decide by the numbers whether the prompt is too long, or only prompt plus max_tokens."""
    text = facts.text
    window = facts.numbers.get("n_ctx") or _first(_WINDOW, text)
    used = facts.numbers.get("n_prompt_tokens") or _first(_USED, text)
    window = window if window and window >= SMALLEST_TRUSTED_WINDOW else None
    prompt = used if used is not None else _first((_LEAST,), text)
    has_output = _first(_OUTPUT, text) is not None
    fits = window is not None and prompt is not None and prompt < window
    return ("output_reservation" if has_output and fits else "input_overflow"), window, used


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        found = pattern.search(text)
        if found:
            number = int(re.sub(r"\D", "", found.group(1)))
            return number if is_count(number) else None
    return None


def _may_pass(kind: FaultKind, status: int, facts: Facts) -> bool:
    codes = set(facts.codes)
    if kind not in {"quota", "other"} or codes & _SPENT_CODES:
        return False
    if kind == "quota" and "request too large" in facts.text.lower():
        return False  # larger than the limit itself: waiting doesn't make it smaller
    return (
        status in _RESEND_STATUS
        or status >= _FIRST_SERVER_ERROR
        or (kind == "quota" and status != _PAYMENT_REQUIRED)
        or bool(codes & _PASSING_CODES)
    )


def _status_in(facts: Facts) -> int | None:
    for code in facts.codes:
        if re.fullmatch(r"[45]\d\d", code, re.ASCII):
            return int(code)
    return None


# Reading the body


def _parsed(body: bytes | str | dict[str, Any] | list[Any]) -> Any:
    if isinstance(body, (dict, list)):
        return body
    text = body.decode("utf-8-sig", "replace") if isinstance(body, bytes) else body
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _facts(parsed: Any) -> Facts:
    codes: list[str] = []
    messages: list[str] = []
    numbers: dict[str, int] = {}
    for key, value in _said(parsed, "message", 0):
        if key in _NUMBER_KEYS:
            if is_count(value):
                numbers.setdefault(key, value)
        elif key in _CODE_KEYS:
            codes.append(str(value).lower())
        elif isinstance(value, str):
            messages.append(value)
    return Facts(codes=tuple(codes), messages=tuple(messages), numbers=numbers)


def _said(value: Any, key: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Walk an error body, and the JSON that hides in its strings."""
    if depth > _MAX_DEPTH:
        return
    match value:
        case {"loc": list(where), "msg": str(said)}:  # what pydantic says of a field
            yield "message", f"{'.'.join(map(str, where))}: {said}"
        case dict():
            yield from _said_by(value, depth)
        case list():
            for inner in value:
                yield from _said(inner, key, depth + 1)
        case str():
            yield key, value
            inside = _json_inside(value)
            if inside is not None:
                yield from _said(inside, key, depth + 1)
        case _:
            return


def _said_by(fields: dict[Any, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for name, inner in fields.items():
        if isinstance(inner, (dict, list)) or name in _MESSAGE_KEYS:
            yield from _said(inner, str(name), depth + 1)
        elif name in _CODE_KEYS + _NUMBER_KEYS and inner is not None:
            yield str(name), inner


def _json_inside(text: str) -> Any:
    start = text.find("{")
    if start < 0:
        return None
    for candidate in (text[start:], text[start:].replace("\\'", "'").replace('\\\\"', '\\"')):
        try:
            return json.JSONDecoder().raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _words(parsed: Any, facts: Facts) -> str:
    """Give the server's own words in one line."""
    if isinstance(parsed, str):
        text = _page_title(parsed) if "<" in parsed[:200] else parsed
    else:
        text = facts.messages[0] if facts.messages else json.dumps(parsed)
    return " ".join(text.split())


def _cut(text: str) -> str:
    """Cut what is long; only after keys were taken out, for half a key isn't recognised."""
    is_long = len(text) > MAX_MESSAGE_CHARACTERS
    return text[:MAX_MESSAGE_CHARACTERS] + "…" if is_long else text


def _page_title(page: str) -> str:
    head = page[:MAX_JUDGED_CHARACTERS]
    found = re.search(r"<title[^>]{0,99}>(.{0,300}?)</title>", head, re.IGNORECASE | re.DOTALL)
    title = f' titled "{" ".join(found.group(1).split())}"' if found else ""
    return f"it answered with a web page{title}; a proxy may stand between, check the base URL"
