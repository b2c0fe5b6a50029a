"""One MCP server while it runs: a task of its own holds the SDK's connection from start to end.

The SDK's context managers are anyio cancel scopes, which must be left by the task that entered
them; turns only use the open client. All of it belongs to one loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from agent_magics.core.hosts import is_loopback
from agent_magics.core.messages import ToolOutput
from agent_magics.core.redact import redact
from agent_magics.tools.mcp_config import ServerConfig

if TYPE_CHECKING:  # optional: the extra "mcp"
    import mcp_types
    from mcp import Client
    from mcp.client._transport import Transport, TransportStreams

START_S = 60.0
LIST_S = 5.0
CLOSE_S = 1.8  # the guard ends a program within 1.4 s, and a kernel has 2
HTTP_CONNECT_S = 5.0
HTTP_READ_S = 300.0
MAX_TOOL_PAGES = 20
ENDED = "it has ended, and starts again with the next question"
_GUARD = Path(__file__).with_name("mcp_guard.py")

ServerStatus = Literal["starting", "ready", "ended", "failed"]


class McpServer:
    """A connection to one server, made by `start`.

    `trouble`: why it failed, a sentence. `patience_s`: how long after its start turns wait for it;
    it may take `start_s`.
    """

    def __init__(
        self, config: ServerConfig, *, patience_s: float, start_s: float = START_S
    ) -> None:
        self.config = config
        self.status: ServerStatus = "starting"
        self.trouble = ""
        self.listed: tuple[mcp_types.Tool, ...] = ()
        self._settled = asyncio.Event()
        self._waits_until_s = asyncio.get_running_loop().time() + patience_s
        self._start_s = start_s
        self._client: Client | None = None
        self._is_stale = False
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it in a task of its own, outside the cell that asked first."""
        # Outside that cell's context, or what the server prints for the rest of its life would go
        # to the cell that happened to start it.
        self._task = asyncio.get_running_loop().create_task(
            self._serve(), name=f"mcp {self.config.name}", context=contextvars.Context()
        )

    async def waited_for(self) -> None:
        """Wait until it is ready or has failed, as long as turns wait for it."""
        with suppress(TimeoutError):
            # One moment for all turns: a server that hangs costs its patience once, not once a
            # turn.
            async with asyncio.timeout_at(self._waits_until_s):
                await self._settled.wait()

    async def refresh(self) -> None:
        """Take in what changed: a new list of tools, or that it no longer answers."""
        if self.status != "ready" or not self._is_stale or self._client is None:
            return
        try:
            async with asyncio.timeout(LIST_S):
                self.listed = await _all_tools(self._client)
            self._is_stale = False
        except Exception:  # noqa: BLE001 - the SDK's errors are many; it is connected anew
            self._end()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Call a tool; what goes wrong on the way is an error result that says so."""
        from mcp import MCPError  # noqa: PLC0415 - optional

        if self._client is None:
            return self._failed(ENDED)
        try:
            result = await self._client.call_tool(name, arguments)
        except MCPError as error:
            self._is_stale = True  # perhaps it is gone: it is asked again before the next turn
            return self._failed(str(error) if self._client else ENDED)
        return output_of(result)

    async def aclose(self) -> None:
        """End it and wait for that, `CLOSE_S` at most."""
        is_open = self.status == "ready"
        self._end()
        if self._task is None:
            return
        if not is_open:
            self._task.cancel()  # it waits for an answer, not for our word
        await asyncio.wait({self._task}, timeout=CLOSE_S)
        self._task.cancel()

    def _end(self) -> None:
        if self.status != "failed":
            self.status = "ended"
        self._client = None
        self._leaving.set()

    def _failed(self, why: str) -> ToolOutput:
        said = f'The MCP server "{self.config.name}" did not answer: {self._clean(why)}.'
        return ToolOutput(content=said, is_error=True)

    def _clean(self, text: str) -> str:
        return redact(" ".join(text.split()), self.config.secrets).rstrip(".")

    async def _serve(self) -> None:
        with tempfile.TemporaryFile() as errors:
            try:
                await self._connected(errors)
            except BaseException as error:  # whatever it is, nobody waits for this task
                if isinstance(error, asyncio.CancelledError):
                    raise
                self._note_failure(error, errors)
            finally:
                self._end()
                self._settled.set()

    async def _connected(self, errors: IO[bytes]) -> None:
        await asyncio.to_thread(import_module, "mcp")  # it takes a second to import
        logging.getLogger("mcp").addHandler(logging.NullHandler())  # else it prints tracebacks
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._start_s):
                client = await stack.enter_async_context(self._new_client(errors))
                self.listed = await _all_tools(client)
                await self._follow_changes(client, stack)
            if self._leaving.is_set():
                return
            self._client = client
            self.status = "ready"
            self._settled.set()
            # the SDK checks results with it, and its first import would hold the loop for long
            await asyncio.to_thread(import_module, "jsonschema")
            await self._leaving.wait()

    def _new_client(self, errors: IO[bytes]) -> Client:
        from mcp import Client  # noqa: PLC0415 - optional

        transport = _watched(self._transport(errors), self._end)
        return Client(transport, message_handler=self._note_message, cache=None)

    def _transport(self, errors: IO[bytes]) -> Transport:
        config = self.config
        if config.url is not None:
            return _http(config.url, config.headers)
        from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415 - optional

        command = _guarded(config.command)
        parameters = StdioServerParameters(
            command=command[0], args=list(command[1:]), env=config.env, cwd=config.cwd
        )
        return stdio_client(parameters, errlog=errors)  # type: ignore[arg-type]  # only its fileno is used

    async def _follow_changes(self, client: Client, stack: AsyncExitStack) -> None:
        """Ask to be told of changed tools; servers of the older protocol tell unasked."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415 - optional

        tools = client.server_capabilities.tools
        if (
            client.protocol_version in MODERN_PROTOCOL_VERSIONS
            and tools is not None
            and tools.list_changed
        ):
            await stack.enter_async_context(client.listen(tools_list_changed=True))

    async def _note_message(self, message: object) -> None:
        from mcp_types import ToolListChangedNotification  # noqa: PLC0415 - optional

        if isinstance(message, ToolListChangedNotification):
            self._is_stale = True

    def _note_failure(self, error: BaseException, errors: IO[bytes]) -> None:
        was_ready = self.status == "ready"
        self.status = "ended" if was_ready else "failed"
        if isinstance(error, TimeoutError):
            why = f"it did not answer within {self._start_s:.0f} s"
        else:
            why = _last_line(errors) or _leaf(error)
        if self.config.url is not None:
            why = f"{_place(self.config.url)}: {why}"
        self.trouble = f'The MCP server "{self.config.name}" did not start: {self._clean(why)}.'


def output_of(result: mcp_types.CallToolResult) -> ToolOutput:
    """Make an MCP result what the model reads: text as it is, everything else by its kind."""
    from mcp_types import (  # noqa: PLC0415 - optional
        EmbeddedResource,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )

    parts: list[str] = []
    for block in result.content:
        match block:
            case TextContent(text=text):
                parts.append(text)
            case EmbeddedResource(resource=TextResourceContents(text=text)):
                parts.append(text)
            case EmbeddedResource(resource=resource):
                parts.append(f"[resource {resource.uri}]")
            case ResourceLink(uri=uri):
                parts.append(f"[link {uri}]")
            case _:
                parts.append(f"[{block.type}]")
    structured = result.structured_content
    metadata: dict[str, Any] = {}
    if structured is not None and parts:
        metadata["structured"] = structured
    elif structured is not None:
        parts.append(json.dumps(structured, ensure_ascii=False))
    return ToolOutput(content="\n".join(parts), is_error=bool(result.is_error), metadata=metadata)


@asynccontextmanager
async def _watched(
    transport: Transport, on_end: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    """Pass a transport on, and tell when its server says no more."""
    async with transport as (read, write):
        # The SDK tells nobody that a server went away; the next call would wait for its whole
        # timeout.
        yield _Watched(read, on_end), write


class _Watched:
    """A read stream that tells of its end."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *ending: object) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*ending)
        return ended


@asynccontextmanager
async def _http(url: str, headers: dict[str, str]) -> AsyncIterator[TransportStreams]:
    """Speak streamable HTTP; loopback servers are reached without a proxy.

    Why: docs/decisions.md#63.
    """
    import httpx2  # noqa: PLC0415 - the SDK's own client
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - optional

    timeout = httpx2.Timeout(HTTP_CONNECT_S, read=HTTP_READ_S)
    uses_proxies = not is_loopback(urlsplit(url).hostname or "")
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=uses_proxies) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


async def _all_tools(client: Client) -> tuple[mcp_types.Tool, ...]:
    if client.server_capabilities.tools is None:
        return ()
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    # A broken server gives the same cursor for ever.
    for _ in range(MAX_TOOL_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


def _guarded(command: tuple[str, ...]) -> tuple[str, ...]:
    """Put the guard before a command, where there is one (not on Windows)."""
    if sys.platform == "win32" or not sys.executable:
        return command
    # The interrupt button signals the whole process group, and a killed kernel says nothing: the
    # guard keeps the program from both, and ends it when we are gone.
    return (sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command)


def _place(url: str) -> str:
    parts = urlsplit(url)
    return parts.hostname or url if parts.port is None else f"{parts.hostname}:{parts.port}"


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _leaf(error: BaseException) -> str:
    """Find what went wrong inside the SDK's groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
