"""A provider whose models answer from a script."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

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
from agent_magics.core.messages import Reasoning, ToolCall
from agent_magics.providers.scripted.script import (
    ErrorKind,
    ScriptCursor,
    ScriptedCall,
    ScriptedError,
    Step,
    StepLike,
    cursor_of,
)

DEFAULT_MODEL = "script"


class ScriptedProvider:
    """A provider whose models speak from a script.

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
        self._files: dict[str, ScriptCursor] = {}
        self._cursor: ScriptCursor | None = None
        if steps is not None:
            self._cursor = ScriptCursor(
                "the script", steps, repeat=repeat, context_window=context_window
            )
        self.requests: list[ChatRequest] = []

    @classmethod
    def from_yaml(cls, path: Path | str, *, provider_id: str = "scripted") -> ScriptedProvider:
        """Read a script from a file; `InputValidation` says what is wrong in it."""
        made = cls(provider_id=provider_id)
        made._cursor = cursor_of(path)
        return made

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self._id

    async def models(self) -> Sequence[ModelInfo]:
        """List the one model there is, if it was given a script."""
        return [] if self._cursor is None else [await self.describe(DEFAULT_MODEL)]

    async def describe(self, model: str) -> ModelInfo:
        """Return the model with the window that its script sets."""
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
        """Do nothing: no connection is held."""

    def _script(self, model: str) -> ScriptCursor:
        if self._cursor is not None:
            return self._cursor
        if model not in self._files:
            self._files[model] = cursor_of(model)
        return self._files[model]

    def _call(self, call: ScriptedCall) -> ToolCall:
        call_id = f"call_{next(self._call_numbers)}"
        if isinstance(call.arguments, dict):
            return ToolCall(call_id=call_id, tool_name=call.name, arguments=call.arguments)
        arguments = _object_in(call.arguments)
        raw = call.arguments if arguments is None else ""
        return ToolCall(call_id=call_id, tool_name=call.name, arguments=arguments, raw=raw)


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
