"""Servers that send what no server should: one clear error or an answer, never a crash."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import Done
from agent_magics.providers.http.clients import Timeouts
from agent_magics.providers.http.endpoint import Endpoint
from agent_magics.providers.http.faults import read_fault
from agent_magics.providers.http.response import MAX_STREAM_BYTES
from agent_magics.providers.openai_chat.model_info import (
    listed_models,
    loaded_names,
    ollama_model,
    window_in,
)
from agent_magics.providers.presets import Preset
from tests.providers.answers import (
    CHAT_PRESETS,
    Gathered,
    answer_of,
    ask,
    at,
    gather,
    hello_stream,
    known_server,
    server,
    streamed,
)
from tests.providers.loopback import Exchange, serving

pytestmark = pytest.mark.req("P1", "inv14")

END = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
DEEP = "[" * 100_000 + "]" * 100_000


async def answered(response: httpx.Response, **settings: Any) -> Gathered:
    provider = server(lambda _: response, **settings)
    try:
        return await gather(provider)
    finally:
        await provider.aclose()


def answer_to(chunk: str) -> Gathered:
    return asyncio.run(answered(streamed(f"data: {chunk}\n\n".encode(), END)))


@pytest.mark.parametrize(
    "chunk",
    [
        '{"choices":[{"index":[],"delta":{"content":"x"}}]}',
        '{"choices":[{"delta":{"content":[{"type":[],"text":"x"}]}}]}',
        '{"type":{},"object":[],"choices":[]}',
        f'{{"choices":{DEEP}}}',
        '{"choices":[],"n":' + "9" * 10_000 + "}",
    ],
    ids=["index", "part", "type", "deep", "digits"],
)
def test_a_chunk_of_wrong_types_is_left_out(chunk: str) -> None:
    """Lists and objects where words belong, and nesting that no parser follows."""
    assert answer_to(chunk).end == "done"


@pytest.mark.parametrize("count", ["1" + "0" * 40, "1e400", "true", '"5"', "-3", "[]"])
def test_a_count_that_is_none_is_unknown(count: str) -> None:
    """A server's nonsense about usage doesn't cost the answer: it can be recorded."""
    usage = f'{{"choices":[],"usage":{{"prompt_tokens":{count},"completion_tokens":{count}}}}}'
    done = answer_to(usage).done
    assert isinstance(done, Done)
    assert done.usage is None


def test_arguments_that_are_no_strict_json_are_not_executable() -> None:
    """NaN and Infinity, which Python reads, would be refused in every later request."""
    for arguments in ('{"x": NaN}', '{"x": [Infinity]}', '{"x": 1e999}'):
        call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}
        answer = answer_to(json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}))
        assert [(call.arguments, call.raw) for call in answer.calls] == [(None, arguments)]


@pytest.mark.parametrize("status", [200, 400])
def test_a_deep_body_is_an_error_in_words(status: int) -> None:
    """A body that no parser follows is reported as it stands, cut."""
    body = f'{{"choices":{DEEP}}}'
    headers = {"content-type": "application/json"}
    answer = asyncio.run(answered(httpx.Response(status, headers=headers, content=body)))
    assert answer.end == "error"
    assert read_fault(400, 'oops {"a":' + DEEP).kind == "other"


def test_lists_of_models_may_be_of_any_shape() -> None:
    """Unhashable types and numbers that count nothing are no reason to fail."""
    listed = listed_models({"data": [{"id": "m", "type": [], "context_length": 10**40}]}, "p")
    assert [(model.name, model.context_window) for model in listed] == [("m", None)]
    assert window_in({"n_ctx": True, "context_length": 4096}) == 4096


@pytest.mark.parametrize("begin", [b"data: ", b"", b"\n"], ids=["event", "text", "blank"])
def test_an_answer_without_end_is_cut_off(begin: bytes) -> None:
    """A zip bomb or an endless line ends with one sentence, in bounded memory."""
    filling = b"\n" if begin == b"\n" else b"x"
    bomb = gzip.compress(begin + filling * (MAX_STREAM_BYTES + 1_000_000), 1)
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    pieces = [bomb[at : at + 4096] for at in range(0, len(bomb), 4096)]
    response = streamed(*pieces)
    response.headers.update(headers)
    answer = asyncio.run(answered(response))
    assert answer.error is not None
    assert "was cut off" in answer.error.message


@pytest.mark.parametrize("cut", [0, 1, 3])
@pytest.mark.parametrize(
    ("body", "end"),
    [
        (b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}', "done"),
        (b"\n <html><title>Log in</title></html>", "error"),
        (b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n' + END, "done"),
    ],
    ids=["json", "page", "events"],
)
def test_a_byte_order_mark_hides_nothing(body: bytes, end: str, cut: int) -> None:
    """What a body is, is told by what follows the mark, wherever the reads are cut."""
    whole = b"\xef\xbb\xbf" + body
    answer = asyncio.run(answered(streamed(*filter(None, [whole[:cut], whole[cut:]]))))
    assert (answer.end, answer.text) == (end, "Hello" if end == "done" else "")


def test_a_server_that_goes_on_after_the_end_is_left() -> None:
    """What follows `[DONE]` is read for the connection's sake only, and not for long."""

    async def reads() -> AsyncIterator[bytes]:
        yield b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n' + END
        while True:
            await asyncio.sleep(0.05)
            yield b": still here\n\n"

    async def run() -> Gathered:
        response = httpx.Response(200, content=reads())
        return await asyncio.wait_for(answered(response), 5)

    assert asyncio.run(run()).text == "Hello"


@pytest.mark.parametrize(
    ("host", "is_read"), [("models.example", True), ("127.0.0.1", False)], ids=["far", "near"]
)
def test_the_rest_is_read_where_the_connection_is_kept(host: str, *, is_read: bool) -> None:
    """A connection with unread bytes can't be used again; near servers' connections aren't."""
    was_read = False

    async def body() -> AsyncIterator[bytes]:
        nonlocal was_read
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"
        was_read = True

    async def run() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body()))
        endpoint = Endpoint("p", f"https://{host}/v1", transport=transport)
        async with (
            endpoint.open("POST", "chat", body={}) as reply,
            aclosing(reply.events()) as events,
        ):
            assert (await anext(events)).data == "1"
            await reply.drain()
        await endpoint.aclose()

    asyncio.run(run())
    assert was_read is is_read


@pytest.mark.parametrize("loaded", [5, [5], {"a": 1}, [{"name": []}], None])
def test_what_ollama_has_loaded_may_be_of_any_shape(loaded: Any) -> None:
    """A list of models is given, whatever stands in the other one."""
    assert loaded_names({"models": loaded}) == set()
    assert ollama_model("m", {"parameters": f"num_ctx {'9' * 5_000}"}, loaded, "p").context_window


def test_many_calls_are_read_in_a_time_that_grows_with_their_number() -> None:
    """Without an index each piece looks for its call."""
    calls = [{"id": f"i{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(20_000)]
    begun = time.process_time()
    answer = answer_to(json.dumps({"choices": [{"delta": {"tool_calls": calls}}]}))
    assert len(answer.calls) == 20_000
    assert time.process_time() - begun < 5


def test_a_name_of_a_model_can_be_shown() -> None:
    """Half a surrogate pair would break every terminal and store it comes to."""
    (model,) = listed_models({"data": [{"id": "m\ud800"}]}, "p")
    assert model.name == "m\ufffd"


@pytest.mark.parametrize("key", ["sk-…x3F", "sk-a\nb", "clé-secrète"])
def test_a_key_that_can_not_be_sent_is_named_not_shown(key: str) -> None:
    """A key copied with an ellipsis or a line end is the person's mistake, not a crash."""
    answer = asyncio.run(answered(hello_stream(), api_key=key))
    assert answer.error is not None
    assert answer.error.kind == "auth"
    assert key not in answer.error.message


# Real sockets


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_stream_that_stops_within_a_character_is_interrupted(cut: int) -> None:
    """What was whole stays; half a character is never shown, and is told as the end that it is."""
    smile = "🙂".encode()

    def stop(exchange: Exchange) -> None:
        exchange.begin()
        exchange.piece("Hel")
        half = b'data: {"choices":[{"index":0,"delta":{"content":"lo ' + smile[:cut]
        exchange.wfile.write(f"{len(half):x}\r\n".encode() + half + b"\r\n")
        exchange.wfile.flush()
        exchange.drop()

    with serving(stop) as local:
        answer = answer_of(at(local.base_url))
    assert (answer.text, answer.end) == ("Hel", "interrupted")


def test_a_slow_server_that_goes_on_is_waited_for() -> None:
    """Each byte proves life, though no event is whole within the longest silence."""
    body = b'data: {"choices":[{"index":0,"delta":{"content":"slow"},"finish_reason":"stop"}]}\n\n'

    def drip(exchange: Exchange) -> None:
        exchange.begin()
        for start in range(0, len(body), 8):
            piece = body[start : start + 8]
            exchange.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            exchange.wfile.flush()
            time.sleep(0.05)
        exchange.wfile.write(b"0\r\n\r\n")

    with serving(drip) as local:
        patient = Timeouts(connect_s=1, first_token_s=0.3, between_tokens_s=0.3)
        answer = answer_of(at(local.base_url, timeouts=patient))
    assert (answer.text, answer.end) == ("slow", "done")


@pytest.mark.req("dec63")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("preset", CHAT_PRESETS, ids=lambda preset: str(preset.provider))
def test_a_redirect_is_told_and_never_followed(status: int, preset: Preset) -> None:
    """The other server hears nothing, the key's first characters are told to nobody."""
    key = "sk-redirected-0123456789abcdef"
    with serving() as thief:
        place = f"{thief.base_url}/chat/completions?key={key}"
        with serving(lambda exchange: exchange.whole(status, "", location=place)) as local:
            provider = known_server(preset, base_url=local.base_url, api_key=key)
            answer = answer_of(provider)
            assert asyncio.run(provider.models()) == []
        assert thief.seen == []
        assert local.seen
    assert answer.error is not None
    assert "sends us on" in answer.error.message
    assert key[:12] not in answer.error.message


@pytest.mark.req("dec63")
@pytest.mark.parametrize("preset", CHAT_PRESETS, ids=lambda preset: str(preset.provider))
def test_a_key_stays_with_its_host(preset: Preset) -> None:
    """A model at another address is asked without it, in no header."""
    key = "sk-belongs-elsewhere-0123456789"
    with serving() as other:
        provider = known_server(preset, base_url="https://models.invalid/v1", api_key=key)
        answer = answer_of(provider, ask(model=f"m@{other.base_url}"))
        assert answer.text == "Hello"
        assert all(key not in value for headers in other.seen for value in headers.values())


@pytest.mark.req("dec63", "N14")
def test_a_proxy_is_used_for_hosts_elsewhere_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real proxy: it sees the request to another host, and none to this machine."""
    with serving(Exchange.hello) as proxy, serving(Exchange.hello) as local:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert answer_of(at(local.base_url)).text == "Hello"
        assert proxy.seen == []
        assert answer_of(at("http://models.invalid/v1")).text == "Hello"
        (seen,) = proxy.seen
    assert seen["host"] == "models.invalid"
    assert "proxy-authorization" not in seen


@pytest.mark.parametrize("kind", [ConnectionResetError, "silence"], ids=["reset", "silence"])
def test_a_server_that_never_says_a_word_is_named(kind: object) -> None:
    """It takes the request and resets, or says nothing: one sentence after the waits."""
    waits = threading.Event()

    def behave(exchange: Exchange) -> None:
        if kind == "silence":
            waits.wait(5)
        else:
            linger = struct.pack("ii", 1, 0)
            exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            exchange.close_connection = True
            exchange.connection.close()

    with serving(behave) as local:
        answer = answer_of(at(local.base_url))
        waits.set()
    assert answer.error is not None
    assert answer.error.kind == ("timeout" if kind == "silence" else "connection")
    assert "openai" in answer.error.message
