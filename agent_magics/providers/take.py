"""One recorded answer: what was asked, as a key, and what came, as it came (decision 61).

No header and nothing that looks like a key of a server is in it; a prompt is in it as its author
wrote it.
"""

from __future__ import annotations

import hashlib
import re
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
from agent_magics.core.messages import (
    Assistant,
    Message,
    System,
    ToolResult,
    User,
    Value,
    text_of,
)
from agent_magics.core.redact import redact, shown_address, without_marked_keys

VERSION = 1
MAX_ASKED_CHARACTERS = 200
_WRITTEN = re.compile(
    r"<(system_instructions|slot_prompt|system_prompt_override|personality_spec)>.*?</\1>",
    re.DOTALL,
)
_SURROUNDINGS = re.compile(
    r"<(skills|plugins|memories|session-context|environment_context)>.*?</\1>", re.DOTALL
)


class Said(Value, tag="said"):
    """Text as it came, piece by piece."""

    pieces: tuple[str, ...]


class Thought(Value, tag="thought"):
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


class Take(Value, tag="take"):
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
    answer: tuple[Said | Thought | CallReady | Done, ...]
    failure: Failure | None = None
    duration_ms: int = 0
    version: int = VERSION

    def events(self, model: str) -> Iterator[ChatEvent]:
        """Give the events as they came to this model; the last one knows that it is a replay."""
        for part in self.answer:
            match part:
                case Said(pieces=pieces):
                    yield from (TextDelta(text=piece) for piece in pieces)
                case Thought(pieces=pieces):
                    yield from (ReasoningDelta(text=piece) for piece in pieces)
                case Done():
                    done = msgspec.structs.replace(part, replayed_ms=self.duration_ms)
                    yield _by(model, done)
                case CallReady():
                    yield part


class Described(Value, tag="model"):
    """What a server told of a model."""

    info: ModelInfo
    version: int = VERSION


def take_of(
    request: ChatRequest,
    provider: str,
    events: Iterable[ChatEvent],
    *,
    place: int,
    failure: ProviderError | None = None,
    duration_ms: int = 0,
) -> Take:
    """Make the line for an answer."""
    return Take(
        key=keys_of(request, provider)[0],
        place=place,
        model=spec_of(provider, request.model),
        purpose=request.purpose,
        asked=_asked(request),
        rest=rest_of(request),
        answer=tuple(_folded(events, shown_address(request.model))),
        failure=Failure.of(failure) if failure else None,
        duration_ms=duration_ms,
    )


def spec_of(provider: str, model: str) -> str:
    """Write a model as recordings name it: an address in it has no password and no query."""
    return redact(f"{provider}:{shown_address(model)}")


def specs_of(provider: str, model: str) -> tuple[str, ...]:
    """Give the names under which a model may be recorded: today's first, then earlier ones.

    Earlier, a query stood in the name, and a user as `…@`.
    """
    return tuple(
        dict.fromkeys((spec_of(provider, model), without_marked_keys(f"{provider}:{model}")))
    )


def _by(model: str, done: Done) -> Done:
    """Name the model whose reasoning it is: by its whole name, or as recordings name it."""
    if done.reasoning is None:
        return done
    return msgspec.structs.replace(
        done, reasoning=msgspec.structs.replace(done.reasoning, model=model)
    )


def keys_of(request: ChatRequest, provider: str) -> tuple[str, ...]:
    """Digest what a request asks: model, system, tools and the authored messages (decision 61).

    The first is its key; by the others earlier recordings know it. An address's query, which
    may choose a version or a deployment, is in the key, without what is called a key.

    Of the system part, what somebody wrote for this conversation: skills, memories, the session's
    facts and the environment are another's on another machine, or those of the last run. Of a
    turn's request, tool-result text, reference blocks and notes of ours are left out; so a
    follow-up is found by its place and the calls before it.
    """
    name, *earlier = specs_of(provider, request.model)
    _, mark, query = request.model.partition("?") if "@http" in request.model else ("", "", "")
    exact = f"{name}?{_digest(without_marked_keys(mark + query))}" if query else name
    return tuple(dict.fromkeys(_key(request, model) for model in (exact, *earlier)))


def _key(request: ChatRequest, spec: str) -> str:
    is_turn = request.purpose == "turn"
    asked = [
        spec,
        request.purpose,
        request.tool_choice,
        request.params,
        request.tools,
        [_authored(m) for m in request.messages if not is_turn or _is_authored(m)],
    ]
    return _digest(asked)


def rest_of(request: ChatRequest) -> str:
    """Digest what a request says beside its key."""
    rest: list[object] = []
    for message in request.messages:
        match message:
            case System(text=text):
                rest.append([found.group() for found in _SURROUNDINGS.finditer(text)])
            case ToolResult(content=content):
                rest.append(content)
            case User(seq=None, content=content):
                rest.append(content)
            case _:
                pass
    return _digest(rest)


def _authored(message: Message) -> object:
    match message:
        case System(text=text):
            written = [found.group() for found in _WRITTEN.finditer(text)]
            return ["system", written or _SURROUNDINGS.sub("", text)]
        case User(content=content):
            return ["user", content]
        case Assistant(content=content, calls=calls):
            return ["assistant", content, [[c.tool_name, c.arguments] for c in calls]]
        case ToolResult(tool_name=name):
            return ["result", name]


def _is_authored(message: Message) -> bool:
    return not (isinstance(message, User) and message.seq is None)


def _digest(what: object) -> str:
    return hashlib.sha256(msgspec.json.encode(what, order="deterministic")).hexdigest()[:24]


def _asked(request: ChatRequest) -> str:
    users = [m for m in request.messages if isinstance(m, User) and _is_authored(m)]
    text = " ".join(text_of(users[-1].content).split()) if users else ""
    return redact(text[:MAX_ASKED_CHARACTERS])


def _folded(events: Iterable[ChatEvent], model: str) -> Iterator[Said | Thought | CallReady | Done]:
    pieces: list[str] = []
    kind: type[Said | Thought] = Said

    def flushed() -> Iterator[Said | Thought]:
        if pieces:
            yield kind(pieces=tuple(pieces))
            pieces.clear()

    for event in events:
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                now = Said if isinstance(event, TextDelta) else Thought
                if now is not kind:
                    yield from flushed()
                    kind = now
                pieces.append(text)
            case CallReady():
                yield from flushed()
                yield event
            case Done():
                yield from flushed()
                yield _by(model, event)
            case _:  # retries and notices are of that day
                pass
    yield from flushed()
