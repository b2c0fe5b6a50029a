"""Server-sent events, read from bytes that are cut anywhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing

import httpx
from httpx_sse import EventSource

from agent_magics.core.values import Value


class ServerEvent(Value):
    """One server-sent event."""

    name: str
    data: str


async def server_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerEvent, None]:
    """Parse server-sent events from bytes that are cut anywhere.

    An event that the end of the stream leaves without its blank line is yielded too: what it
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
