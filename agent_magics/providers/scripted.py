"""A model that says what a script tells it to: for tests and tutorials, yours too.

A script is a list of steps; each request takes the next one. From Python::

    ScriptedProvider([
        "Hello.",
        {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        {"text": "It snows.", "usage": {"input_tokens": 40, "output_tokens": 3}},
        {"text": "I was about to", "error": "lost"},
        lambda request: f"You said {len(request.messages)} messages.",
    ])

From a file, named as a model: `AGENT_MAGICS_MODEL=scripted:answers.yaml`::

    repeat: true
    context_window: 8192
    steps:
      - Hello.
      - text: It snows.
        delay_s: 0.2

The fields of a step are those of `Step`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
from agent_magics.core.errors import (
    ContextOverflow,
    InputValidation,
    ProviderError,
    StreamInterrupted,
)
from agent_magics.core.messages import Reasoning, TokenUsage, ToolCall, Value

ErrorKind = Literal[
    "overflow", "max_tokens", "auth", "rate_limit", "server", "connection", "timeout", "lost"
]
DEFAULT_MODEL = "script"


class ScriptedCall(Value, forbid_unknown_fields=True):
    """A tool call; `arguments` as text that is no JSON object make a call that can't run."""

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)


class ScriptedError(Value, forbid_unknown_fields=True):
    """How a step ends badly; `window` and `used` in tokens belong to "overflow"."""

    kind: ErrorKind
    message: str | None = None
    window: int | None = None
    used: int | None = None


class Step(Value, forbid_unknown_fields=True):
    """One answer of a scripted model.

    Order on the wire: `delay_s` seconds of silence, reasoning, text in `chunks` (a number of
    pieces, or the pieces themselves; None: word by word) with `chunk_delay_s` between them, then
    calls and the end, or the error in their place. An error in a step without text comes before
    the first token. `usage` None: the server told none. A step with a `purpose` ("turn",
    "compaction", …) answers only requests of that purpose, before those without.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    delay_s: float = 0.0
    chunks: int | tuple[str, ...] | None = None
    chunk_delay_s: float = 0.0
    error: ErrorKind | ScriptedError | None = None
    usage: TokenUsage | None = None
    finish: Literal["done", "length"] = "done"
    warnings: tuple[str, ...] = ()
    purpose: str | None = None


StepLike: TypeAlias = "str | Step | Mapping[str, Any] | Callable[[ChatRequest], StepLike]"


class Script(Value, forbid_unknown_fields=True):
    """A script file: steps, and whether they begin again when they are used up."""

    steps: tuple[str | dict[str, Any], ...]
    repeat: bool = False
    context_window: int | None = None


class ScriptedProvider:
    """A provider whose models speak from a script (P4).

    `steps` None: the model's name is the path of a YAML file. Steps are taken in the order of the
    requests; running out of them is a `ProviderError`, unless `repeat`. `requests` is every
    request so far. The same script gives the same events, always.
    """

    def __init__(
        self,
        steps: Sequence[StepLike] | None = None,
        *,
        provider_id: str = "scripted",
        repeat: bool = False,
        context_window: int | None = None,
    ) -> None:
        self._id = provider_id
        self._call_numbers = itertools.count(1)
        self._files: dict[str, _Cursor] = {}
        self._cursor: _Cursor | None = None
        if steps is not None:
            self._cursor = _Cursor(
                "the script", steps, repeat=repeat, context_window=context_window
            )
        self.requests: list[ChatRequest] = []

    @classmethod
    def from_yaml(cls, path: Path | str, *, provider_id: str = "scripted") -> ScriptedProvider:
        """Read a script from a file; `InputValidation` says what is wrong in it."""
        made = cls(provider_id=provider_id)
        made._cursor = _cursor_of(path)
        return made

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self._id

    async def models(self) -> Sequence[ModelInfo]:
        """Name the one model there is, if it was given a script."""
        return [] if self._cursor is None else [await self.describe(DEFAULT_MODEL)]

    async def describe(self, model: str) -> ModelInfo:
        """Tell the window that the script sets."""
        return ModelInfo(
            name=model,
            provider=self._id,
            context_window=self._script(model).context_window,
            has_vision=True,
        )

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Play the next step (see `core.ports.Provider.chat`)."""
        self.requests.append(request)
        step = self._script(request.model).next(request)
        await asyncio.sleep(step.delay_s)
        if step.reasoning:
            yield ReasoningDelta(text=step.reasoning)
        for number, piece in enumerate(_pieces(step)):
            if number:
                await asyncio.sleep(step.chunk_delay_s)
            yield TextDelta(text=piece)
        if step.error is not None:
            raise _error(step.error, self._id)
        for call in step.calls:
            yield CallReady(call=self._call(call))
        yield Done(
            usage=step.usage,
            finish=step.finish,
            reasoning=_reasoning(step, self._id, request.model),
            warnings=step.warnings,
        )

    async def aclose(self) -> None:
        """Nothing is held."""

    def _script(self, model: str) -> _Cursor:
        if self._cursor is not None:
            return self._cursor
        if model not in self._files:
            self._files[model] = _cursor_of(model)
        return self._files[model]

    def _call(self, call: ScriptedCall) -> ToolCall:
        call_id = f"call_{next(self._call_numbers)}"
        if isinstance(call.arguments, dict):
            return ToolCall(call_id=call_id, tool_name=call.name, arguments=call.arguments)
        arguments = _object_in(call.arguments)
        raw = call.arguments if arguments is None else ""
        return ToolCall(call_id=call_id, tool_name=call.name, arguments=arguments, raw=raw)


class _Cursor:
    """A script and which of its steps were used."""

    def __init__(
        self, name: str, steps: Sequence[StepLike], *, repeat: bool, context_window: int | None
    ) -> None:
        self._name = name
        self._repeat = repeat
        self.context_window = context_window
        self._steps = [_checked(step, name, number) for number, step in enumerate(steps, 1)]
        self._used: set[int] = set()

    def next(self, request: ChatRequest) -> Step:
        place = self._place(request.purpose)
        self._used.add(place)
        step = self._steps[place]
        while not isinstance(step, Step):
            step = _checked(step(request), self._name, place + 1)
        return step

    def _place(self, purpose: str) -> int:
        for wanted in (purpose, None):
            fitting = [n for n, step in enumerate(self._steps) if _purpose(step) == wanted]
            free = [n for n in fitting if n not in self._used]
            if not free and fitting and self._repeat:
                self._used.difference_update(fitting)
                free = fitting
            if free:
                return free[0]
        raise ProviderError(
            f"The scripted model has no step left for request {len(self._used) + 1} of purpose"
            f' "{purpose}": {self._name} has {len(self._steps)}. Add steps, or repeat them.',
            kind="script_ended",
        )


def _cursor_of(path: Path | str) -> _Cursor:
    script = read_script(path)
    return _Cursor(
        str(path), script.steps, repeat=script.repeat, context_window=script.context_window
    )


def read_script(path: Path | str) -> Script:
    """Read a script file: a list of steps, or a mapping with `steps`, `repeat`, `context_window`.

    Raises `InputValidation` that names the file and the step.
    """
    import yaml  # noqa: PLC0415 - only scripts in files need it

    try:
        content = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise InputValidation(
            f'The script "{path}" can\'t be read: {error.strerror or error}.'
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())
        raise InputValidation(f'The script "{path}" is not YAML: {where}') from error
    given = {"steps": content} if isinstance(content, list) else content
    try:
        return msgspec.convert(given, Script)
    except msgspec.ValidationError as error:
        raise InputValidation(
            f'The script "{path}" is neither a list of steps nor a mapping with steps: {error}'
        ) from error


def _checked(step: StepLike, name: str, number: int) -> Step | Callable[[ChatRequest], StepLike]:
    if isinstance(step, str):
        return Step(text=step)
    if isinstance(step, Step) or callable(step):
        return step
    try:
        return msgspec.convert(dict(step), Step)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InputValidation(f"Step {number} of {name} can't be used: {error}.") from error


def _purpose(step: Step | Callable[[ChatRequest], StepLike]) -> str | None:
    return step.purpose if isinstance(step, Step) else None


def _pieces(step: Step) -> list[str]:
    match step.chunks:
        case None:
            return re.findall(r"\s*\S+|\s+$", step.text)
        case int(count):
            size = max(1, -(-len(step.text) // max(1, count)))
            return [step.text[i : i + size] for i in range(0, len(step.text), size)]
        case pieces:
            return list(pieces)


def _reasoning(step: Step, provider: str, model: str) -> Reasoning | None:
    if not step.reasoning:
        return None
    return Reasoning(text=step.reasoning, provider=provider, model=model)


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _error(given: ErrorKind | ScriptedError, provider: str) -> ProviderError:
    error = given if isinstance(given, ScriptedError) else ScriptedError(kind=given)
    text, kind, retryable, status = _ERRORS[error.kind]
    message = error.message or f"{provider} {text}"
    match error.kind:
        case "overflow":
            return ContextOverflow(message, window=error.window, used=error.used)
        case "lost":
            return StreamInterrupted(message)
        case _:
            return ProviderError(
                message,
                kind=kind,
                retryable=retryable,
                status=status,
                window=error.window,
                used=error.used,
            )


_ERRORS: dict[ErrorKind, tuple[str, str, bool, int | None]] = {
    "overflow": ("got a request longer than its window.", "input_overflow", False, 400),
    "max_tokens": ("has no room for max_tokens.", "output_reservation", False, 400),
    "auth": ("refused the key (401).", "auth", False, 401),
    "rate_limit": ("has no room for this request now (429).", "quota", True, 429),
    "server": ("failed (500).", "other", True, 500),
    "connection": ("does not answer.", "connection", True, None),
    "timeout": ("said nothing in time.", "timeout", False, None),
    "lost": ("lost the connection in the middle of its answer.", "interrupted", False, None),
}
