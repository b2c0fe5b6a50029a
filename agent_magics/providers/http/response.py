"""One response while it comes: its head, what kind of body it has, and the body in one of its ways.

The longest silence is watched here and not by httpx, since it changes after the first token.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from agent_magics.core.errors import ProviderError
from agent_magics.core.redact import shown_address
from agent_magics.providers.http.connection_errors import ConnectionErrors
from agent_magics.providers.http.server_sent_events import ServerEvent, server_events

MAX_BODY_BYTES = 32_000_000
MAX_STREAM_BYTES = 128_000_000  # 300,000 tokens, each in a chunk of its own, and more
_DRAIN_S = 0.3
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BodyKind = Literal["events", "json", "page", "empty"]


class StreamedResponse:
    """The response to one request; read its body once, in one of its ways.

    `silence_s` is how long the next bytes may take: set it lower after the first token.
    `is_kept`: the connection is used again once the body is read.
    """

    def __init__(
        self,
        response: httpx.Response,
        *,
        silence_s: float,
        is_kept: bool,
        errors: ConnectionErrors,
    ) -> None:
        self.status = response.status_code
        self.silence_s = silence_s
        self._response = response
        self._is_kept = is_kept
        self._errors = errors
        self._chunks = response.aiter_bytes()
        self._head = b""
        self._read_bytes = 0

    @property
    def retry_after_s(self) -> float | None:
        """How long the server asks to wait, in seconds; None where it doesn't say."""
        return _retry_after_s(self._response.headers)

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
        """Stream the body as server-sent events."""
        async with aclosing(self._all()) as chunks, aclosing(server_events(chunks)) as events:
            async for event in events:
                yield event

    async def drain(self) -> None:
        """Read what stands behind the last event, so that the connection is kept.

        httpx closes a connection whose body wasn't read to its end. What is left is little, mostly
        the end of the last chunk; a server that takes its time for it isn't waited for.
        """
        if not self._is_kept:
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
            # Any byte proves life, a comment line too: slow servers send them while they think.
            async with asyncio.timeout(self.silence_s):
                chunk = await anext(self._chunks, None)
        except TimeoutError as error:
            raise self._errors.silent(self.silence_s) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise self._errors.of(error) from error
        # Of what was unpacked: a small body may hide a large one.
        self._read_bytes += len(chunk or b"")
        if self._read_bytes > MAX_STREAM_BYTES:
            raise self._errors.endless(MAX_STREAM_BYTES)
        return chunk


def _retry_after_s(headers: httpx.Headers) -> float | None:
    """Read `retry-after-ms` (OpenAI's, Azure's) before `retry-after`, in seconds or as a date."""
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
