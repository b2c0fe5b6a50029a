"""When the adapter asks again, and how long it waits for what (P5, D 58)."""

from __future__ import annotations

import asyncio
import threading
import time

import httpx
import pytest

from agent_magics.core.chat import Retrying, TextDelta
from agent_magics.core.errors import ProviderError, StreamInterrupted
from agent_magics.providers.http.retries import RetryPolicy
from tests.providers.answers import (
    answer_of,
    ask,
    at,
    gather,
    hello_stream,
    server,
)
from tests.providers.loopback import Exchange, serving

pytestmark = pytest.mark.req("P5")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_failures_are_sent_again(status: int) -> None:
    """Each is told before its wait."""
    answers = iter([status, status, 200])

    def handle(_: httpx.Request) -> httpx.Response:
        code = next(answers)
        return hello_stream() if code == 200 else httpx.Response(code, text="busy")

    answer = answer_of(server(handle))
    assert answer.text == "Hello"
    assert [retry.attempt for retry in answer.retries] == [1, 2]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_lasting_failures_are_not_sent_again(status: int) -> None:
    """A second try would fail as the first."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, json={"error": {"message": "no"}})

    answer = answer_of(server(handle))
    assert answer.end == "error"
    assert len(asked) == 1


def test_attempts_end_with_the_last_error() -> None:
    """Three attempts, two waits, one error."""
    answer = answer_of(server(lambda _: httpx.Response(503, text="down for repair")))
    assert len(answer.retries) == 2
    assert answer.error
    assert "down for repair" in answer.error.message
    assert answer.error.status == 503


@pytest.mark.parametrize(
    ("asked", "waited"),
    [({"retry-after": "0.05"}, 0.05), ({"retry-after-ms": "30"}, 0.03)],
)
def test_retry_after_is_kept_to(asked: dict[str, str], waited: float) -> None:
    """The server knows best how long to wait."""
    answers = iter([httpx.Response(429, headers=asked, text="slow down"), hello_stream()])
    answer = answer_of(server(lambda _: next(answers)))
    assert [retry.wait_s for retry in answer.retries] == [waited]


def test_wait_that_is_too_long_is_not_waited() -> None:
    """Nobody sits in front of a cell for an hour."""
    response = httpx.Response(429, headers={"retry-after": "3600"}, text="slow down")
    answer = answer_of(server(lambda _: response))
    assert answer.retries == ()
    assert answer.error
    assert answer.error.retry_after_s == 3600


def test_date_in_retry_after_is_understood() -> None:
    """HTTP dates count from now."""
    response = httpx.Response(
        429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, text="slow down"
    )
    answers = iter([response, hello_stream()])
    answer = answer_of(server(lambda _: next(answers)))
    assert [retry.wait_s for retry in answer.retries] == [0.0]


@pytest.mark.parametrize(
    "asked",
    ["Wed, 21 Oct 2015 07:28:00 +99999999999999999", "Wed, 21 Oct 99999999999 07:28:00 GMT"],
)
def test_date_that_is_none_is_no_wish(asked: str) -> None:
    """What no calendar holds is as if nothing had been asked."""
    response = httpx.Response(429, headers={"retry-after": asked}, text="slow down")
    answers = iter([response, hello_stream()])
    answer = answer_of(server(lambda _: next(answers)))
    assert len(answer.retries) == 1
    assert answer.text == "Hello"


def test_waits_double_and_are_spread() -> None:
    """Between half and whole of 0.5, 1, 2, … up to the longest."""
    error = ProviderError("reset", retryable=True, kind="connection")
    retry = RetryPolicy(attempts=9)
    low = [retry.wait_s(n, error, lambda: 0.0) for n in range(1, 7)]
    high = [retry.wait_s(n, error, lambda: 1.0) for n in range(1, 7)]
    assert low == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    assert high == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert retry.wait_s(9, error) is None


def test_connection_that_breaks_before_an_answer_is_tried_again() -> None:
    """Sockets that the server closed under us are no failure of the user's."""
    with serving(Exchange.drop, Exchange.hello) as local:
        answer = answer_of(at(local.base_url))
    assert answer.text == "Hello"
    assert len(answer.retries) == 1


def test_break_after_the_first_token_is_not_tried_again() -> None:
    """What was said stays, and nothing is said twice."""

    def dropping(exchange: Exchange) -> None:
        exchange.begin()
        exchange.piece("Hel")
        exchange.drop()

    with serving(dropping, Exchange.hello) as local:
        answer = answer_of(at(local.base_url))
        assert len(local.bodies) == 1
    assert answer.text == "Hel"
    assert isinstance(answer.error, StreamInterrupted)
    assert answer.retries == ()


def test_break_after_a_piece_of_a_call_is_not_tried_again() -> None:
    """A call in the making is a token, though it wasn't shown."""

    def dropping(exchange: Exchange) -> None:
        exchange.begin()
        exchange.raw(
            'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
            '{"name":"f","arguments":"{"}}]}}]}\n\n'
        )
        exchange.drop()

    with serving(dropping, Exchange.hello) as local:
        answer = answer_of(at(local.base_url))
        assert len(local.bodies) == 1
    assert answer.end == "interrupted"


@pytest.mark.req("dec58")
def test_silence_before_the_first_token_ends() -> None:
    """The longest silence is a setting, and its end a sentence."""
    stop = threading.Event()

    def silent(exchange: Exchange) -> None:
        exchange.begin()
        stop.wait(10)

    with serving(silent) as local:
        begun = time.monotonic()
        answer = answer_of(at(local.base_url))
        stop.set()
    assert 0.4 < time.monotonic() - begun < 5
    assert answer.error
    assert answer.error.kind == "timeout"
    assert "said nothing for" in answer.error.message
    assert answer.retries == ()


@pytest.mark.req("dec58")
def test_silence_between_tokens_ends_and_keeps_what_was_said() -> None:
    """The second wait is shorter than the first."""
    stop = threading.Event()

    def stalling(exchange: Exchange) -> None:
        exchange.begin()
        exchange.piece("Hel")
        stop.wait(10)

    with serving(stalling) as local:
        answer = answer_of(at(local.base_url))
        stop.set()
    assert (answer.text, answer.end) == ("Hel", "interrupted")


@pytest.mark.req("dec58")
def test_comments_prove_life() -> None:
    """A server that thinks aloud is waited for beyond the longest silence."""

    def thinking(exchange: Exchange) -> None:
        exchange.begin()
        for _ in range(8):
            exchange.raw(": still thinking\n\n")
            time.sleep(0.1)
        exchange.piece("Hello")
        exchange.end()

    with serving(thinking) as local:
        answer = answer_of(at(local.base_url))
    assert answer.text == "Hello"


def test_leaving_the_stream_closes_the_connection() -> None:
    """The server notices at once, and the provider serves the next request."""
    left = threading.Event()

    def endless(exchange: Exchange) -> None:
        exchange.begin()
        try:
            for _ in range(1_000):
                exchange.piece("more ")
                time.sleep(0.01)
        except OSError:
            left.set()

    async def run(base_url: str) -> None:
        provider = at(base_url)
        events = provider.chat(ask())
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()
        assert await asyncio.to_thread(left.wait, 5)
        assert (await gather(provider)).text == "Hello"
        await provider.aclose()

    with serving(endless, Exchange.hello) as local:
        asyncio.run(run(local.base_url))


def test_cancelling_while_it_waits_to_retry_is_immediate() -> None:
    """An interrupt doesn't sit the wait out."""

    async def run() -> None:
        provider = server(
            lambda _: httpx.Response(503), retry=RetryPolicy(first_wait_s=60, longest_wait_s=60)
        )
        async for event in provider.chat(ask()):
            assert isinstance(event, Retrying)
            task = asyncio.current_task()
            assert task
            asyncio.get_running_loop().call_later(0.05, task.cancel)

    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert time.monotonic() - begun < 5


def test_provider_serves_one_loop_after_another() -> None:
    """Sockets of an ended loop are not used again."""
    with serving() as local:
        provider = at(local.base_url)
        for _ in range(3):
            assert asyncio.run(gather(provider)).text == "Hello"
        asyncio.run(provider.aclose())
