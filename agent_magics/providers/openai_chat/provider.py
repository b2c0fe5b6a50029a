"""Every server that speaks OpenAI's chat completions, in one adapter."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Assistant, ToolResult, User, text_of
from agent_magics.providers.http.attempts import FIRST_NOT_OK, Refusals, fed, with_retries
from agent_magics.providers.http.endpoint import (
    Endpoint,
    Key,
    KeyFor,
    Reply,
    Timeouts,
    Transport,
    parsed,
)
from agent_magics.providers.http.provider import Addressed
from agent_magics.providers.http.retries import Retry
from agent_magics.providers.openai_chat.adjustments import Concession, concession_for
from agent_magics.providers.openai_chat.model_info import listed_models
from agent_magics.providers.openai_chat.payload import NO_QUIRKS, payload_of
from agent_magics.providers.openai_chat.stream import Answer, fewest_tokens
from agent_magics.providers.presets import Quirks

LARGER = "Give it a larger context window."
LISTING_S = 5.0
_FEW_WORDS = 500
_CUT_RATIO = 0.8


class OpenAICompatible(Addressed):
    """A server reached by `POST {base_url}/chat/completions`.

    `needs_key`: nothing is asked without one. `quirks` is what is known of the server; a request
    that it refuses for another one is sent once more without, and the refusal is remembered.
    `has_list`: it lists models that can be asked. `has_deployments`: the model's name stands in the
    address, as Azure's does. `larger` says how to give its models a larger window.
    """

    def __init__(
        self,
        provider_id: str,
        *,
        base_url: str,
        api_key: Key = None,
        key_name: str | None = None,
        key_header: str = "authorization",
        key_for: KeyFor | None = None,
        needs_key: bool = False,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        transport: Transport | None = None,
        quirks: Quirks = NO_QUIRKS,
        has_list: bool = True,
        has_deployments: bool = False,
        larger: str = LARGER,
    ) -> None:
        super().__init__(key_name=key_name, key_for=key_for)
        self._id = provider_id
        self._retry = retry or Retry()
        self._transport = transport
        self._quirks = quirks
        self._needs_key = needs_key
        self._has_list = has_list
        self._has_deployments = has_deployments
        self._larger = larger
        self.endpoint = Endpoint(
            provider_id,
            base_url,
            api_key=api_key,
            key_header=key_header,
            headers=headers,
            timeouts=timeouts,
            transport=transport,
        )
        self._refusals = Refusals(self.endpoint, key_name)
        self._made: dict[str, frozenset[Concession]] = {}
        self._listing: list[ModelInfo] = []
        self._call_numbers = itertools.count(1)

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self._id

    async def models(self) -> Sequence[ModelInfo]:
        """List the models that can chat; empty where the server doesn't answer."""
        try:
            return await self._listed()
        except ProviderError:
            return []

    async def described(self, name: str) -> ModelInfo:
        """Tell what the server's list says of a model."""
        if not self._listing:
            self._listing = list(await self.models())
        known = next((info for info in self._listing if info.name == name), None)
        return known or ModelInfo(name=name, provider=self._id)

    async def answers(
        self, request: ChatRequest, *, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer of this very server."""
        tries = with_retries(
            lambda: self._new_answer(known_as),
            lambda answer: self._attempt(request, answer, known_as),
            retry=self._retry,
            concede=lambda error: self._concede(request, error, known_as),
        )
        async with aclosing(tries) as events:
            async for event in events:
                yield event

    async def _attempt(
        self, request: ChatRequest, answer: Answer, known_as: str
    ) -> AsyncGenerator[ChatEvent, None]:
        self._check_key()
        path = f"{self._model_path(request.model)}chat/completions"
        body = self._body(request, known_as)
        async with self.endpoint.open("POST", path, body=body) as reply:
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
                self._warn_if_cut(request, answer)
                for event in answer.end():
                    yield event

    async def _streamed(self, reply: Reply, answer: Answer) -> AsyncGenerator[ChatEvent, None]:
        async with aclosing(reply.events()) as events:
            async for event in events:
                if event.data.strip() == "[DONE]":
                    answer.finish()
                    break
                for piece in fed(event, answer, self._refusals, is_error=_is_error):
                    yield piece
                if answer.has_begun:
                    reply.silence_s = self.endpoint.timeouts.between_tokens_s
            await reply.drain()

    async def _whole(self, reply: Reply, answer: Answer) -> AsyncGenerator[ChatEvent, None]:
        body = await reply.read()
        document = parsed(body)
        if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
            raise self._refusals.error(reply.status, body)
        for event in answer.feed_whole(document):
            yield event

    def _new_answer(self, known_as: str) -> Answer:
        return Answer(
            provider=self._id,
            model=known_as,
            new_id=lambda: f"call_{next(self._call_numbers)}",
        )

    def _body(self, request: ChatRequest, known_as: str) -> dict[str, Any]:
        return payload_of(
            request,
            self._concessions(request.model),
            quirks=self._quirks,
            author=(self._id, known_as),
        )

    def _model_path(self, model: str) -> str:
        return f"{quote(model, safe='')}/" if self._has_deployments else ""

    def _concessions(self, model: str) -> frozenset[Concession]:
        none: frozenset[Concession] = frozenset()
        return self._made.get("", none) | self._made.get(model, none)

    def _concede(self, request: ChatRequest, error: ProviderError, known_as: str) -> bool:
        model = request.model
        body = self._body(request, known_as)
        concession = concession_for(error, self._concessions(model), body)
        if concession is None:
            return False
        place = "" if concession == "no_stream_options" else model
        self._made[place] = self._made.get(place, frozenset()) | {concession}
        return True

    def _check_key(self) -> None:
        if self._needs_key and not self.endpoint.api_key:
            name = self._key_name or "its variable"
            error = ProviderError(f"{self._id} needs a key: set {name}.", kind="auth")
            error.was_sent = False
            raise error

    def _warn_if_cut(self, request: ChatRequest, answer: Answer) -> None:
        """Servers that cut a long prompt silently count what was left (providers.md, Ollama)."""
        if answer.usage is None or answer.usage.input_tokens is None:
            return
        sent = fewest_tokens(_texts(request))
        counted = answer.usage.input_tokens
        if sent > _FEW_WORDS and 0 < counted < sent * _CUT_RATIO:
            answer.warn(
                f"{self._id} read {counted:,} tokens of a request of at least {sent:,}: it cut the"
                f" beginning away without a word. {self._larger}"
            )

    async def _listed(self) -> list[ModelInfo]:
        self._check_key()
        if not self._has_list:
            return []
        document = await self.endpoint.get_json("models", within_s=LISTING_S)
        return listed_models(document, self._id)

    def _moved(self, base_url: str, key: Key, key_name: str | None) -> OpenAICompatible:
        return OpenAICompatible(
            self._id,
            base_url=base_url,
            api_key=key,
            key_name=key_name,
            timeouts=self.endpoint.timeouts,
            retry=self._retry,
            transport=self._transport,
            quirks=self._quirks,
        )


def _is_error(chunk: Any) -> bool:
    if isinstance(chunk, list):
        return True
    if not isinstance(chunk, dict):
        return False
    return bool(chunk.get("error")) or "error" in (chunk.get("type"), chunk.get("object"))


def _texts(request: ChatRequest) -> Iterator[str]:
    for message in request.messages:
        match message:
            case User(content=content) | Assistant(content=content):
                yield text_of(content)
            case ToolResult(content=text):
                yield text
            case _:
                yield message.text
