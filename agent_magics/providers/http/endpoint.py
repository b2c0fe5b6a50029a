"""HTTP and server-sent events: the only module that knows httpx and httpx-sse."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias

import httpx
from httpx_sse import EventSource

from agent_magics.core.errors import InputValidation, ProviderError
from agent_magics.core.hosts import is_loopback
from agent_magics.core.messages import Value
from agent_magics.core.redact import redact, shown_address

Transport = httpx.AsyncBaseTransport
MAX_BODY_BYTES = 32_000_000
MAX_ERROR_BYTES = 200_000
MAX_STREAM_BYTES = 128_000_000  # 300,000 tokens, each in a chunk of its own, and more
WRITE_S = 60.0
_DRAIN_S = 0.3
_SHORTEST_SECRET = 4  # shorter ones would blank out ordinary words
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Key: TypeAlias = str | Callable[[], str | None] | None
KeyFor: TypeAlias = Callable[[str], tuple[Key, str | None]]  # a host's key, and where that is from
BodyKind = Literal["events", "json", "page", "empty"]


class Timeouts(Value):
    """How long to wait, in seconds (decision 58).

    The last two are the longest silence: any byte, a comment line too, proves life.
    """

    connect_s: float = 10.0
    first_token_s: float = 120.0
    between_tokens_s: float = 60.0


class ServerEvent(Value):
    """One server-sent event."""

    name: str
    data: str


def parsed(text: str | bytes) -> Any:
    """Read JSON; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def server_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerEvent, None]:
    """Read server-sent events from bytes that are cut anywhere.

    An event that the end of the stream leaves without its blank line is given too: what it
    says is judged by its reader, and servers do end so.
    """
    body = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=_with_end(chunks)
    )
    body.encoding = "utf-8-sig"  # always UTF-8, whatever the header says, without its mark
    async with aclosing(EventSource(body).aiter_sse()) as events:
        async for event in events:
            if event.data or event.event == "error":
                yield ServerEvent(name=event.event, data=event.data)


async def _with_end(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        yield chunk
    yield b"\n\n"


class Reply:
    """The answer to one request; read it once, in one of its ways.

    `silence_s` is how long the next bytes may take: set it lower after the first token.
    """

    def __init__(self, response: httpx.Response, endpoint: Endpoint) -> None:
        self.status = response.status_code
        self.silence_s = endpoint.timeouts.first_token_s
        self._response = response
        self._endpoint = endpoint
        self._chunks = response.aiter_bytes()
        self._head = b""
        self._read_bytes = 0

    @property
    def retry_after_s(self) -> float | None:
        """How long the server asks to wait, in seconds; None where it doesn't say."""
        return _retry_after(self._response.headers)

    @property
    def location(self) -> str:
        """Where a redirect points, without what that address hides; "" where nobody can go."""
        try:
            place = httpx.URL(self._response.url).join(self._response.headers["location"])
        except (KeyError, httpx.InvalidURL):
            return ""
        return shown_address(str(place))

    async def kind(self) -> BodyKind:
        """Look at the first bytes: servers' content types lie."""
        while _BYTE_ORDER_MARK.startswith(self._head):  # nothing yet, or a part of the mark
            chunk = await self._next()
            if chunk is None:
                return "empty"
            self._head = (self._head + chunk).lstrip().removeprefix(_BYTE_ORDER_MARK).lstrip()
        first = self._head[:1]
        if first in b"{[":
            return "json"
        return "page" if first == b"<" else "events"

    async def read(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Read the body, at most `limit` bytes of it."""
        body = bytearray(self._head)
        async with aclosing(self._rest()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    async def events(self) -> AsyncGenerator[ServerEvent, None]:
        """Read the body as server-sent events."""
        async with aclosing(self._all()) as chunks, aclosing(server_events(chunks)) as events:
            async for event in events:
                yield event

    async def drain(self) -> None:
        """Read to the end, so that the connection is kept; given up where that takes long.

        Nothing is read of loopback servers, whose connections aren't kept (see `Endpoint`).
        """
        if self._endpoint.is_loopback:
            return
        with suppress(ProviderError, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while await self._next() is not None:
                    pass

    async def _all(self) -> AsyncGenerator[bytes, None]:
        if self._head:
            yield self._head
        async with aclosing(self._rest()) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _rest(self) -> AsyncGenerator[bytes, None]:
        while (chunk := await self._next()) is not None:
            yield chunk

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(self.silence_s):
                chunk = await anext(self._chunks, None)
        except TimeoutError as error:
            raise self._endpoint.silent(self.silence_s) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise self._endpoint.failure(error) from error
        self._read_bytes += len(chunk or b"")
        if self._read_bytes > MAX_STREAM_BYTES:
            raise self._endpoint.endless(MAX_STREAM_BYTES)
        return chunk


class _Unlogged(httpx.URL):
    """An address that is asked whole, and written without what it may hide.

    httpx logs the address of each request, at a level that notebooks do turn on, and puts it into
    its errors. Both write it by these two; what is sent is made of its parts.
    """

    def __str__(self) -> str:
        return shown_address(super().__str__())

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


class _Given(httpx.AsyncBaseTransport):
    """Hands each request on to the transport that was given, under its plain address."""

    def __init__(self, given: Transport) -> None:
        self._given = given

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        plain = httpx.Request(
            request.method,
            httpx.URL(request.url),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._given.handle_async_request(plain)

    async def aclose(self) -> None:
        await self._given.aclose()


class Endpoint:
    """One server: its address, its key, and one client that never sends the key elsewhere.

    `name` is what messages call it; `api_key` may be a function that finds the key when it is
    needed, `key_header` where it stands. Loopback servers are reached without proxies (decision 63)
    and without kept connections (some close them after a stream and say they don't).
    `transport` takes the place of the network, for tests. `InputValidation` on a bad address.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        api_key: Key = None,
        key_header: str = "authorization",
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.name = name
        self.base_url = _checked(base_url)
        self._key = api_key
        self._key_header = key_header
        self.timeouts = timeouts or Timeouts()
        self._headers = dict(headers or {})
        self._transport = transport and _Given(transport)
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    @property
    def api_key(self) -> str | None:
        """The key, looked up at its first use."""
        if callable(self._key):
            found = self._key()
            self._key = found or self._key
            return found
        return self._key

    @property
    def host(self) -> str:
        return self.base_url.host

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def shares_key_with(self, base_url: str) -> bool:
        """Tell whether the key belongs to an address too: the same host, reached as safely."""
        other = _checked(base_url)
        is_weaker = self.base_url.scheme == "https" != other.scheme
        return other.host == self.host and not is_weaker

    def key_at(
        self, base_url: str, key_for: KeyFor | None, key_name: str | None
    ) -> tuple[Key, str | None]:
        """Give the key for an address and where it is from: this one's own, or what `key_for` has.

        `key_name` is where this one's is from.
        """
        if self.shares_key_with(base_url):
            return lambda: self.api_key, key_name
        return (None, None) if key_for is None else key_for(host_of(base_url))

    @property
    def place(self) -> str:
        """Host and port, as people say them."""
        return self.base_url.netloc.decode("ascii", "replace").rpartition("@")[2]

    @property
    def shown_url(self) -> str:
        """The address without anything secret in it."""
        return self.redacted(str(self.base_url))

    def redacted(self, text: str) -> str:
        """Take out of a text what this server's address hides and its key, and what looks so."""
        hidden = (self.base_url.password, self.base_url.query.decode("ascii", "replace"))
        for secret in sorted(filter(_is_telling, hidden), key=len, reverse=True):
            text = text.replace(secret, "…")
        return redact(text, [self.api_key])

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, body: Any = None, from_root: bool = False
    ) -> AsyncIterator[Reply]:
        """Send a request, give its answer once the headers are there, close it on leaving.

        Raises `ProviderError` of kind "connection" or "timeout".
        """
        client = self._client()
        request = client.build_request(
            method,
            self._url(path, from_root=from_root),
            content=None if body is None else _encoded(body),
            headers=self._headers_for(body),
        )
        request.url = _Unlogged(request.url)
        try:
            response = await client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        try:
            yield Reply(response, self)
        finally:
            await response.aclose()

    async def get_json(
        self, path: str, *, within_s: float, body: Any = None, from_root: bool = False
    ) -> Any:
        """Fetch a small JSON document; None where the server has none or says something else.

        Raises `ProviderError` where nothing answers in `within_s` seconds.
        """
        method = "GET" if body is None else "POST"
        try:
            async with (
                asyncio.timeout(within_s),
                self.open(method, path, body=body, from_root=from_root) as reply,
            ):
                content = await reply.read()
        except TimeoutError as error:
            raise self.silent(within_s) from error
        if not httpx.codes.is_success(reply.status):
            return None
        return parsed(content)

    def failure(self, error: Exception) -> ProviderError:
        """Say what a network error means."""
        if isinstance(error, httpx.ReadTimeout):
            return self.silent(self.timeouts.first_token_s)
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            text = (
                f"{self.name} does not answer at {self.shown_url}{_why(error)}; start it or check"
                " the address, or choose another model with %agent model."
            )
            refused = self.is_loopback and isinstance(error, httpx.ConnectError)
            return ProviderError(text, retryable=not refused, kind="connection")
        text = f"The connection to {self.name} broke{_why(error)}; run it again."
        return ProviderError(self.redacted(text), retryable=True, kind="connection")

    def silent(self, seconds: float) -> ProviderError:
        """Say that nothing came in time; not sent again by itself: it would take as long."""
        return ProviderError(
            f"{self.name} said nothing for {math.ceil(seconds)} s; try again, or raise the"
            " time-out.",
            kind="timeout",
        )

    def endless(self, limit: int) -> ProviderError:
        """Say that an answer has no end in sight."""
        return ProviderError(
            f"{self.name} sent more than {limit // 1_000_000} MB for one answer and was cut off;"
            " check the server, or choose another model with %agent model."
        )

    async def aclose(self) -> None:
        """Close the running loop's client; those of ended loops have no sockets left to close."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        self._clients.clear()
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        """Give the running loop's client: sockets belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for ended in [known for known in self._clients if known.is_closed()]:
                del self._clients[ended]
            client = self._clients[loop] = self._new_client()
        return client

    def _new_client(self) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                timeout=httpx.Timeout(
                    self.timeouts.first_token_s, connect=self.timeouts.connect_s, write=WRITE_S
                ),
                limits=httpx.Limits(max_keepalive_connections=0 if self.is_loopback else 10),
                trust_env=not self.is_loopback,
                follow_redirects=False,
                verify=self.base_url.scheme == "https",  # else certificates are loaded for nothing
                transport=self._transport,
            )
        except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
            raise ProviderError(
                "The environment's settings of proxies (HTTPS_PROXY, NO_PROXY, …) or certificates"
                f" (SSL_CERT_FILE, …) can't be used: {redact(str(error))}; correct or unset them."
            ) from error

    def _headers_for(self, body: Any) -> dict[str, str]:
        headers = {"accept": "text/event-stream, application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        key = self.api_key
        if key and not (key.isascii() and key.isprintable()):
            raise ProviderError(
                f"The key for {self.name} has a character that no key has (a line end, a letter"
                " with an accent, an ellipsis); copy it again, whole.",
                kind="auth",
            )
        if key:
            is_bearer = self._key_header == "authorization"
            headers[self._key_header] = f"Bearer {key}" if is_bearer else key
        return {**headers, **self._headers}

    def _url(self, path: str, *, from_root: bool) -> httpx.URL:
        base = self.base_url.path.rstrip("/")
        if from_root:
            base = re.sub(r"/v\d+$", "", base)
        return self.base_url.copy_with(path=f"{base}/{path.lstrip('/')}")


def split_address(model: str) -> tuple[str, str | None]:
    """Take `name@http://host/v1` apart."""
    for scheme in ("@http://", "@https://"):
        name, found, rest = model.partition(scheme)
        if found:
            return name, scheme[1:] + rest
    return model, None


def host_of(base_url: str) -> str:
    """Give the host of an address; `InputValidation` where it is none."""
    return _checked(base_url).host


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        # Its words may be a part of a password; what raised it must not be shown either.
        why = "" if "@" in base_url or "?" in base_url else f": {error}"
        raise _no_address(base_url, why) from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise _no_address(base_url, "; write it like http://localhost:8080/v1.")
    return url


def _no_address(text: str, why: str) -> InputValidation:
    return InputValidation(f'"{redact(shown_address(text))}" is not an address{why or "."}')


def _encoded(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def _is_telling(secret: str) -> bool:
    return len(secret) >= _SHORTEST_SECRET


def _why(error: Exception) -> str:
    text = str(error).strip()
    return f" ({text})" if text else ""


def _retry_after(headers: httpx.Headers) -> float | None:
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return float(text) * unit_s
        if text and unit_s == 1.0:
            return _seconds_until(text)
    return None


def _seconds_until(date: str) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
