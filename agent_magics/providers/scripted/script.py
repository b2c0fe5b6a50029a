"""A script: its steps, read from Python values or a YAML file, and which of them come next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from agent_magics.core.chat import ChatRequest
from agent_magics.core.errors import InputValidation, ProviderError
from agent_magics.core.values import TokenUsage, Value

ErrorKind = Literal[
    "overflow", "max_tokens", "auth", "rate_limit", "server", "connection", "timeout", "lost"
]


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


class ScriptCursor:
    """A script and which of its steps were used; `name` is what errors call it."""

    def __init__(
        self, name: str, steps: Sequence[StepLike], *, repeat: bool, context_window: int | None
    ) -> None:
        self._name = name
        self._repeat = repeat
        self.context_window = context_window
        self._steps = [_step(step, name, number) for number, step in enumerate(steps, 1)]
        self._used: set[int] = set()

    def next(self, request: ChatRequest) -> Step:
        """Take the request's next unused step; `ProviderError` where none is left."""
        place = self._place(request.purpose)
        self._used.add(place)
        step = self._steps[place]
        while not isinstance(step, Step):
            step = _step(step(request), self._name, place + 1)
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


def cursor_of(path: Path | str) -> ScriptCursor:
    """Read a script file and begin at its first step; raises as `read_script`."""
    script = read_script(path)
    return ScriptCursor(
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


def _step(step: StepLike, name: str, number: int) -> Step | Callable[[ChatRequest], StepLike]:
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
