"""What an address hides, its user and its query: sent to its server, and shown to nobody."""

from __future__ import annotations

import base64
import logging

import httpx
import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.providers.recorded.recorded_answer import Failure
from tests.providers.answers import answer_of, ask, at, hello_stream, server
from tests.providers.loopback import Exchange, serving

HIDING = "http://me:a-password@host/v1?code=a-code"


@pytest.mark.req("dec66")
def test_what_an_address_hides_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """The HTTP client logs addresses whole; other programs' requests stay as they log them."""
    caplog.set_level("DEBUG")
    filters = list(logging.getLogger("httpx").filters)
    with serving(Exchange.hello) as local:
        address = local.base_url.replace("http://", "http://me:a-password@") + "?code=a-code"
        assert answer_of(at(address)).text == "Hello"
        assert local.seen[0]["authorization"].startswith("Basic ")
        host = local.base_url.replace("/v1", "")
    assert "/v1/chat/completions" in caplog.text
    assert "a-password" not in caplog.text
    assert "a-code" not in caplog.text
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    with httpx.Client(transport=transport) as other:
        for mine in ("http://elsewhere.test/?page=2", f"{host}/mine?page=2"):
            other.get(mine)
            assert mine in caplog.text
    assert logging.getLogger("httpx").filters == filters


@pytest.mark.req("dec66")
def test_what_an_address_hides_is_sent() -> None:
    """The query goes behind the path, the user into a header."""
    seen: list[tuple[str, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.headers["authorization"]))
        return hello_stream()

    answer = answer_of(server(handle), ask(model=f"m@{HIDING}"))
    assert answer.text == "Hello"
    basic = base64.b64encode(b"me:a-password").decode()
    assert seen == [(HIDING.replace("/v1", "/v1/chat/completions"), f"Basic {basic}")]


@pytest.mark.req("dec66")
@pytest.mark.parametrize(
    "location",
    ["https://host/v1?code=a-code", "https://me:a-password@host/v1", "/v1?code=a-code"],
)
def test_a_redirect_shows_nothing_that_an_address_hides(location: str) -> None:
    """Servers repeat the query of what they were asked; recordings keep what was said."""
    moved = server(lambda _: httpx.Response(308, headers={"location": location}))
    error = answer_of(moved, ask(model=f"m@{HIDING}")).error
    assert error
    assert "://host/v1 (308); use that base URL" in error.message
    for said in (error.message, Failure.of(error).message):
        assert "a-code" not in said
        assert "a-password" not in said


@pytest.mark.req("dec66")
def test_what_a_server_repeats_of_an_address_is_left_out() -> None:
    """A path with its query has no scheme to be known by."""
    said = "no route /v1/chat/completions?code=a-code for me:a-password"
    error = answer_of(
        server(lambda _: httpx.Response(404, json={"error": said})), ask(model=f"m@{HIDING}")
    ).error
    assert error
    assert "no route /v1/chat/completions?… for me:…" in error.message


@pytest.mark.req("dec66")
@pytest.mark.parametrize(
    "address",
    [
        "http://me:a-password@host:x/v1?code=a-code",
        "http://me:a-pass/word@host/v1",
        "http://me:a-pass?word@host/v1",
        "http://me:a-password@/v1?code=a-code",
        "ftp://me:a-password@host/v1",
    ],
)
def test_what_is_no_address_is_said_without_what_it_hides(address: str) -> None:
    """Nor do the words of what could not read it show a part."""
    with pytest.raises(InputValidation, match="is not an address") as raised:
        at(address)
    assert not any(part in str(raised.value) for part in ("a-pass", "word", "a-code"))
    assert raised.value.__cause__ is None
