"""What every provider over HTTP does around one request: try again, and say what was refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

import msgspec

from agent_magics.core.chat import ChatEvent, Retrying
from agent_magics.core.errors import ProviderError, StreamInterrupted
from agent_magics.core.messages import TokenUsage
from agent_magics.providers.http.endpoint import (
    MAX_ERROR_BYTES,
    Endpoint,
    Reply,
    ServerEvent,
    parsed,
)
from agent_magics.providers.http.faults import error_of, read_fault
from agent_magics.providers.http.retries import Retry

FIRST_NOT_OK = 300
_FIRST_ERROR = 400
_SHOWN_PLACE = 300


class AnswerInTheMaking(Protocol):
    @property
    def has_begun(self) -> bool:
        """Tell whether a first token came, a piece of a call included."""
        ...

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted so far."""
        ...


class Fed(Protocol):
    def feed(self, said: dict[str, Any], /) -> Iterator[ChatEvent]: ...

    def warn(self, text: str) -> None: ...


A = TypeVar("A", bound=AnswerInTheMaking)


async def with_retries(
    new_answer: Callable[[], A],
    attempt: Callable[[A], AsyncGenerator[ChatEvent, None]],
    *,
    retry: Retry,
    concede: Callable[[ProviderError], bool],
) -> AsyncGenerator[ChatEvent, None]:
    """Stream one answer; before its first token a request that failed may be sent again (P5).

    `concede` takes out of the request what the server refused and tells whether it did; such a
    try is not counted.
    """
    number = 1
    while True:
        answer = new_answer()
        try:
            async with aclosing(attempt(answer)) as events:
                async for event in events:
                    yield event
        except ProviderError as error:
            if answer.has_begun:
                broken = _broken(error)
                broken.usage = answer.usage
                raise broken from error
            if concede(error):
                continue
            wait_s = retry.wait_s(number, error)
            if wait_s is None:
                error.usage = error.usage or answer.usage
                raise
            reason = error.message
        else:
            return
        yield Retrying(attempt=number, reason=reason, wait_s=wait_s, usage=answer.usage)
        await asyncio.sleep(wait_s)
        number += 1


class Refusals:
    """Makes errors of one server's answers; `key_name` is where its key came from."""

    def __init__(self, endpoint: Endpoint, key_name: str | None) -> None:
        self._endpoint = endpoint
        self._key_name = key_name

    @property
    def server(self) -> str:
        """What messages call the server."""
        return self._endpoint.name

    async def of(self, reply: Reply) -> ProviderError:
        """Say what an answer that is no stream means."""
        name = self._endpoint.name
        if FIRST_NOT_OK <= reply.status < _FIRST_ERROR:
            place = self._endpoint.redacted(reply.location)
            to = f" to {place[:_SHOWN_PLACE]}" if place else ""
            return ProviderError(
                f"{name} sends us on{to} ({reply.status}); use that base URL. The key is not"
                " sent to a place it was not meant for.",
                status=reply.status,
            )
        body = await reply.read(MAX_ERROR_BYTES)
        if reply.status < FIRST_NOT_OK and not body.strip():
            return StreamInterrupted(f"{name} answered with nothing; try again.")
        error = self.error(reply.status, body)
        error.retry_after_s = reply.retry_after_s
        return error

    def error(self, status: int, body: bytes | str | dict[str, Any] | list[Any]) -> ProviderError:
        """Judge an error body, or an error that came in a stream (status 200)."""
        fault = read_fault(status, body)
        return error_of(
            msgspec.structs.replace(fault, message=self._endpoint.redacted(fault.message)),
            provider=self._endpoint.name,
            key=self._endpoint.api_key,
            key_name=self._key_name,
        )


def fed(
    event: ServerEvent, answer: Fed, refusals: Refusals, *, is_error: Callable[[Any], bool]
) -> Iterator[ChatEvent]:
    """Feed one event of a stream to its answer; raise the error that it is instead."""
    said = parsed(event.data)
    if event.name == "error" or is_error(said):
        raise refusals.error(200, event.data)
    if isinstance(said, dict):
        yield from answer.feed(said)
    else:
        answer.warn(f"{refusals.server} sent something that is no answer; it was left out.")


def _broken(error: ProviderError) -> ProviderError:
    """A connection that ends in mid-answer is an interruption; what had come stays."""
    if error.kind in {"connection", "timeout"}:
        return StreamInterrupted(error.message)
    return error
