"""The Anthropic adapter over real sockets: the corpus as its own client reads it, bad servers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.ports import Provider
from agent_magics.providers.anthropic import Anthropic
from tests.providers.answers import (
    ANTHROPIC_KEY,
    QUICK,
    SHORT,
    answer_of,
)
from tests.providers.loopback import Exchange, serving

pytestmark = pytest.mark.req("P2")
DATA = Path(__file__).resolve().parents[2] / "data"
CASES = [
    case
    for case in json.loads((DATA / "streams.json").read_text("utf-8"))
    if case["api"] == "anthropic"
]


def corpus(case: dict[str, Any], *, width: int = 7) -> Callable[[Exchange], None]:
    """Answer with the body of a case, in reads of a few bytes."""
    body = base64.b64decode(case["body_b64"]).decode()

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for start in range(0, len(body), width):
            exchange.raw(body[start : start + width])
        exchange.wfile.write(b"0\r\n\r\n")

    return answer


def loopback(base_url: str) -> Provider:
    return Anthropic(base_url=base_url, api_key=ANTHROPIC_KEY, retry=QUICK, timeouts=SHORT)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_official_client_reads_the_corpus_as_we_do(case: dict[str, Any]) -> None:
    """The same bytes over a real socket: the package `anthropic` and our adapter agree."""
    official = pytest.importorskip("anthropic")
    expect = case["expect"]
    with serving(corpus(case)) as server:
        ours = answer_of(loopback(server.base_url))
        client = official.Anthropic(
            base_url=server.base_url.removesuffix("/v1"), api_key=ANTHROPIC_KEY, max_retries=0
        )
        with client:
            try:
                with client.messages.stream(
                    model="m", max_tokens=64, messages=[{"role": "user", "content": "hello"}]
                ) as stream:
                    theirs = stream.get_final_message()
            except official.APIError:
                assert expect["end"] == "error"
                theirs = None
    assert ours.text == expect["text"]
    if theirs is not None:
        texts = [block.text for block in theirs.content if block.type == "text"]
        thoughts = [block for block in theirs.content if block.type == "thinking"]
        calls = [(b.name, b.input) for b in theirs.content if b.type == "tool_use"]
        assert "".join(texts) == ours.text
        assert [block.thinking for block in thoughts] == [ours.reasoning] * bool(thoughts)
        assert calls == [(call.tool_name, call.arguments) for call in ours.calls]
        assert ours.done
        if thoughts:
            assert ours.done.reasoning
            assert thoughts[0].signature == ours.done.reasoning.blocks[0]["signature"]


@pytest.mark.req("P5")
@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (lambda e: e.whole(200, "<html><title>Gate</title></html>", "text/html"), "web page"),
        (lambda e: e.whole(200, ""), "answered with nothing"),
        (lambda e: e.whole(307, "", location="http://thief.test/v1"), "sends us on"),
        (lambda e: (e.begin(), e.raw("event: ping\n"), e.drop()), "broke"),
    ],
    ids=["page", "empty", "redirect", "reset"],
)
def test_servers_that_misbehave_are_named(behaviour: Callable[[Exchange], None], said: str) -> None:
    """The same troubles as of any server over HTTP, in the same words."""
    with serving(behaviour) as server:
        error = answer_of(loopback(server.base_url)).error
    assert error
    assert said in error.message
