"""The common adapter: what it sends, what it retries, what it says when things go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.errors import ContextOverflow, InputValidation
from agent_magics.core.hosts import is_loopback
from agent_magics.core.messages import (
    Assistant,
    File,
    Image,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from agent_magics.core.ports import Provider
from agent_magics.core.slots import ModelParams
from agent_magics.providers.http.retries import RetryPolicy
from agent_magics.providers.openai_chat.payload import payload_of
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from agent_magics.providers.presets import Quirks
from tests.providers.answers import (
    KEY,
    Gathered,
    answer_of,
    ask,
    at,
    gather,
    hello_stream,
    known_server,
    server,
)
from tests.providers.loopback import Exchange, free_port, serving

pytestmark = pytest.mark.req("P1")
A_FILE = File(name="a.txt", media_type="text/plain", text="A")


# What is sent


def test_conversation_is_written_in_the_servers_words() -> None:
    """Every kind of message, with calls paired and images inline."""
    request = ChatRequest(
        model="m",
        messages=(
            System(text="one"),
            System(text="two"),
            User(
                content=(Text(text="look"), File(name="a.txt", media_type="text/plain", text="A"))
            ),
            Assistant(
                content=(Text(text="I look"),),
                calls=(ToolCall(call_id="c3", tool_name="f", arguments={"x": "é"}),),
                reasoning=Reasoning(text="secret", provider="openai", model="m"),
            ),
            ToolResult(call_id="c3", tool_name="f", content="done"),
            System(text="you were interrupted"),
            User(content=(Text(text="and this"), Image(data="QUJD", media_type="image/png"))),
        ),
        tools=(ToolDefinition(name="f", description="d", parameters={"type": "object"}),),
        tool_choice="none",
        params=ModelParams(temperature=0.0, max_tokens=5, reasoning_effort="low"),
    )
    body = payload_of(request)
    assert body["messages"] == [
        {"role": "system", "content": "one\n\ntwo"},
        {"role": "user", "content": "look\n\nFile a.txt:\nA"},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"x": "é"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "done"},
        {"role": "user", "content": "[note] you were interrupted"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and this"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ],
        },
    ]
    assert {k: body[k] for k in body if k not in {"messages", "tools"}} == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tool_choice": "none",
        "temperature": 0.0,
        "max_tokens": 5,
        "reasoning_effort": "low",
    }
    assert body["tools"][0]["function"]["name"] == "f"


@pytest.mark.req("dec5")
def test_reasoning_goes_back_only_to_who_made_it() -> None:
    """Another model's thoughts are never sent, nor where the server doesn't want them."""
    thought = Reasoning(text="hm", provider="openai", model="m")
    request = ChatRequest(model="m", messages=(Assistant(reasoning=thought),))
    other = ChatRequest(model="n", messages=(Assistant(reasoning=thought),))

    def sent(request: ChatRequest, field: Any) -> str:
        quirks = Quirks(reasoning=field)
        return json.dumps(payload_of(request, quirks=quirks, author=("openai", request.model)))

    assert '"reasoning_content": "hm"' in sent(request, "reasoning_content")
    assert "hm" not in sent(request, "")
    assert "hm" not in sent(other, "reasoning_content")


def test_same_request_is_the_same_bytes() -> None:
    """Nothing random goes out, so that prefixes are cached and replays are found."""
    bodies: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return hello_stream()

    for _ in range(2):
        answer_of(server(handle))
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    ("refusal", "status", "gone"),
    [
        ("Unknown field: stream_options", 400, lambda body: "stream_options" not in body),
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            400,
            lambda body: "max_tokens" not in body and body["max_completion_tokens"] == 5,
        ),
        (
            "Jinja Exception: System role not supported",
            500,
            lambda body: [m["role"] for m in body["messages"]] == ["user"],
        ),
    ],
    ids=["stream_options", "max_tokens", "system role"],
)
def test_refused_feature_is_left_out_and_remembered(
    refusal: str, status: int, gone: Callable[[dict[str, Any]], bool]
) -> None:
    """One refusal, one more try, and never again the same mistake."""
    bodies: list[dict[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        if gone(bodies[-1]):
            return hello_stream()
        return httpx.Response(status, json={"error": {"message": refusal}})

    async def run() -> list[Gathered]:
        provider = server(handle)
        request = ChatRequest(
            model="m",
            messages=(System(text="be kind"), User(content=(Text(text="hi"),))),
            params=ModelParams(max_tokens=5),
        )
        return [await gather(provider, request) for _ in range(2)]

    first, second = asyncio.run(run())
    assert (first.text, second.text) == ("Hello", "Hello")
    assert len(bodies) == 3
    assert first.retries == ()


def test_tools_are_left_out_for_models_that_break_on_them() -> None:
    """The quirk `tools` says so."""
    tool = ToolDefinition(name="f", description="d", parameters={})
    assert "tools" not in payload_of(ask(tools=(tool,)), quirks=Quirks(tools=False))


# Keys and places


@pytest.mark.req("dec63")
def test_key_goes_only_to_its_host() -> None:
    """Another address gets the key that belongs to it, or none; redirects are not followed."""
    seen: list[tuple[str, str | None]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.host, request.headers.get("authorization")))
        if request.url.host == "moved.test":
            return httpx.Response(307, headers={"location": "http://thief.test/v1"})
        return hello_stream()

    async def run() -> Gathered:
        keys = {"known.test": "key-of-known"}
        provider = server(handle, key_for=lambda host: (keys.get(host), "A_VARIABLE"))
        for model in ("m", "m@http://known.test/v1", "m@http://other.test:81/v1"):
            assert (await gather(provider, ask(model=model))).text == "Hello"
        return await gather(provider, ask(model="m@http://moved.test/v1"))

    moved = asyncio.run(run())
    assert seen == [
        ("models.test", f"Bearer {KEY}"),
        ("known.test", "Bearer key-of-known"),
        ("other.test", None),
        ("moved.test", None),
    ]
    assert moved.error
    assert "thief.test" in moved.error.message


def test_a_server_elsewhere_that_wants_a_key_says_which_variable() -> None:
    """The one that is read for its host; without such variables none is named."""

    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(401, json={"error": {"message": "no"}})

    def refusal(**settings: Any) -> str:
        error = answer_of(server(handle, **settings), ask(model="m@https://box.test/v1")).error
        return error.message if error else ""

    assert "set A_KEY_FOR_BOX" in refusal(key_for=lambda _: (None, "A_KEY_FOR_BOX"))
    assert "give it one" in refusal(key_for=lambda _: (None, None))
    assert "give it one" in refusal()


@pytest.mark.req("dec63")
def test_key_of_an_https_server_is_not_sent_in_the_open() -> None:
    """The same host over http is another place: who listens on the way would read the key."""
    seen: list[str | None] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return hello_stream()

    async def run() -> None:
        provider = server(handle, base_url="https://models.test/v1")
        for address in ("http://models.test/v1", "https://models.test:8443/v1"):
            await gather(provider, ask(model=f"m@{address}"))

    asyncio.run(run())
    assert seen == [None, f"Bearer {KEY}"]


def test_a_redirect_is_told_without_keys() -> None:
    """A server may put what it was sent into the address it points to."""
    moved = {"location": f"http://other.test/?key=secret-of-theirs&was={KEY}&{'y' * 9_000}"}
    error = answer_of(server(lambda _: httpx.Response(302, headers=moved))).error
    assert error
    assert "http://other.test/" in error.message
    assert KEY not in error.message
    assert "secret-of-theirs" not in error.message
    assert len(error.message) < 1_000


def test_model_with_an_address_is_named_without_it() -> None:
    """The server is asked for the model it knows."""
    urls: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        urls.append(f"{request.url} {json.loads(request.content)['model']}")
        return hello_stream()

    answer_of(server(handle), ask(model="qwen3:4b@http://box.test:8000/api/v1/?v=2"))
    assert urls == ["http://box.test:8000/api/v1/chat/completions?v=2 qwen3:4b"]


@pytest.mark.req("dec63")
def test_loopback_servers_are_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that can't reach this machine is not asked to, however the address is written."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("NO_PROXY", "")
    with serving() as local:
        for host in ("127.0.0.1", "0.0.0.0", "localhost", "[::ffff:127.0.0.1]"):
            address = local.base_url.replace("127.0.0.1", host)
            assert answer_of(at(address)).text == "Hello", host


@pytest.mark.req("dec63")
@pytest.mark.parametrize(
    "host", ["10.0.0.1", "::ffff:10.0.0.1", "localhost.test", "127.0.0.1.test"]
)
def test_other_hosts_are_not_taken_for_this_machine(host: str) -> None:
    """What only looks like loopback goes through the proxy."""
    assert not is_loopback(host)


@pytest.mark.req("dec58")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://[::1"),
        ("HTTPS_PROXY", "ftp://proxy.test"),
        ("NO_PROXY", "[::1"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem"),
        ("SSL_CERT_FILE", __file__),
    ],
    ids=["proxy address", "proxy scheme", "no proxy", "no certificates", "not certificates"],
)
def test_settings_of_the_environment_that_can_not_be_used_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A wrong proxy or certificate variable is the person's to correct, not a crash."""
    monkeypatch.setenv(name, value)
    error = answer_of(at("https://models.invalid/v1")).error
    assert error
    assert name in error.message
    assert "can't be used" in error.message


@pytest.mark.req("dec58")
def test_other_servers_are_reached_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy variables are honoured."""
    with serving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        answer = answer_of(at("http://models.example/v1", api_key=None))
        assert answer.text == "Hello"
        assert proxy.seen[0]["host"] == "models.example"


@pytest.mark.parametrize("address", ["", "models.test", "ftp://x/v1", "http://", "http://[::1/v1"])
def test_bad_address_is_one_sentence(address: str) -> None:
    """What can't be an address is refused when it is given."""
    with pytest.raises(InputValidation, match="is not an address"):
        OpenAICompatible("openai", base_url=address)


# Sentences


@pytest.mark.req("P6")
def test_wrong_key_is_a_sentence() -> None:
    """Over a real connection, without the key in it."""

    def refuse(exchange: Exchange) -> None:
        exchange.whole(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})

    with serving(refuse) as local:
        answer = answer_of(at(local.base_url))
    assert answer.error
    assert answer.error.message == (
        "openai refused the key (401). The key in OPENAI_API_KEY ends in …x3F;"
        " check it, or choose another model with %agent model."
    )


@pytest.mark.req("P6")
def test_key_that_a_server_repeats_is_redacted() -> None:
    """Servers quote what they were sent."""
    answer = answer_of(server(lambda _: httpx.Response(400, json={"error": f"bad header {KEY}"})))
    assert answer.error
    assert KEY not in answer.error.message
    assert "…x3F" in answer.error.message


def test_nobody_there_is_a_sentence_at_once() -> None:
    """On this machine nobody is waited for who isn't running."""
    url = f"http://127.0.0.1:{free_port()}/v1"
    answer = answer_of(at(url))
    assert answer.error
    assert f"openai does not answer at {url}" in answer.error.message
    assert answer.retries == ()


@pytest.mark.parametrize(
    ("status", "body", "content_type", "words"),
    [
        (502, "<html><title>Bad Gateway</title></html>", "text/html", '"Bad Gateway"'),
        (200, "<!doctype html><title>Log in</title>", "text/html", '"Log in"'),
        (200, "", "text/event-stream", "answered with nothing"),
        (200, ": hello\n\n", "text/event-stream", "before it was done"),
        (200, '{"detail":"Not a chat model"}', "application/json", "Not a chat model"),
        (200, "\n{ not json", "application/json", "not json"),
        (200, '{"error":{"message":"boom"}}', "text/event-stream", "boom"),
    ],
)
def test_what_is_no_answer_is_named(status: int, body: str, content_type: str, words: str) -> None:
    """Pages, empty bodies and foreign JSON give a sentence, and are not asked for again."""
    with serving(lambda exchange: exchange.whole(status, body, content_type)) as local:
        answer = answer_of(at(local.base_url, retry=RetryPolicy(attempts=1)))
        assert len(local.bodies) == 1
    assert answer.end in {"error", "interrupted"}
    assert answer.error
    assert words in answer.error.message
    assert "<" not in answer.error.message


def test_json_answer_over_a_real_connection_is_used() -> None:
    """Servers that don't stream answer all the same."""

    def whole(exchange: Exchange) -> None:
        exchange.whole(200, {"choices": [{"message": {"content": "Hello"}}]})

    with serving(whole) as local:
        assert answer_of(at(local.base_url)).text == "Hello"


@pytest.mark.req("P6")
def test_overflow_in_the_stream_is_overflow() -> None:
    """The status was 200 already."""
    body = (
        'event: error\ndata: {"error":"The number of tokens to keep from the initial prompt is '
        'greater than the context length (n_keep: 13055>= n_ctx: 4096)."}\n\n'
    )
    with serving(lambda exchange: exchange.whole(200, body, "text/event-stream")) as local:
        answer = answer_of(at(local.base_url))
    assert isinstance(answer.error, ContextOverflow)
    assert (answer.error.window, answer.error.used) == (4096, 13055)


def test_openai_itself_is_the_default_place() -> None:
    """The maker of `openai:`."""
    provider = known_server(
        "openai", api_key="key", transport=httpx.MockTransport(lambda _: hello_stream())
    )
    assert provider.endpoint.host == "api.openai.com"
    assert provider.provider_id == "openai"
    assert isinstance(provider, Provider)


@pytest.mark.parametrize("key", [None, "", lambda: None], ids=["none", "empty", "found nowhere"])
def test_openai_itself_is_not_asked_without_a_key(key: Any) -> None:
    """The sentence comes before anything is sent, and nothing is listed; others may need none."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return hello_stream()

    provider = known_server("openai", api_key=key, transport=httpx.MockTransport(answer))
    error = answer_of(provider).error
    assert error is not None
    assert str(error) == "openai needs a key: set OPENAI_API_KEY."
    assert asyncio.run(provider.models()) == []
    assert asked == []
    transport = httpx.MockTransport(answer)
    for place in ("http://127.0.0.1:9/v1", "https://models.example.org/v1"):
        other = known_server("openai", api_key=key, base_url=place, transport=transport)
        assert answer_of(other).text == "Hello"
    assert asked == ["127.0.0.1", "models.example.org"]
