"""One response read into an answer, whether it is the stream that was asked for or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from agent_magics.core.chat import ChatEvent
from agent_magics.providers.http.assembly import StreamAssembler
from agent_magics.providers.http.json_values import parse_json
from agent_magics.providers.http.response import StreamedResponse
from agent_magics.providers.http.response_errors import ResponseErrors
from agent_magics.providers.http.server_sent_events import ServerEvent


async def read_answer(
    response: StreamedResponse,
    assembler: StreamAssembler,
    errors: ResponseErrors,
    *,
    between_tokens_s: float,
) -> AsyncGenerator[ChatEvent, None]:
    """Stream the events of a successful response; the assembler's end is left to the caller.

    Some servers answer a request for a stream with one JSON document, and proxies with a page.
    Raises `ProviderError` where it is an error after all.
    """
    match await response.kind():
        case "events":
            pieces = _streamed(response, assembler, errors, between_tokens_s)
        case "json":
            pieces = _whole(response, assembler, errors)
        case "page" | "empty":
            raise await errors.of(response)
    async with aclosing(pieces) as events:
        async for event in events:
            yield event


async def _streamed(
    response: StreamedResponse,
    assembler: StreamAssembler,
    errors: ResponseErrors,
    between_tokens_s: float,
) -> AsyncGenerator[ChatEvent, None]:
    async with aclosing(response.events()) as events:
        async for event in events:
            for piece in _fed(event, assembler, errors):
                yield piece
            if assembler.is_finished:  # not at the end of the body: some servers never close it
                break
            if assembler.has_begun:
                response.silence_s = between_tokens_s
        await response.drain()


def _fed(
    event: ServerEvent, assembler: StreamAssembler, errors: ResponseErrors
) -> Iterator[ChatEvent]:
    """Feed one event to the answer; raise the error that it is instead."""
    if event.data.strip() == assembler.end_mark:
        assembler.finish()
        return
    said = parse_json(event.data)
    if event.name == "error" or assembler.is_error(said):
        raise errors.of_body(200, event.data)
    if isinstance(said, dict):
        yield from assembler.feed(said)
    else:
        assembler.warn(f"{errors.server} sent something that is no answer; it was left out.")


async def _whole(
    response: StreamedResponse, assembler: StreamAssembler, errors: ResponseErrors
) -> AsyncGenerator[ChatEvent, None]:
    body = await response.read()
    document = parse_json(body)
    if not isinstance(document, dict) or not isinstance(document.get(assembler.whole_field), list):
        raise errors.of_body(response.status, body)
    for event in assembler.feed_whole(document):
        yield event
