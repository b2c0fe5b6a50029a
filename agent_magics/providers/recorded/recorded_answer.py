"""One recorded answer: which request it belongs to, and what came, as it came.

No header and nothing that looks like a key of a server is in it; a prompt is in it as its author
wrote it (docs/decisions.md#61). The tags and field names here are those of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent_magics.core.chat import (
    CallReady,
    ChatEvent,
    ChatRequest,
    Done,
    ModelInfo,
    ReasoningDelta,
    TextDelta,
)
from agent_magics.core.errors import ContextOverflow, ProviderError, StreamInterrupted
from agent_magics.core.redact import redact, shown_address
from agent_magics.core.values import Value
from agent_magics.providers.recorded.request_keys import (
    keys_of,
    shown_prompt,
    spec_of,
    surroundings_digest,
)

VERSION = 1


class TextPieces(Value, tag="said"):
    """Text as it came, piece by piece."""

    pieces: tuple[str, ...]


class ReasoningPieces(Value, tag="thought"):
    """Reasoning as it came, piece by piece."""

    pieces: tuple[str, ...]


class Failure(Value):
    """How an answer failed."""

    kind: str
    message: str
    status: int | None = None
    retryable: bool = False
    window: int | None = None
    used: int | None = None

    @classmethod
    def of(cls, error: ProviderError) -> Failure:
        """Write an error down, without what looks like a key."""
        return cls(
            kind=error.kind,
            message=redact(error.message),
            status=error.status,
            retryable=error.retryable,
            window=error.window,
            used=error.used,
        )

    @property
    def error(self) -> ProviderError:
        """The error as it was raised."""
        match self.kind:
            case "input_overflow":
                return ContextOverflow(self.message, window=self.window, used=self.used)
            case "interrupted":
                return StreamInterrupted(self.message)
            case _:
                return ProviderError(
                    self.message,
                    kind=self.kind,
                    status=self.status,
                    retryable=self.retryable,
                    window=self.window,
                    used=self.used,
                )


class RecordedAnswer(Value, tag="take"):
    """One recorded answer.

    `asked` is the prompt, for the eye. `place` counts the answers to the same request. `rest` is a
    digest of what is sent and isn't in `key`: tool results, reference blocks, surroundings.
    """

    key: str
    place: int
    model: str
    purpose: str
    asked: str
    rest: str
    answer: tuple[TextPieces | ReasoningPieces | CallReady | Done, ...]
    failure: Failure | None = None
    duration_ms: int = 0
    version: int = VERSION

    def events(self, model: str) -> Iterator[ChatEvent]:
        """Yield the events as they came to this model; the last one knows that it is a replay."""
        for part in self.answer:
            match part:
                case TextPieces(pieces=pieces):
                    yield from (TextDelta(text=piece) for piece in pieces)
                case ReasoningPieces(pieces=pieces):
                    yield from (ReasoningDelta(text=piece) for piece in pieces)
                case Done():
                    done = msgspec.structs.replace(part, replayed_ms=self.duration_ms)
                    yield _with_author(model, done)
                case CallReady():
                    yield part


class RecordedModel(Value, tag="model"):
    """What a server told of a model."""

    info: ModelInfo
    version: int = VERSION


def record_answer(
    request: ChatRequest,
    provider: str,
    events: Iterable[ChatEvent],
    *,
    place: int,
    failure: ProviderError | None = None,
    duration_ms: int = 0,
) -> RecordedAnswer:
    """Make the line for the answer whose events these were."""
    return RecordedAnswer(
        key=keys_of(request, provider)[0],
        place=place,
        model=spec_of(provider, request.model),
        purpose=request.purpose,
        asked=shown_prompt(request),
        rest=surroundings_digest(request),
        answer=tuple(_folded(events, shown_address(request.model))),
        failure=Failure.of(failure) if failure else None,
        duration_ms=duration_ms,
    )


def _with_author(model: str, done: Done) -> Done:
    """Name the model whose reasoning it is: by its whole name, or as recordings name it."""
    if done.reasoning is None:
        return done
    return msgspec.structs.replace(
        done, reasoning=msgspec.structs.replace(done.reasoning, model=model)
    )


def _folded(
    events: Iterable[ChatEvent], model: str
) -> Iterator[TextPieces | ReasoningPieces | CallReady | Done]:
    """Fold neighbouring deltas of one kind into one part, which keeps where they were cut."""
    pieces: list[str] = []
    kind: type[TextPieces | ReasoningPieces] = TextPieces

    def flushed() -> Iterator[TextPieces | ReasoningPieces]:
        if pieces:
            yield kind(pieces=tuple(pieces))
            pieces.clear()

    for event in events:
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                now = TextPieces if isinstance(event, TextDelta) else ReasoningPieces
                if now is not kind:
                    yield from flushed()
                    kind = now
                pieces.append(text)
            case CallReady():
                yield from flushed()
                yield event
            case Done():
                yield from flushed()
                yield _with_author(model, event)
            case _:  # retries and notices are of that day
                pass
    yield from flushed()
