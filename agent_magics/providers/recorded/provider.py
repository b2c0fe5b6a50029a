"""A provider whose answers are recorded, and replayed without a server."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, Done, ModelInfo, Notice
from agent_magics.core.errors import InputValidation, ProviderError
from agent_magics.core.ports import Answerer, Provider
from agent_magics.core.streams import closing
from agent_magics.providers.recorded.cassette import PATTERN, Cassette
from agent_magics.providers.recorded.recorded_answer import RecordedAnswer, record_answer
from agent_magics.providers.recorded.request_keys import (
    keys_of,
    spec_of,
    specs_of,
    surroundings_digest,
)

_TOO_LONG = ("input_overflow", "output_reservation")
RecordingMode = Literal["record", "replay", "auto"]


class RecordedProvider:
    """Stands before another provider.

    "record": every request is sent, and its answer recorded in the place of the earlier one.
    "replay": nothing is sent; a request that isn't in the recording is a `ProviderError` that says
    so; one that is asked more often than then has the last answer. "auto": what is recorded is
    replayed, the rest is sent, recorded and said; an answer that had failed is asked for again,
    unless it was refused as too long: that it still is.
    With `strict`, a replay whose tool results, reference blocks or surroundings differ from the
    recorded ones is an error, else it is said. An answer that can't be written down is given all
    the same, with a warning.
    """

    def __init__(
        self, provider: Provider, cassette: Cassette, mode: RecordingMode, *, strict: bool = False
    ) -> None:
        self._provider = provider
        self._cassette = cassette
        self._mode = mode
        self._strict = strict

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`, as the other's."""
        return self._provider.provider_id

    async def models(self) -> Sequence[ModelInfo]:
        """List the models; from the recording where nothing may be asked."""
        if self._mode != "replay":
            return await self._provider.models()
        return [info for info in self._cassette.models if info.provider == self.provider_id]

    async def describe(self, model: str) -> ModelInfo:
        """Return what is known of a model; what was recorded needs no server."""
        names = specs_of(self.provider_id, model)
        known = next(filter(None, map(self._cassette.described, names)), None)
        if self._mode == "replay" or (self._mode == "auto" and known is not None):
            told = known or ModelInfo(name=model, provider=self.provider_id)
            return msgspec.structs.replace(told, name=model)
        info = await self._provider.describe(model)
        with suppress(InputValidation):  # the first answer says it
            self._cassette.describe(info)
        return info

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Stream an answer (see `core.ports.Provider.chat`)."""
        keys = keys_of(request, self.provider_id)
        place = self._cassette.claim(keys[0])
        recorded = self._found(keys, place)
        if recorded is not None:
            answer = self.replayed(recorded, request)
        elif self._mode == "replay":
            raise _unsent(self._missing(request.model))
        else:
            answer = self._recorded(request, place)
        async with aclosing(answer) as events:
            async for event in events:
                yield event

    def has_answer(self, request: ChatRequest | None = None) -> bool:
        """Whether a request's answer is at hand (`core.ports.Replaying`)."""
        if self._mode != "auto":
            return self._mode == "replay"
        if request is None:
            return not self._cassette.is_empty
        return self._next(keys_of(request, self.provider_id)) is not None

    def claim(self, request: ChatRequest) -> Answerer | None:
        """Claim the answer that is at hand (`core.ports.Replaying`)."""
        if self._mode != "auto":
            return self if self._mode == "replay" else None
        keys = keys_of(request, self.provider_id)
        recorded = self._next(keys)
        if recorded is None:
            return None  # the place is left to whoever may send it
        self._cassette.claim(keys[0])
        return _Claimed(self, recorded)

    async def aclose(self) -> None:
        """Free the other provider."""
        await self._provider.aclose()

    def _next(self, keys: Sequence[str]) -> RecordedAnswer | None:
        return self._found(keys, self._cassette.next_place(keys[0]))

    def _found(self, keys: Sequence[str], place: int) -> RecordedAnswer | None:
        """Find the answer at a place, by an earlier key where the request's own has none."""
        recorded = next(filter(None, (self._cassette.find(key, place) for key in keys)), None)
        match self._mode:
            case "record":
                return None
            case "replay":
                return recorded or next(filter(None, map(self._cassette.last, keys)), None)
            case "auto":
                return recorded if recorded is not None and _holds(recorded) else None

    def _missing(self, model: str) -> str:
        name = self._cassette.path.name
        if self._cassette.is_empty:
            return no_recording(self._cassette.path)
        return (
            f'The recording "{name}" has no answer to this request of'
            f' {spec_of(self.provider_id, model)}. Record it with recording = "auto".'
        )

    async def replayed(
        self, recorded: RecordedAnswer, request: ChatRequest
    ) -> AsyncGenerator[ChatEvent, None]:
        """Stream a recorded answer."""
        if recorded.rest != surroundings_digest(request):
            said = "tool results or surroundings differ from those that were recorded"
            if self._strict:
                raise _unsent(f"Replay stopped: {said}. Record it again.")
            yield Notice(text=f"replayed, though {said}")
        for event in recorded.events(request.model):
            yield event
        if recorded.failure is not None:
            error = recorded.failure.error
            error.was_sent = False
            raise error

    async def _recorded(self, request: ChatRequest, place: int) -> AsyncGenerator[ChatEvent, None]:
        """Send a request and keep its answer; one that is left half-way isn't kept."""
        if self._mode == "auto" and not self._cassette.is_empty:
            yield Notice(text="not in the recording: asking the model")
        began_s = time.monotonic()
        heard: list[ChatEvent] = []

        def keep(failure: ProviderError | None = None) -> str | None:
            recorded = record_answer(
                request,
                self.provider_id,
                heard,
                place=place,
                failure=failure,
                duration_ms=round((time.monotonic() - began_s) * 1000),
            )
            return self._kept(recorded)

        try:
            async with closing(self._provider.chat(request)) as events:
                async for event in events:
                    heard.append(event)
                    # Before it is handed on: who has heard `Done` may stop listening.
                    if isinstance(event, Done):
                        fault = keep()
                        warnings = (*event.warnings, fault) if fault else event.warnings
                        yield msgspec.structs.replace(event, warnings=warnings)
                        return
                    yield event
        except ProviderError as error:
            keep(error)
            raise

    def _kept(self, recorded: RecordedAnswer) -> str | None:
        """Write an answer down; say why that can't be: it isn't lost for it."""
        try:
            self._cassette.keep(recorded)
        except InputValidation as error:
            return f"{error.message} This answer is not in it."
        return None


@dataclass(frozen=True)
class _Claimed:
    """One recorded answer, taken out of the recording's order."""

    of: RecordedProvider
    recorded: RecordedAnswer

    @property
    def provider_id(self) -> str:
        return self.of.provider_id

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        return self.of.replayed(self.recorded, request)


def _unsent(sentence: str) -> ProviderError:
    error = ProviderError(sentence, kind="not_recorded")
    error.was_sent = False
    return error


def _holds(recorded: RecordedAnswer) -> bool:
    """Whether the same request would have that answer on another day, too."""
    return recorded.failure is None or recorded.failure.kind in _TOO_LONG


def no_recording(path: Path) -> str:
    """Say that there is nothing to replay, and how there will be."""
    beside = sorted(each.name for each in path.parent.glob(PATTERN))
    name = f" or name one of these in recording_file: {', '.join(beside)}" if beside else ""
    return f'There is no recording "{path.name}" to replay; make one with recording = "auto"{name}.'
