"""Anthropic's messages over HTTP."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.text import clean_text
from agent_magics.providers.anthropic.payload import (
    DEFAULT_MAX_TOKENS,
    Concession,
    concession_for,
    most_output,
    payload_of,
)
from agent_magics.providers.anthropic.stream import AnthropicAnswer
from agent_magics.providers.http.attempts import FIRST_NOT_OK, Refusals, fed, with_retries
from agent_magics.providers.http.endpoint import (
    Endpoint,
    Key,
    KeyFor,
    Reply,
    Timeouts,
    Transport,
    host_of,
    parsed,
)
from agent_magics.providers.http.provider import Addressed
from agent_magics.providers.http.retries import Retry
from agent_magics.providers.openai_chat.model_info import is_count
from agent_magics.providers.prices import listed_window

ANTHROPIC = "anthropic"
ANTHROPIC_URL = "https://api.anthropic.com/v1"
ANTHROPIC_KEY = "ANTHROPIC_API_KEY"
API_VERSION = "2023-06-01"
LEAST_WINDOW = 200_000  # no model of theirs that still answers has less
MOST_OUTPUT_BY_DEFAULT = 16_000  # fits into what compaction keeps free (16,384)
LISTING_S = 5.0
_NONE: frozenset[Concession] = frozenset()


class Anthropic(Addressed):
    """Anthropic, or a server that speaks the same, reached by `POST {base_url}/messages`.

    A model that refuses a temperature, a way of thinking or a number of output tokens is asked
    once more without, and the refusal is remembered.
    """

    def __init__(
        self,
        *,
        base_url: str = ANTHROPIC_URL,
        api_key: Key = None,
        key_name: str | None = ANTHROPIC_KEY,
        key_for: KeyFor | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(key_name=key_name, key_for=key_for)
        self._retry = retry or Retry()
        self._transport = transport
        self.endpoint = Endpoint(
            ANTHROPIC,
            base_url,
            api_key=api_key,
            key_header="x-api-key",
            headers={"anthropic-version": API_VERSION, **(headers or {})},
            timeouts=timeouts,
            transport=transport,
        )
        self._refusals = Refusals(self.endpoint, key_name)
        self._made: dict[str, frozenset[Concession]] = {}
        self._max_tokens: dict[str, int] = {}
        self._call_numbers = itertools.count(1)

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return ANTHROPIC

    async def models(self) -> Sequence[ModelInfo]:
        """List the models, newest first; empty where the server doesn't answer."""
        try:
            self._check_key()
            document = await self.endpoint.get_json("models", within_s=LISTING_S)
        except ProviderError:
            return []
        entries = document.get("data") if isinstance(document, dict) else None
        return [
            self._model(clean_text(entry["id"]), entry)
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        ]

    async def described(self, name: str) -> ModelInfo:
        """Ask the server about a model; what it doesn't tell is looked up."""
        document = None
        with suppress(ProviderError):
            self._check_key()
            document = await self.endpoint.get_json(f"models/{name}", within_s=LISTING_S)
        return self._model(name, document if isinstance(document, dict) else {})

    async def answers(
        self, request: ChatRequest, *, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer of this very server."""
        tries = with_retries(
            lambda: self._new_answer(known_as),
            lambda answer: self._attempt(request, answer, known_as),
            retry=self._retry,
            concede=lambda error: self._concede(request, error),
        )
        async with aclosing(tries) as events:
            async for event in events:
                yield event

    async def _attempt(
        self, request: ChatRequest, answer: AnthropicAnswer, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        self._check_key()
        body = payload_of(
            request,
            self._made.get(request.model, _NONE),
            max_tokens=self._max_tokens.get(request.model, DEFAULT_MAX_TOKENS),
            provider=ANTHROPIC,
            known_as=known_as,
        )
        async with self.endpoint.open("POST", "messages", body=body) as reply:
            if reply.status >= FIRST_NOT_OK:
                raise await self._refusals.of(reply)
            match await reply.kind():
                case "events":
                    pieces = self._streamed(reply, answer)
                case "json":
                    pieces = self._whole(reply, answer)
                case "page" | "empty":
                    raise await self._refusals.of(reply)
            async with aclosing(pieces) as events:
                async for event in events:
                    yield event
                for event in answer.end():
                    yield event

    async def _streamed(
        self, reply: Reply, answer: AnthropicAnswer
    ) -> AsyncGenerator[ChatEvent, None]:
        async with aclosing(reply.events()) as events:
            async for event in events:
                for piece in fed(event, answer, self._refusals, is_error=_is_error):
                    yield piece
                if answer.is_finished:
                    break
                if answer.has_begun:
                    reply.silence_s = self.endpoint.timeouts.between_tokens_s
            await reply.drain()

    async def _whole(
        self, reply: Reply, answer: AnthropicAnswer
    ) -> AsyncGenerator[ChatEvent, None]:
        body = await reply.read()
        document = parsed(body)
        if not isinstance(document, dict) or not isinstance(document.get("content"), list):
            raise self._refusals.error(reply.status, body)
        for event in answer.feed_whole(document):
            yield event

    def _new_answer(self, known_as: str) -> AnthropicAnswer:
        return AnthropicAnswer(
            provider=ANTHROPIC,
            model=known_as,
            new_id=lambda: f"call_{next(self._call_numbers)}",
        )

    def _concede(self, request: ChatRequest, error: ProviderError) -> bool:
        most, name = most_output(error), request.model
        if most is not None:
            was = self._max_tokens.get(name, DEFAULT_MAX_TOKENS)
            self._max_tokens[name] = most
            return request.params.max_tokens is None and most < was
        made = self._made.get(name, _NONE)
        concession = concession_for(error, made)
        if concession is None:
            return False
        self._made[name] = made | {concession}
        return True

    def _check_key(self) -> None:
        """Ask nothing of Anthropic itself without a key; servers elsewhere may need none."""
        if self._is_theirs and not self.endpoint.api_key:
            error = ProviderError(self._keyless, kind="auth")
            error.was_sent = False
            raise error

    @property
    def _keyless(self) -> str:
        if self.endpoint.base_url.scheme != "https":
            return (
                f"{ANTHROPIC} would be asked in the open at {self.endpoint.shown_url}, where its"
                " key is not sent; write that address with https."
            )
        where = f"set {self._key_name}" if self._key_name else "give it one"
        return f"{ANTHROPIC} needs a key: {where}."

    @property
    def _is_theirs(self) -> bool:
        return self.endpoint.host == host_of(ANTHROPIC_URL)

    def _model(self, name: str, told: dict[str, Any]) -> ModelInfo:
        """Make a model's facts; a server elsewhere may have models that nobody knows."""
        listed = listed_window(ANTHROPIC, name)
        is_known = self._is_theirs or listed is not None
        window = told.get("max_input_tokens")
        if not is_count(window):
            window = listed or (LEAST_WINDOW if is_known else None)
        most = told.get("max_tokens")
        if is_count(most):
            half = max(1, (window or LEAST_WINDOW) // 2)
            self._max_tokens[name] = min(most, MOST_OUTPUT_BY_DEFAULT, half)
        return ModelInfo(
            name=name,
            provider=ANTHROPIC,
            context_window=window,
            has_vision=True if is_known else None,
        )

    def _moved(self, base_url: str, key: Key, key_name: str | None) -> Anthropic:
        return Anthropic(
            base_url=_with_version(base_url),
            api_key=key,
            key_name=key_name,
            timeouts=self.endpoint.timeouts,
            retry=self._retry,
            transport=self._transport,
        )


def anthropic(
    api_key: Key = None,
    *,
    base_url: str | None = None,
    key_for: KeyFor | None = None,
    timeouts: Timeouts | None = None,
    transport: Transport | None = None,
) -> Anthropic:
    """Reach Anthropic, or what `base_url` names in its place (`ANTHROPIC_BASE_URL`).

    Anthropic's own tools write that address without its `/v1`; both ways are read.
    """
    return Anthropic(
        base_url=_with_version(base_url or ANTHROPIC_URL),
        api_key=api_key,
        key_for=key_for,
        timeouts=timeouts,
        transport=transport,
    )


def _with_version(url: str) -> str:
    """Put `/v1` at the end of an address's path, before its query, where it isn't there."""
    place, mark, query = url.partition("?")
    place = place.rstrip("/")
    return f"{place if place.endswith('/v1') else f'{place}/v1'}{mark}{query}"


def _is_error(said: Any) -> bool:
    return isinstance(said, dict) and said.get("type") == "error"
