"""OpenAI's own client reads our corpus from a socket: the corpus is what servers may send."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import System, Text, User
from agent_magics.core.values import Value
from tests.providers.answers import KEY, Gathered, answer_of, at
from tests.providers.loopback import Exchange, serving

pytestmark = pytest.mark.req("P1", "inv14")
openai: Any = pytest.importorskip("openai", reason="needs the package openai, of the extra `test`")

CASES = [
    case
    for case in json.loads((Path(__file__).parents[2] / "data" / "streams.json").read_text("utf-8"))
    if case["api"] == "openai"
]
READ_BYTES = 7
# Quirks of servers that the client hands on as they come; we read what was meant.
WE_READ_MORE = {
    "think tags split over deltas",
    "lone surrogate from the model",
    "deltas without index: a new id opens a call, none continues",
    "same index zero for every parallel call",
    "arguments encoded twice",
}


class Theirs(Value):
    """What the client gave: `calls` by name with their arguments as text."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    input_tokens: int | None = None
    failed: bool = False


def replaying(case: dict[str, Any]) -> Callable[[Exchange], None]:
    """Answer with a body of the corpus, a few bytes at a time."""
    body = base64.b64decode(case["body_b64"])

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for start in range(0, len(body), READ_BYTES):
            piece = body[start : start + READ_BYTES]
            exchange.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            exchange.wfile.flush()
        exchange.wfile.write(b"0\r\n\r\n")

    return answer


def read_by_them(base_url: str) -> Theirs:
    text, calls, tokens = "", dict[int, list[str]](), None
    messages: Any = [{"role": "user", "content": "hello"}]
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
        try:
            for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
                tokens = chunk.usage.prompt_tokens if chunk.usage else tokens
                for delta in (choice.delta for choice in chunk.choices or () if choice.delta):
                    text += delta.content or ""
                    for piece in delta.tool_calls or ():
                        _add(calls.setdefault(piece.index, ["", ""]), piece.function)
        except openai.APIError:
            return Theirs(text=text, failed=True)
    return Theirs(
        text=text, calls=tuple((name, said) for name, said in calls.values()), input_tokens=tokens
    )


def _add(call: list[str], function: Any) -> None:
    if function is not None:
        said = function.arguments or ""
        call[0] += function.name or ""
        call[1] += said if isinstance(said, str) else json.dumps(said)


def agree(theirs: Theirs, ours: Gathered) -> bool:
    """Tell whether both read the same text, the same calls, the same count."""
    if theirs.failed:
        return ours.end == "error" and theirs.text == ours.text
    calls = tuple((name, _arguments(said)) for name, said in theirs.calls)
    usage = ours.done.usage if ours.done else None
    return (
        theirs.text == ours.text
        and calls == tuple((call.tool_name, call.arguments) for call in ours.calls)
        and (theirs.input_tokens or None) == (usage.input_tokens if usage else None)
    )


def _arguments(said: str) -> Any:
    try:
        return json.loads(said) if said else {}
    except ValueError:
        return None


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_official_client_reads_the_corpus_as_we_do(case: dict[str, Any]) -> None:
    """All but five quirks, of which it hands on what came and we what was meant."""
    with serving(replaying(case)) as server:
        theirs, ours = read_by_them(server.base_url), answer_of(at(server.base_url))
    assert ours.text == case["expect"]["text"]
    assert agree(theirs, ours) is (case["name"] not in WE_READ_MORE)


def test_we_send_what_the_official_client_sends() -> None:
    """The same body, and the key in the same header."""
    messages: Any = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
    ]
    with serving(Exchange.hello) as server:
        with openai.OpenAI(base_url=server.base_url, api_key=KEY, max_retries=0) as client:
            options = {"include_usage": True}
            made: Any = client.chat.completions
            list(made.create(model="m", messages=messages, stream=True, stream_options=options))
        request = ChatRequest(
            model="m", messages=(System(text="be kind"), User(content=(Text(text="hello"),)))
        )
        answer_of(at(server.base_url), request)
        theirs, ours = server.bodies
        assert ours == theirs
        their_headers, our_headers = server.seen
    for name in ("authorization", "content-type"):
        assert our_headers[name] == their_headers[name]
