"""Every server that speaks OpenAI's Chat Completions, in one adapter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self
from urllib.parse import quote

from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Assistant, ToolResult, User, text_of
from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.clients import Timeouts, Transport
from agent_magics.providers.http.connection import Connection
from agent_magics.providers.http.endpoint import Endpoint, Key, KeyFor
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.http.provider import LISTING_S, HTTPProvider
from agent_magics.providers.http.retries import RetryPolicy
from agent_magics.providers.openai_chat.adjustments import Adjustment, adjustment_for
from agent_magics.providers.openai_chat.model_info import listed_models
from agent_magics.providers.openai_chat.payload import NO_QUIRKS, payload_of
from agent_magics.providers.openai_chat.stream import CompletionAssembler
from agent_magics.providers.presets import Preset, Quirks

LARGER = "Give it a larger context window."
NOWHERE = "https://nowhere.invalid/v1"
_FEW_WORDS = 500
_CUT_RATIO = 0.8
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]")
_NONE: frozenset[Adjustment] = frozenset()


class OpenAICompatible(HTTPProvider):
    """A server reached by `POST {base_url}/chat/completions`.

    `needs_key`: nothing is asked without one. `quirks` is what is known of the server; a request
    that it refuses for another one is sent once more without, and the refusal is remembered.
    `has_list`: it lists models that can be asked. `has_deployments`: the model's name stands in the
    address, as Azure's does. `larger` says how to give its models a larger window.
    """

    _assembler = CompletionAssembler
    _larger_hint: ClassVar[str] = LARGER

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
        retry: RetryPolicy | None = None,
        transport: Transport | None = None,
        quirks: Quirks = NO_QUIRKS,
        has_list: bool = True,
        has_deployments: bool = False,
        larger: str | None = None,
    ) -> None:
        endpoint = Endpoint(
            provider_id,
            base_url,
            api_key=api_key,
            key_header=key_header,
            headers=headers,
            timeouts=timeouts,
            transport=transport,
        )
        super().__init__(endpoint, key_name=key_name, key_for=key_for, retry=retry)
        self._transport = transport
        self._quirks = quirks
        self._needs_key = needs_key
        self._has_list = has_list
        self._has_deployments = has_deployments
        self._larger = larger or self._larger_hint
        self._made: dict[str, frozenset[Adjustment]] = {}
        self._listing: list[ModelInfo] = []

    @classmethod
    def from_preset(
        cls, known: Preset, connection: Connection, *, quirks: Quirks | None = None
    ) -> Self:
        """Reach a provider where its row says, or where the connection says that it is.

        Another host than its own may need no key.
        """
        place = connection.base_url or known.base_url
        api_key, key_name = connection.api_key, connection.key_name or known.key_name
        is_own = not known.base_url or known.is_own(place)
        if not place:  # asking it says which variables are missing
            place, api_key, key_name = NOWHERE, None, f"{known.urls[0]} and {key_name}"
        return cls(
            known.provider,
            base_url=place,
            api_key=api_key,
            key_name=key_name,
            key_header=known.key_header,
            key_for=connection.key_for,
            needs_key=known.needs_key and is_own,
            timeouts=connection.timeouts,
            transport=connection.transport,
            quirks=quirks or known.quirks or NO_QUIRKS,
            has_list=known.has_list,
            has_deployments="/openai/deployments" in place,
        )

    async def models(self) -> Sequence[ModelInfo]:
        """List the models that can chat; empty where the server doesn't answer."""
        try:
            return await self._listed()
        except ProviderError:
            return []

    async def described(self, name: str) -> ModelInfo:
        """Return what the server's list says of a model."""
        if not self._listing:
            self._listing = list(await self.models())
        known = next((info for info in self._listing if info.name == name), None)
        return known or ModelInfo(name=name, provider=self.provider_id)

    def _path(self, request: ChatRequest) -> str:
        deployment = f"{quote(request.model, safe='')}/" if self._has_deployments else ""
        return f"{deployment}chat/completions"

    def _body(self, request: ChatRequest, known_as: str) -> JSONObject:
        return payload_of(
            request,
            self._adjustments(request.model),
            quirks=self._quirks,
            author=(self.provider_id, known_as),
        )

    def _adjustments(self, model: str) -> frozenset[Adjustment]:
        return self._made.get("", _NONE) | self._made.get(model, _NONE)

    def _adjust(self, request: ChatRequest, error: ProviderError, known_as: str) -> bool:
        model = request.model
        body = self._body(request, known_as)
        adjustment = adjustment_for(error, self._adjustments(model), body)
        if adjustment is None:
            return False
        place = "" if adjustment == "no_stream_options" else model  # the server's, not a model's
        self._made[place] = self._made.get(place, _NONE) | {adjustment}
        return True

    def _missing_key(self) -> str | None:
        if not self._needs_key or self.endpoint.api_key:
            return None
        return f"{self.provider_id} needs a key: set {self._key_name or 'its variable'}."

    def _warning(self, request: ChatRequest, usage: TokenUsage | None) -> str | None:
        """Return that the server counted far less than was sent: it cut a long prompt silently.

        Ollama does, where a prompt is longer than the window that the model was loaded with.
        """
        if usage is None or usage.input_tokens is None:
            return None
        sent = _fewest_tokens(_texts(request))
        counted = usage.input_tokens
        if sent <= _FEW_WORDS or not 0 < counted < sent * _CUT_RATIO:
            return None
        return (
            f"{self.provider_id} read {counted:,} tokens of a request of at least {sent:,}: it cut"
            f" the beginning away without a word. {self._larger}"
        )

    async def _listed(self) -> list[ModelInfo]:
        self._check_key()
        if not self._has_list:
            return []
        document = await self.endpoint.get_json("models", within_s=LISTING_S)
        return listed_models(document, self.provider_id)

    def _at(self, base_url: str, key: Key, key_name: str | None) -> OpenAICompatible:
        return OpenAICompatible(
            self.provider_id,
            base_url=base_url,
            api_key=key,
            key_name=key_name,
            timeouts=self.endpoint.timeouts,
            retry=self._retry,
            transport=self._transport,
            quirks=self._quirks,
        )


def _texts(request: ChatRequest) -> Iterator[str]:
    for message in request.messages:
        match message:
            case User(content=content) | Assistant(content=content):
                yield text_of(content)
            case ToolResult(content=text):
                yield text
            case _:
                yield message.text


def _fewest_tokens(texts: Iterator[str]) -> int:
    """Count as many tokens as no tokenizer goes under.

    The words between spaces; of scripts that use none, a token for four characters.
    """
    return sum(len(text.split()) + len(_SPACELESS.findall(text)) // 4 for text in texts)
