"""The Anthropic adapter: what it makes of answers, refusals and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ContextOverflow, StreamInterrupted
from agent_magics.core.slots import ModelParams
from agent_magics.core.values import TokenUsage
from tests.providers.answers import (
    ANTHROPIC_KEY,
    Gathered,
    answer_of,
    anthropic_server,
    ask,
    gather,
    known_server,
    streamed,
)
from tests.providers.anthropic.examples import (
    START,
    STOP,
    asked,
    events,
    hello,
    opened,
    piece,
    refused,
    said,
    stopped,
    user,
)

pytestmark = pytest.mark.req("P2")


# What refusals make of it


def test_a_refused_temperature_is_left_out_and_remembered() -> None:
    """Compaction asks with a low one; some models take none."""
    request = ask(params=ModelParams(temperature=0.0))
    answers, bodies = asked(
        lambda body: refused("`temperature` is not allowed") if "temperature" in body else hello(),
        request,
        request,
    )
    assert [answer.text for answer in answers] == ["Hello", "Hello"]
    assert len(bodies) == 3
    assert answers[0].retries == ()


def test_the_output_is_what_the_model_allows() -> None:
    """The server needs a number: the default, less where the model refuses it, or what is told."""
    said_once = "max_tokens: {} > 4096, which is the maximum allowed number of output tokens for m"

    def handle(body: dict[str, Any]) -> httpx.Response:
        most = body["max_tokens"]
        return hello() if most <= 4_096 else refused(said_once.format(most))

    answers, bodies = asked(handle, ask(), ask())
    assert [answer.text for answer in answers] == ["Hello", "Hello"]
    assert [body["max_tokens"] for body in bodies] == [8_192, 4_096, 4_096]
    named = ask(params=ModelParams(max_tokens=9_000))
    (answer,), _ = asked(handle, named)
    assert answer.error
    assert answer.error.kind == "output_reservation"


@pytest.mark.req("P6")
def test_too_long_a_prompt_tells_the_window() -> None:
    """The numbers in the server's words are the window and what was sent."""
    (answer,), bodies = asked(
        lambda _: refused("prompt is too long: 208380 tokens > 200000 maximum")
    )
    assert isinstance(answer.error, ContextOverflow)
    assert (answer.error.window, answer.error.used) == (200_000, 208_380)
    assert len(bodies) == 1


@pytest.mark.req("P5")
@pytest.mark.parametrize(
    "trouble",
    [
        lambda: refused("Overloaded", 529, "overloaded_error"),
        lambda: refused("Internal server error", 500, "api_error"),
        lambda: refused("slow down", 429, "rate_limit_error"),
        lambda: events(
            START,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
    ],
    ids=["529", "500", "429", "in the stream"],
)
def test_what_may_pass_is_asked_again(trouble: Callable[[], httpx.Response]) -> None:
    """Before the first token, with a wait that is told."""
    left = [trouble]
    (answer,), bodies = asked(lambda _: left.pop()() if left else hello())
    assert answer.text == "Hello"
    assert [each.attempt for each in answer.retries] == [1]
    assert len(bodies) == 2


def test_an_error_after_the_first_token_keeps_what_was_said_and_counted() -> None:
    """It isn't asked again; the tokens were spent."""
    (answer,), bodies = asked(
        lambda _: events(
            START,
            opened(0, type="text", text="par"),
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        )
    )
    assert (answer.text, answer.end, len(bodies)) == ("par", "error", 1)
    assert answer.error
    assert answer.error.usage == TokenUsage(input_tokens=9, output_tokens=1)


def test_what_a_failed_attempt_counted_is_told() -> None:
    """Before its first token it is sent again; a last one keeps it with its error."""
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    answers = iter([events(START, busy), hello()])
    (answer,), _ = asked(lambda _: next(answers))
    assert answer.text == "Hello"
    assert [retry.usage for retry in answer.retries] == [
        TokenUsage(input_tokens=9, output_tokens=1)
    ]
    (failed,), _ = asked(lambda _: events(START, busy))
    assert failed.error
    assert failed.error.usage == TokenUsage(input_tokens=9, output_tokens=1)


def test_an_end_without_a_word_is_an_interruption() -> None:
    """Neither a stop reason nor message_stop: the connection was cut."""
    (answer,), _ = asked(lambda _: events(START, opened(0, type="text", text="par")))
    assert isinstance(answer.error, StreamInterrupted)
    assert answer.text == "par"
    assert answer.error.usage == TokenUsage(input_tokens=9, output_tokens=1)


@pytest.mark.parametrize(
    ("reason", "end", "warnings"),
    [
        ("end_turn", "done", 0),
        ("stop_sequence", "done", 0),
        ("pause_turn", "done", 0),
        ("max_tokens", "length", 0),
        ("model_context_window_exceeded", "length", 0),
        ("refusal", "done", 1),
        ("something_new", "done", 0),
    ],
)
def test_reasons_to_stop(reason: str, end: str, warnings: int) -> None:
    """A limit is told from an end, and a refusal is told."""
    (answer,), _ = asked(lambda _: events(START, opened(0, type="text", text="x"), stopped(reason)))
    assert answer.end == end
    assert answer.done
    assert len(answer.done.warnings) == warnings


def test_counts_include_what_the_cache_held() -> None:
    """Read and written parts of the cache belong to the context; thinking to the output."""
    start = {
        "type": "message_start",
        "message": {
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 20,
                "output_tokens": 1,
            }
        },
    }
    end = stopped("end_turn", output_tokens=7, input_tokens=10)
    end["usage"]["output_tokens_details"] = {"thinking_tokens": 4}
    (answer,), _ = asked(lambda _: events(start, opened(0, type="text", text="x"), end))
    assert answer.done
    assert answer.done.usage == TokenUsage(
        input_tokens=120, output_tokens=7, cached_tokens=90, reasoning_tokens=4
    )


def test_a_declined_call_never_runs() -> None:
    """What was not written any more may be a part of it."""
    use = opened(0, type="tool_use", id="t", name="delete_files", input={})
    (answer,), _ = asked(lambda _: events(use, stopped("refusal", output_tokens=1)))
    (call,) = answer.calls
    assert (call.tool_name, call.arguments) == ("delete_files", None)


@pytest.mark.parametrize("usage", [{}, {"input_tokens": -5}, {"input_tokens": 0}])
def test_a_prompt_of_no_tokens_was_not_counted(usage: dict[str, int]) -> None:
    """Servers that speak like Anthropic may tell the output alone: the input is unknown, not 0."""
    start = {"type": "message_start", "message": {"usage": usage}}
    end = stopped("end_turn", output_tokens=7)
    (answer,), _ = asked(lambda _: events(start, opened(0, type="text", text="x"), end))
    assert answer.done
    assert answer.done.usage == TokenUsage(output_tokens=7)


def test_what_is_not_known_is_left_out_with_a_warning() -> None:
    """New kinds of parts, pieces of parts that never began, lines that are no JSON."""
    (answer,), _ = asked(
        lambda _: streamed(
            b"data: {oops\n\n",
            *(
                f"data: {json.dumps(event)}\n\n".encode()
                for event in (
                    {"type": "a_new_event"},
                    opened(0, type="server_tool_use", id="s", name="web_search", input={}),
                    piece(0, type="input_json_delta", partial_json="{}"),
                    piece(7, type="text_delta", text="lost"),
                    opened(1, type="text", text="Hello"),
                    piece(1, type="citations_delta", citation={}),
                    stopped("end_turn"),
                )
            ),
        )
    )
    assert (answer.text, answer.calls) == ("Hello", ())
    assert answer.done
    assert len(answer.done.warnings) == 3


def test_half_a_call_is_kept_and_not_executable() -> None:
    """What was written is shown to the model as it is."""
    (answer,), _ = asked(
        lambda _: events(
            START,
            opened(0, type="tool_use", id="t", name="f", input={}),
            piece(0, type="input_json_delta", partial_json='{"x": '),
            stopped("max_tokens"),
        )
    )
    (call,) = answer.calls
    assert (call.arguments, call.raw) == (None, '{"x": ')


def test_a_whole_message_for_a_stream_request_is_used() -> None:
    """The answer counts, and nothing is asked twice."""
    message = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "whole"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    (answer,), bodies = asked(lambda _: httpx.Response(200, json=message))
    assert (answer.text, answer.reasoning, len(bodies)) == ("whole", "hm", 1)
    assert [call.arguments for call in answer.calls] == [{"x": 1}]
    assert answer.done
    assert answer.done.usage == TokenUsage(input_tokens=3, output_tokens=1)


# Keys, places, facts


@pytest.mark.req("dec63")
def test_the_key_stands_in_its_header_and_in_no_error() -> None:
    """It goes to its host alone, and a server that repeats it doesn't make us show it."""
    seen: list[httpx.Headers] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return refused(f"invalid x-api-key {ANTHROPIC_KEY}", 401, "authentication_error")

    error = answer_of(anthropic_server(handle)).error
    assert error
    assert error.kind == "auth"
    assert ANTHROPIC_KEY not in repr(error.args) + error.message
    assert "ANTHROPIC_API_KEY" in error.message
    assert seen[0]["x-api-key"] == ANTHROPIC_KEY
    assert seen[0]["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen[0]


def test_nobody_is_asked_without_a_key() -> None:
    """One sentence names the variable; a server elsewhere may need none."""
    error = answer_of(anthropic_server(lambda _: hello(), api_key=None)).error
    assert error
    assert error.message == "anthropic needs a key: set ANTHROPIC_API_KEY."
    elsewhere = anthropic_server(lambda _: hello(), api_key=None, base_url="http://here.test/v1")
    assert answer_of(elsewhere).text == "Hello"


def test_an_address_is_read_with_and_without_its_version() -> None:
    """Anthropic's own tools write it without."""
    for given in ("https://gate.test", "https://gate.test/", "https://gate.test/v1"):
        assert (
            str(known_server("anthropic", base_url=given).endpoint.base_url)
            == "https://gate.test/v1"
        )
    assert known_server("anthropic").endpoint.host == "api.anthropic.com"


def test_a_model_may_carry_its_own_address() -> None:
    """Its server is asked by the name alone, with the key that belongs to that host, or none."""
    seen: list[tuple[str, str | None, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        name = json.loads(request.content)["model"]
        seen.append((str(request.url), request.headers.get("x-api-key"), name))
        if request.url.host == "closed.test":
            return refused("no", 401, "authentication_error")
        return hello()

    def key_for(host: str) -> tuple[str | None, str]:
        return ("key-of-known" if host == "known.test" else None, f"KEY_OF_{host}")

    async def run() -> list[Gathered]:
        provider = anthropic_server(handle, key_for=key_for)
        places = ("known.test", "other.test:81/v1", "closed.test", "api.anthropic.com")
        models = ["m", *(f"m@http://{place}" for place in places)]
        answers = [await gather(provider, ask(model=model)) for model in models]
        await provider.aclose()
        return answers

    *answers, closed, open_ = asyncio.run(run())
    assert [answer.text for answer in answers] == ["Hello"] * 3
    assert seen == [
        ("https://api.anthropic.com/v1/messages", ANTHROPIC_KEY, "m"),
        ("http://known.test/v1/messages", "key-of-known", "m"),
        ("http://other.test:81/v1/messages", None, "m"),
        ("http://closed.test/v1/messages", None, "m"),
    ]  # the last was asked nothing: its own key isn't sent in the open
    assert closed.error
    assert "set KEY_OF_closed.test" in closed.error.message
    assert open_.error
    assert open_.error.kind == "auth"
    assert open_.error.message == (
        "anthropic would be asked in the open at http://api.anthropic.com/v1, where its key is not"
        " sent; write that address with https."
    )


def test_nobody_without_a_key_is_told_of_another_variable() -> None:
    """The one that was looked up."""
    handle = anthropic_server(lambda _: hello(), api_key=None, key_name="MY_KEY")
    error = answer_of(handle).error
    assert error
    assert error.message == "anthropic needs a key: set MY_KEY."


@pytest.mark.parametrize("address", ["http://host/v1", "http://host", "http://host/"])
def test_an_address_with_a_query_is_read_with_and_without_its_version(address: str) -> None:
    """The version belongs to the path."""
    seen: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return hello()

    assert answer_of(anthropic_server(handle), ask(model=f"m@{address}?code=x/y")).text == "Hello"
    assert seen == [b"/v1/messages?code=x/y"]


def test_thoughts_go_back_to_the_address_they_came_from() -> None:
    """The whole name is the author's: the same name elsewhere is another model."""
    bodies: list[dict[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return events(
            START,
            opened(0, type="thinking", thinking="hm", signature="sig"),
            opened(1, type="text", text="Hello"),
            stopped("end_turn", output_tokens=2),
            STOP,
        )

    async def run() -> None:
        provider = anthropic_server(handle)
        here = "m@http://here.test"
        answer = await gather(provider, ask(model=here))
        assert answer.done
        thought = answer.done.reasoning
        for model in (here, "m"):
            messages = (user("hello"), said("Hello", thought=thought), user("go on"))
            await gather(provider, ChatRequest(model=model, messages=messages))

    asyncio.run(run())
    assert ["sig" in str(body) for body in bodies] == [False, True, False]


@pytest.mark.req("P7")
def test_nothing_is_made_up_of_models_elsewhere() -> None:
    """A server that tells nothing leaves window and sight unknown; the name stays whole."""

    async def run() -> ModelInfo:
        provider = anthropic_server(lambda _: httpx.Response(404, json={}))
        return await provider.describe("llama@http://here.test:11434")

    info = asyncio.run(run())
    assert (info.spec, info.context_window, info.has_vision) == (
        "anthropic:llama@http://here.test:11434",
        None,
        None,
    )


@pytest.mark.req("P7")
def test_models_tell_their_windows_and_outputs() -> None:
    """What the server tells holds, and bounds the output that is asked for by default."""
    told = {"id": "claude-a", "max_input_tokens": 500_000, "max_tokens": 4_000}
    bodies: list[dict[str, Any]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/v1/models":
                return httpx.Response(200, json={"data": [told, {"id": "claude-b"}, {"x": 1}]})
            case "/v1/models/claude-a":
                return httpx.Response(200, json=told)
            case "/v1/models/claude-c":
                return httpx.Response(404, json={"type": "error"})
            case _:
                bodies.append(json.loads(request.content))
                return hello()

    async def run() -> None:
        provider = anthropic_server(handle)
        listed = await provider.models()
        assert [(info.spec, info.context_window) for info in listed] == [
            ("anthropic:claude-a", 500_000),
            ("anthropic:claude-b", 200_000),
        ]
        assert await provider.describe("claude-a") == ModelInfo(
            name="claude-a", provider="anthropic", context_window=500_000, has_vision=True
        )
        assert (await provider.describe("claude-c")).context_window == 200_000
        await gather(provider, ask(model="claude-a"))
        await gather(provider, ask(model="claude-c"))
        await provider.aclose()

    asyncio.run(run())
    assert [body["max_tokens"] for body in bodies] == [4_000, 8_192]


def test_a_server_that_does_not_answer_lists_nothing() -> None:
    """And a model is described by what is known without it."""

    def handle(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)

    async def run() -> None:
        provider = anthropic_server(handle)
        assert await provider.models() == []
        assert (await provider.describe("claude-a")).has_tools
        await provider.aclose()

    asyncio.run(run())
