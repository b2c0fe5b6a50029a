"""httpx clients: one a loop, none of which logs an address's secrets."""

from __future__ import annotations

import asyncio

import httpx

from agent_magics.core.errors import ProviderError
from agent_magics.core.redact import redact, shown_address
from agent_magics.core.values import Value

Transport = httpx.AsyncBaseTransport
WRITE_S = 60.0
_KEPT_CONNECTIONS = 10


class Timeouts(Value):
    """How long to wait, in seconds.

    The last two are the longest silence: any byte, a comment line too, proves life
    (docs/decisions.md#58).
    """

    connect_s: float = 10.0
    first_token_s: float = 120.0
    between_tokens_s: float = 60.0


class Clients:
    """The httpx clients of one server, each made at its loop's first request.

    `transport` takes the place of the network, for tests.
    """

    def __init__(
        self,
        *,
        is_loopback: bool,
        is_encrypted: bool,
        timeouts: Timeouts,
        transport: Transport | None = None,
    ) -> None:
        self._is_loopback = is_loopback
        self._is_encrypted = is_encrypted
        self._timeouts = timeouts
        self._transport = transport and _PlainAddressTransport(transport)
        self._by_loop: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def current(self) -> httpx.AsyncClient:
        """Return the running loop's client: sockets belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            for ended in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[ended]
            client = self._by_loop[loop] = self._new()
        return client

    async def aclose(self) -> None:
        """Close the running loop's client; those of ended loops have no sockets left to close."""
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        self._by_loop.clear()
        if client is not None:
            await client.aclose()

    def _new(self) -> httpx.AsyncClient:
        timeouts = self._timeouts
        # Some servers on this machine close a connection after a stream and don't say so: a kept
        # one would fail at the next request. And a proxy of the environment can't reach them, or
        # would send what stays on this machine elsewhere (docs/decisions.md#63).
        try:
            return httpx.AsyncClient(
                timeout=httpx.Timeout(
                    timeouts.first_token_s, connect=timeouts.connect_s, write=WRITE_S
                ),
                limits=httpx.Limits(
                    max_keepalive_connections=0 if self._is_loopback else _KEPT_CONNECTIONS
                ),
                trust_env=not self._is_loopback,
                follow_redirects=False,  # a key goes to no host that it wasn't given for
                verify=self._is_encrypted,  # else certificates are loaded for nothing
                transport=self._transport,
            )
        except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
            raise ProviderError(
                "The environment's settings of proxies (HTTPS_PROXY, NO_PROXY, …) or certificates"
                f" (SSL_CERT_FILE, …) can't be used: {redact(str(error))}; correct or unset them."
            ) from error


class UnloggedURL(httpx.URL):
    """An address that is requested whole, and written without what it may hide.

    httpx logs the address of each request, at a level that notebooks do turn on, and puts it into
    its errors. Both write it by these two; what is sent is made of its parts.
    """

    def __str__(self) -> str:
        return shown_address(super().__str__())

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"


class _PlainAddressTransport(httpx.AsyncBaseTransport):
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
