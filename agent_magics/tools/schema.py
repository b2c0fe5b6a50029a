"""`@tool`: a function that a model may call, its schema made of its signature."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import OnMain, ToolInput
from agent_magics.tools.threads import end_if_forked, log_late, on_own_thread, tool_timed_out

P = ParamSpec("P")
R = TypeVar("R")
Preview = Callable[[dict[str, Any]], str]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNUSABLE = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


class FunctionTool(Generic[P, R]):
    """A tool made of a function; calling it calls the function.

    Async functions run on the session's loop. Sync ones run on the main thread, one after the
    other, where the user's namespace is; with `thread=True` on a thread of their own.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        mutating: bool,
        name: str | None,
        thread: bool,
        preview: Preview | None,
    ) -> None:
        self._function = function
        self._thread = thread
        self._is_async = inspect.iscoroutinefunction(function)
        self.preview = preview
        self.name: str = _checked_name(
            name or str(getattr(function, "__name__", type(function).__name__))
        )
        self.description: str = inspect.cleandoc(function.__doc__ or "")
        self.is_mutating: bool = mutating
        self._arguments = _arguments_type(self.name, function)
        self.parameters: dict[str, Any] = _object_schema(self._arguments)
        update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def runs_on_main(self) -> bool:
        """Return whether the function runs on the main thread: nothing happens before that."""
        return not self._thread and not self._is_async

    async def execute(self, call: ToolInput, on_main: OnMain) -> ToolOutput:
        """Run the function with a call's arguments.

        Raises `InputValidation` where they don't fit the signature, else what the function raises.
        """
        arguments = self._converted(call.arguments)
        if self._is_async:
            waiting = cast("Callable[..., Awaitable[Any]]", self._function)(**arguments)
            return as_output(await waiting)
        if self._thread:
            return await on_own_thread(lambda: self._call(arguments), name=f"tool {self.name}")
        return await on_main.call(lambda: self._call(arguments))

    def _call(self, arguments: dict[str, Any]) -> ToolOutput:
        """Run the function where it belongs; what it gave is read there too, as reprs are code."""
        # A tool may fork and let the child return into our stack.
        pid = os.getpid()
        try:
            return as_output(cast("Callable[..., R]", self._function)(**arguments))
        finally:
            end_if_forked(pid)
            if tool_timed_out():
                log_late(self.name)

    def _converted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            # Not strict: models write "3" for 3 and "true" for true.
            made = msgspec.convert(arguments, self._arguments, strict=False)
        except msgspec.ValidationError as error:
            raise InputValidation(f"The arguments of {self.name} don't fit: {error}.") from error
        return {name: getattr(made, name) for name in self._arguments.__struct_fields__}


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    mutating: bool = ...,
    name: str | None = ...,
    thread: bool = ...,
    preview: Preview | None = ...,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    mutating: bool = False,
    name: str | None = None,
    thread: bool = False,
    preview: Preview | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function a tool: its name, docstring and signature are what the model is told.

    `mutating`: it changes something outside the conversation, so a person is asked before it runs.
    `preview`: makes of a call's arguments the text that the person reads then: exactly what will
    run. `thread`: a sync function runs on a thread of its own, not on the main thread.
    Raises `InputValidation` where the signature can't be described (`*args`, `**kwargs`,
    positional-only, or a type that JSON can't carry).
    """

    def make(wrapped: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(wrapped, mutating=mutating, name=name, thread=thread, preview=preview)

    return make if function is None else make(function)


def as_output(result: object) -> ToolOutput:
    """Turn what a tool gave into what the model reads: text as it is, the rest as JSON or repr."""
    match result:
        case ToolOutput():
            return result
        case str():
            return ToolOutput(content=result)
        case None:
            return ToolOutput(content="")
        case _:
            try:
                return ToolOutput(content=msgspec.json.encode(result).decode())
            except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
                return ToolOutput(content=repr(result))


def _checked_name(name: str) -> str:
    """Return a tool's name where servers take it, or raise `InputValidation`."""
    if not _NAME.fullmatch(name):
        raise InputValidation(
            f'A tool can\'t be called "{name}": give it a name of letters a-z, digits, "_" and "-",'
            ' 64 at most, as in @tool(name="rainfall").'
        )
    return name


def _arguments_type(name: str, function: Callable[..., Any]) -> type[msgspec.Struct]:
    hints = _hints(name, function)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _UNUSABLE:
            raise InputValidation(
                f'Tool "{name}" has the parameter {parameter}; give every parameter a name that a'
                " model can fill in."
            )
        hint = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _as_default(parameter.default)))
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InputValidation(
            f'A parameter type of tool "{name}" can\'t be found ({error}); define it at top level.'
        ) from error


def _as_default(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputValidation(f"The default {value!r} of a tool's parameter can't be sent as JSON.")
    if value is None or isinstance(value, str | int | float):
        return value
    # msgspec refuses mutable defaults; the function gets its own object, as Python would give it.
    return msgspec.field(default_factory=lambda: value)


def _object_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        _, definitions = msgspec.json.schema_components([arguments])
    except TypeError as error:
        raise InputValidation(
            f"A parameter type of {arguments.__name__.removesuffix('_arguments')} can't be"
            f" described to a model: {error}"
        ) from error
    own = arguments.__name__
    schema = dict(definitions.pop(own))
    schema.pop("title", None)
    if definitions:
        schema["$defs"] = definitions
    return schema
