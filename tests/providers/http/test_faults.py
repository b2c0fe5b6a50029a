"""The error corpus, vetoes included, and the sentences that users see."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.errors import ContextOverflow
from agent_magics.core.redact import redact
from agent_magics.providers.http.faults import read_fault
from agent_magics.providers.http.response_errors import error_of

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = [  # the corpus, and what servers were reported to say since it was made
    case
    for name in ("errors.json", "later_errors.json")
    for case in json.loads((DATA / name).read_text("utf-8"))
]
pytestmark = pytest.mark.req("P6")


@pytest.mark.req("inv15")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_corpus_is_judged_right(case: dict[str, Any]) -> None:
    """Kind, window and used are what the server meant, parsed or as bytes."""
    for body in (case["body"], json.dumps(case["body"]).encode()):
        fault = read_fault(case["status"], body)
        assert (fault.kind, fault.window, fault.used) == (
            case["kind"],
            case["window"],
            case["used"],
        )


def test_overflow_is_an_error_of_its_own() -> None:
    """The engine compacts on the type and reads the numbers off it."""
    fault = read_fault(
        400, {"error": {"message": "prompt is too long: 2300 tokens > 2000 maximum"}}
    )
    error = error_of(fault, provider="x")
    assert isinstance(error, ContextOverflow)
    assert (error.window, error.used, error.retryable) == (2000, 2300, False)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("max_tokens is too large: 100000. This model supports at most 4096 completion tokens",
         "output_reservation"),
        ("Invalid 'messages[0].content': string too long", "other"),
        ("The file is too large", "other"),
        ('model "x" not found, try pulling it first', "other"),
        ("tool_call_id is not found in the previous messages", "malformed_history"),
        ("You exceeded your current quota, please check your plan", "quota"),
    ],
)  # fmt: skip
def test_words_near_overflow_are_told_apart(message: str, kind: str) -> None:
    """What only sounds like a long prompt never starts a compaction."""
    assert read_fault(400, {"error": {"message": message}}).kind == kind


@pytest.mark.req("inv15")
@pytest.mark.parametrize(
    "message",
    [
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: a",
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "No tool call found for function call output with call_id call_1.",
        "tool_call_id is not found in the previous messages",
        "tool_call_id 'call_7' not found",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_malformed_history_is_our_fault_and_never_compacted(status: int, message: str) -> None:
    """Though it may speak of messages and lengths; it isn't sent again."""
    fault = read_fault(status, {"error": {"message": message, "type": "invalid_request_error"}})
    assert (fault.kind, fault.may_pass) == ("malformed_history", False)
    assert "please report it" in error_of(fault, provider="x").message


@pytest.mark.req("inv15")
@pytest.mark.parametrize("code", ["context_length_exceeded", 400, "400", None, "unknown_error", ""])
@pytest.mark.parametrize("shape", ["dict", "string", "list", "flat", "nested"])
def test_a_shape_hides_no_overflow(code: Any, shape: str) -> None:
    """The same words in every shape that an error has (providers.md § Error bodies)."""
    words = "This model's maximum context length is 8192 tokens, however your messages are longer."
    inner: dict[str, Any] = {"message": words, "code": code, "type": "invalid_request_error"}
    body: Any = {
        "dict": {"error": inner},
        "string": {"error": words},
        "list": [{"error": inner}],
        "flat": {"object": "error", **inner},
        "nested": {"error": {"message": f"proxy: upstream said b'{json.dumps({'error': inner})}'"}},
    }[shape]
    for sent in (body, json.dumps(body).encode()):
        fault = read_fault(400, sent)
        assert (fault.kind, fault.window) == ("input_overflow", 8192)


@pytest.mark.parametrize(
    ("status", "body", "may_pass"),
    [
        (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, True),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, False),
        (402, {"error": {"message": "no money"}}, False),
        (503, "upstream connect error", True),
        (408, "", True),
        (409, {}, True),
        (400, {"error": "bad"}, False),
        (401, {"error": "bad"}, False),
        (200, {"error": {"code": 502, "message": "upstream died"}}, True),
        (200, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, True),
    ],
)
@pytest.mark.req("P5")
def test_only_what_may_pass_is_worth_another_try(status: int, body: Any, *, may_pass: bool) -> None:
    """Statuses and codes decide, in the answer or in the stream."""
    assert read_fault(status, body).may_pass is may_pass


def test_refused_key_is_named_by_its_end() -> None:
    """The sentence of the design: which variable, which key, what to do."""
    fault = read_fault(401, {"error": {"message": "Incorrect API key provided: sk-a***x3F."}})
    error = error_of(fault, provider="openai", key="sk-live-12345x3F", key_name="OPENAI_API_KEY")
    assert error.message == (
        "openai refused the key (401). The key in OPENAI_API_KEY ends in …x3F;"
        " check it, or choose another model with %agent model."
    )


def test_missing_key_says_which_to_set() -> None:
    """A 401 without a key asks for one."""
    error = error_of(read_fault(401, ""), provider="openai", key_name="OPENAI_API_KEY")
    assert "set OPENAI_API_KEY" in error.message


def test_web_page_is_called_one() -> None:
    """HTML from a proxy shows its title and no markup."""
    page = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>…</body></html>"
    error = error_of(read_fault(502, page), provider="openai")
    assert '"502 Bad Gateway"' in error.message
    assert "<" not in error.message


@pytest.mark.req("dec66")
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect key: sk-proj-abcdefgh12345", "abcdefgh"),
        ("header Authorization: Bearer abc.def.ghi", "abc.def"),
        ("GET http://h/v1?key=verysecret&x=1", "verysecret"),
        ("http://me:hunter2@host/v1", "hunter2"),
        ("the key my-own-key-42 is wrong", "my-own-key"),
    ],
)
def test_keys_leave_the_text(text: str, secret: str) -> None:
    """Given secrets go, and so does what looks like one."""
    assert secret not in redact(text, ["my-own-key-42", None, ""])


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", "null", "[]", {"error": None}, {"error": {"message": 7}}, [[[[]]]]]
)
def test_senseless_bodies_are_other(body: Any) -> None:
    """Nothing that a server sends breaks the reader."""
    assert read_fault(400, body).kind == "other"


def test_deep_and_long_bodies_stay_bounded() -> None:
    """A message is cut, nesting is followed only so far."""
    body: Any = "x" * 100_000
    for _ in range(50):
        body = {"error": body}
    for sent in (body, {"message": "y" * 100_000}):
        assert len(error_of(read_fault(400, sent), provider="x").message) < 1_000


@pytest.mark.req("dec66")
@pytest.mark.parametrize("before", range(540, 605, 8))
def test_a_key_at_the_cut_is_not_shown_in_part(before: int) -> None:
    """A long message is cut after its keys were taken out: half a key is not recognised."""
    key = "deadbeef" * 8
    fault = read_fault(400, {"message": f"{'x' * before} {key} is wrong"})
    assert "deadb" not in error_of(fault, provider="x", key=key).message


@pytest.mark.req("P6")
@pytest.mark.parametrize(
    "body", ["over", "exceed", "<title>", "tokens ", "1", "a.", "context ", "prompt ", "n_ctx "]
)
def test_a_body_can_not_keep_the_reader_busy(body: str) -> None:
    """What a server repeats is read in a time that grows with its length only."""
    begun = time.process_time()
    for sent in (body * (200_000 // len(body)), {"message": body * (200_000 // len(body))}):
        error_of(read_fault(400, sent), provider="x")
    assert time.process_time() - begun < 2


@pytest.mark.req("P6")
@pytest.mark.parametrize("number", ["²", "9" * 5_000, "-4", True, -4, 10**40])
def test_a_number_that_counts_nothing_is_unknown(number: Any) -> None:
    """Digits of other scripts, too many of them, sentinels: no window is learnt, nothing breaks."""
    said = f"maximum context length is {number} tokens"
    error = {"code": str(number), "message": said, "type": "exceed_context_size_error"}
    fault = read_fault(200, {"error": {**error, "n_ctx": number, "n_prompt_tokens": number}})
    assert (fault.kind, fault.window, fault.used) == ("input_overflow", None, None)


@pytest.mark.req("P6")
def test_a_body_with_a_byte_order_mark_is_read() -> None:
    """The mark is no part of the JSON."""
    body = b'\xef\xbb\xbf{"error":{"message":"gone"}}'
    assert read_fault(400, body).message == "gone"
