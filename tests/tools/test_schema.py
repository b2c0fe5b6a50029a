"""What a model is told of a function, and what a call of it does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import pytest

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import ToolInput
from agent_magics.tools.schema import FunctionTool, tool

T = TypeVar("T")


class Here:
    """Runs main-thread work at once and remembers that it did."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, work: Callable[[], T]) -> T:
        self.calls += 1
        return work()


class Point(msgspec.Struct):
    x: int
    y: int = 0


@tool
def weather(city: str, days: int = 3, unit: Literal["C", "F"] = "C") -> str:
    """Tell the weather of a city."""
    return f"{city} {days} {unit}"


def execute(subject: FunctionTool[Any, Any], on_main: Here | None = None, **arguments: Any) -> str:
    call = ToolInput(call_id="c", tool_name=subject.name, arguments=arguments)
    return asyncio.run(subject.execute(call, on_main or Here())).content


def test_name_docstring_and_signature_are_the_schema() -> None:
    """The function says all there is to say."""
    assert weather.name == "weather"
    assert weather.description == "Tell the weather of a city."
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "unit": {"enum": ["C", "F"], "default": "C"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_tool_is_still_a_function() -> None:
    """Decorating changes nothing for who calls it."""
    assert weather("Oslo", days=1) == "Oslo 1 C"


def test_arguments_are_converted_to_the_hints() -> None:
    """Nested values become the types that the function asks for."""

    @tool(mutating=True, name="move")
    def f(to: Point, tags: list[str] | None = None) -> dict[str, Any]:
        return {"x": to.x + to.y, "tags": tags}

    assert f.is_mutating
    assert f.name == "move"
    assert "$defs" in f.parameters
    assert execute(f, to={"x": 2, "y": "3"}) == '{"x":5,"tags":null}'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "missing required field `city`"),
        ({"city": 1}, "Expected `str`"),
        ({"city": "a", "extra": 1}, "unknown field `extra`"),
    ],
    ids=["missing", "wrong type", "unknown"],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], says: str) -> None:
    """The model is told which argument is wrong; the function doesn't run."""
    with pytest.raises(InputValidation, match=says):
        execute(weather, **arguments)


@pytest.mark.parametrize(
    "function",
    [lambda *args: 1, lambda **kwargs: 1],
    ids=["args", "kwargs"],
)
def test_a_signature_that_no_model_can_fill_is_refused(function: Callable[..., int]) -> None:
    """Open-ended parameters can't be described."""
    with pytest.raises(InputValidation, match="give every parameter a name"):
        tool(name="open")(function)


def test_a_type_that_json_cannot_carry_is_refused() -> None:
    """A parameter that no JSON can be is refused when the tool is made."""

    class Handle:
        pass

    def f(handle: Annotated[Any, "x"]) -> None: ...

    f.__annotations__["handle"] = Handle
    with pytest.raises(InputValidation, match="can't be described"):
        tool(f)


def test_sync_tools_run_on_the_main_thread() -> None:
    """A sync tool goes through the main thread's queue, where the user's namespace is."""
    main = Here()
    assert execute(weather, main, city="Oslo") == "Oslo 3 C"
    assert main.calls == 1


def test_threaded_tools_run_on_a_daemon_of_their_own() -> None:
    """`thread=True` keeps a slow function off the main thread, on a thread that ends with it."""

    @tool(thread=True)
    def where() -> list[Any]:
        current = threading.current_thread()
        return [current.name, current.daemon]

    main = Here()
    assert execute(where, main) == '["tool where",true]'
    assert main.calls == 0


def test_async_tools_run_on_the_loop() -> None:
    """An async tool is awaited where the session runs."""

    @tool
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    main = Here()
    assert execute(later, main, n=1) == "2"
    assert main.calls == 0


def test_an_output_is_passed_on_as_it_is() -> None:
    """A tool may say that it failed, and add metadata that no model sees."""
    given = ToolOutput(content="no", is_error=True, metadata={"row": 3})

    @tool
    def f() -> ToolOutput:
        return given

    call = ToolInput(call_id="c", tool_name="f", arguments={})
    assert asyncio.run(f.execute(call, Here())) == given


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=["nan", "inf"])
def test_a_default_that_json_cannot_carry_is_refused(value: float) -> None:
    """It would break every request; it is refused when the tool is made."""

    def f(x: float = value) -> float:
        return x

    with pytest.raises(InputValidation, match="can't be sent as JSON"):
        tool(f)


@pytest.mark.parametrize("name", ["", "ä", "a b", "x" * 65, "a.b"])
def test_a_name_that_servers_refuse_is_refused_here(name: str) -> None:
    """One sentence with how to give it another; a lambda has no name that would do."""
    with pytest.raises(InputValidation, match="give it a name"):
        tool(name=name or None)(lambda: 1)
    with pytest.raises(InputValidation, match="<lambda>"):
        tool(lambda city: city)
