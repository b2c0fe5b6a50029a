"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.text import clean_text
from agent_magics.providers.anthropic.adjustments import Adjustment, adjustment_for, most_output
from agent_magics.providers.anthropic.payload import DEFAULT_MAX_TOKENS, payload_of
from agent_magics.providers.anthropic.stream import MessageAssembler
from agent_magics.providers.http.addresses import host_of
from agent_magics.providers.http.clients import Timeouts, Transport
from agent_magics.providers.http.connection import Connection
from agent_magics.providers.http.endpoint import Endpoint, Key, KeyFor
from agent_magics.providers.http.json_values import JSONObject, is_token_count, objects_in
from agent_magics.providers.http.provider import LISTING_S, HTTPProvider
from agent_magics.providers.http.retries import RetryPolicy
from agent_magics.providers.presets import Preset, Quirks, preset
from agent_magics.providers.prices import listed_window

ANTHROPIC = preset("anthropic")
API_VERSION = "2023-06-01"
LEAST_WINDOW = 200_000  # no model of theirs that still answers has less
MOST_OUTPUT_BY_DEFAULT = 16_000  # fits into what compaction keeps free (16,384)
_NONE: frozenset[Adjustment] = frozenset()


class Anthropic(HTTPProvider):
    """Anthropic, or a server that speaks the same, reached by `POST {base_url}/messages`.

    A model that refuses a temperature, a way of thinking or a number of output tokens is asked
    once more without, and the refusal is remembered.
    """

    _assembler = MessageAssembler

    def __init__(
        self,
        *,
        base_url: str = ANTHROPIC.base_url,
        api_key: Key = None,
        key_name: str | None = ANTHROPIC.key_name,
        key_for: KeyFor | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        transport: Transport | None = None,
    ) -> None:
        endpoint = Endpoint(
            ANTHROPIC.provider,
            base_url,
            api_key=api_key,
            key_header="x-api-key",
            headers={"anthropic-version": API_VERSION, **(headers or {})},
            timeouts=timeouts,
            transport=transport,
        )
        super().__init__(endpoint, key_name=key_name, key_for=key_for, retry=retry)
        self._transport = transport
        self._made: dict[str, frozenset[Adjustment]] = {}
        self._max_tokens: dict[str, int] = {}

    @classmethod
    def from_preset(
        cls, known: Preset, connection: Connection, *, quirks: Quirks | None = None
    ) -> Self:
        """Reach Anthropic, or what the connection names in its place (`ANTHROPIC_BASE_URL`).

        Anthropic's own tools write that address without its `/v1`; both ways are read. There are
        no quirks to know.
        """
        del quirks
        return cls(
            base_url=_with_version(connection.base_url or known.base_url),
            api_key=connection.api_key,
            key_name=connection.key_name or known.key_name,
            key_for=connection.key_for,
            timeouts=connection.timeouts,
            transport=connection.transport,
        )

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
            for entry in objects_in(entries)
            if isinstance(entry.get("id"), str)
        ]

    async def described(self, name: str) -> ModelInfo:
        """Ask the server about a model; what it doesn't say is looked up."""
        document = None
        with suppress(ProviderError):
            self._check_key()
            document = await self.endpoint.get_json(f"models/{name}", within_s=LISTING_S)
        return self._model(name, document if isinstance(document, dict) else {})

    def _path(self, request: ChatRequest) -> str:
        del request  # all models have one address
        return "messages"

    def _body(self, request: ChatRequest, known_as: str) -> JSONObject:
        return payload_of(
            request,
            self._made.get(request.model, _NONE),
            max_tokens=self._max_tokens.get(request.model, DEFAULT_MAX_TOKENS),
            provider=self.provider_id,
            known_as=known_as,
        )

    def _adjust(self, request: ChatRequest, error: ProviderError, known_as: str) -> bool:
        del known_as
        most, name = most_output(error), request.model
        # What somebody asked for isn't made less in silence.
        if most is not None:
            was = self._max_tokens.get(name, DEFAULT_MAX_TOKENS)
            self._max_tokens[name] = most
            return request.params.max_tokens is None and most < was
        made = self._made.get(name, _NONE)
        adjustment = adjustment_for(error, made)
        if adjustment is None:
            return False
        self._made[name] = made | {adjustment}
        return True

    def _missing_key(self) -> str | None:
        """Say what Anthropic itself lacks; servers elsewhere may need no key."""
        if not self._is_own or self.endpoint.api_key:
            return None
        if self.endpoint.base_url.scheme != "https":
            return (
                f"{self.provider_id} would be asked in the open at {self.endpoint.shown_url}, where"
                " its key is not sent; write that address with https."
            )
        where = f"set {self._key_name}" if self._key_name else "give it one"
        return f"{self.provider_id} needs a key: {where}."

    @property
    def _is_own(self) -> bool:
        return self.endpoint.host == host_of(ANTHROPIC.base_url)

    def _model(self, name: str, told: JSONObject) -> ModelInfo:
        """Return a model's facts; a server elsewhere may have models that nobody knows."""
        listed = listed_window(self.provider_id, name)
        is_known = self._is_own or listed is not None
        window = told.get("max_input_tokens")
        if not is_token_count(window):
            window = listed or (LEAST_WINDOW if is_known else None)
        most = told.get("max_tokens")
        # The answer's reservation counts against the window: half of it is the prompt's.
        if is_token_count(most):
            half = max(1, (window or LEAST_WINDOW) // 2)
            self._max_tokens[name] = min(most, MOST_OUTPUT_BY_DEFAULT, half)
        return ModelInfo(
            name=name,
            provider=self.provider_id,
            context_window=window,
            has_vision=True if is_known else None,
        )

    def _at(self, base_url: str, key: Key, key_name: str | None) -> Anthropic:
        return Anthropic(
            base_url=_with_version(base_url),
            api_key=key,
            key_name=key_name,
            timeouts=self.endpoint.timeouts,
            retry=self._retry,
            transport=self._transport,
        )


def _with_version(url: str) -> str:
    """Put `/v1` at the end of an address's path, before its query, where it isn't there."""
    place, mark, query = url.partition("?")
    place = place.rstrip("/")
    return f"{place if place.endswith('/v1') else f'{place}/v1'}{mark}{query}"
