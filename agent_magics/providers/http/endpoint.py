"""One server as it is reached: its address, its key, and requests to it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpx

from agent_magics.core.errors import ProviderError
from agent_magics.core.hosts import is_loopback
from agent_magics.core.redact import redact
from agent_magics.providers.http.addresses import checked_url, host_of
from agent_magics.providers.http.clients import Clients, Timeouts, Transport, UnloggedURL
from agent_magics.providers.http.connection_errors import ConnectionErrors
from agent_magics.providers.http.json_values import JSONObject, parse_json
from agent_magics.providers.http.response import StreamedResponse

_SHORTEST_SECRET = 4  # shorter ones would blank out ordinary words
Key: TypeAlias = str | Callable[[], str | None] | None
KeyFor: TypeAlias = Callable[[str], tuple[Key, str | None]]  # a host's key, and where that is from


class Endpoint:
    """One server: its address, its key, and clients that never send the key elsewhere.

    `name` is what messages call it; `api_key` may be a function that finds the key when it is
    needed, `key_header` the header that carries it. Loopback servers are reached without proxies
    and without kept connections. `transport` takes the place of the network, for tests. Raises
    `InputValidation` on a bad address.
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
        self.base_url = checked_url(base_url)
        self.timeouts = timeouts or Timeouts()
        self._key = api_key
        self._key_header = key_header
        self._headers = dict(headers or {})
        self._clients = Clients(
            is_loopback=self.is_loopback,
            is_encrypted=self.base_url.scheme == "https",
            timeouts=self.timeouts,
            transport=transport,
        )
        self._errors = ConnectionErrors(
            name,
            self.base_url,
            redacted=self.redacted,
            silence_s=self.timeouts.first_token_s,
        )

    @property
    def api_key(self) -> str | None:
        """The key, looked up at its first use."""
        # Not found is asked again: a key may be set in a cell after the first request failed.
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

    @property
    def place(self) -> str:
        """Host and port, as people say them."""
        return self.base_url.netloc.decode("ascii", "replace").rpartition("@")[2]

    @property
    def shown_url(self) -> str:
        """The address without anything secret in it."""
        return self.redacted(str(self.base_url))

    def shares_key_with(self, base_url: str) -> bool:
        """Whether the key belongs to an address too: the same host, reached as safely."""
        other = checked_url(base_url)
        is_weaker = self.base_url.scheme == "https" != other.scheme
        return other.host == self.host and not is_weaker

    def key_at(
        self, base_url: str, key_for: KeyFor | None, key_name: str | None
    ) -> tuple[Key, str | None]:
        """Return the key for an address and where it is from: this one's, or `key_for`'s.

        `key_name` is where this one's is from.
        """
        if self.shares_key_with(base_url):
            return lambda: self.api_key, key_name
        return (None, None) if key_for is None else key_for(host_of(base_url))

    def redacted(self, text: str) -> str:
        """Take out of a text what this server's address hides and its key, and what looks so.

        Servers and proxies quote what they were sent, and their words are shown and logged.
        """
        hidden = (self.base_url.password, self.base_url.query.decode("ascii", "replace"))
        # The longer first: one may be a part of the other.
        for secret in sorted(filter(_is_telling, hidden), key=len, reverse=True):
            text = text.replace(secret, "…")
        return redact(text, [self.api_key])

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, body: JSONObject | None = None, from_root: bool = False
    ) -> AsyncIterator[StreamedResponse]:
        """Send a request, yield its response once the headers are there, close it on leaving.

        `from_root`: `path` begins where the address's version (`/v1`) stands. Raises
        `ProviderError` of kind "connection" or "timeout".
        """
        client = self._clients.current()
        request = client.build_request(
            method,
            self._url(path, from_root=from_root),
            content=None if body is None else _encoded(body),
            headers=self._headers_for(body),
        )
        request.url = UnloggedURL(request.url)
        try:
            response = await client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise self._errors.of(error) from error
        try:
            yield StreamedResponse(
                response,
                silence_s=self.timeouts.first_token_s,
                is_kept=not self.is_loopback,
                errors=self._errors,
            )
        finally:
            await response.aclose()

    async def get_json(
        self,
        path: str,
        *,
        within_s: float,
        body: JSONObject | None = None,
        from_root: bool = False,
    ) -> object:
        """Fetch a small JSON document; None where the server has none or says something else.

        Raises `ProviderError` where nothing answers in `within_s` seconds.
        """
        method = "GET" if body is None else "POST"
        try:
            async with (
                asyncio.timeout(within_s),
                self.open(method, path, body=body, from_root=from_root) as response,
            ):
                content = await response.read()
        except TimeoutError as error:
            raise self._errors.silent(within_s) from error
        return parse_json(content) if httpx.codes.is_success(response.status) else None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    def _headers_for(self, body: JSONObject | None) -> dict[str, str]:
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
        # Servers of one's own tell facts of their models beside the API that has a version.
        if from_root:
            base = re.sub(r"/v\d+$", "", base)
        return self.base_url.copy_with(path=f"{base}/{path.lstrip('/')}")


def _encoded(body: JSONObject) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair can't be sent, and isn't worth the request.
    return text.encode("utf-8", "replace")


def _is_telling(secret: str) -> bool:
    return len(secret) >= _SHORTEST_SECRET
