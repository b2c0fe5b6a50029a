"""What a tool gives is cut, marked, and of types that can be read again."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from agent_magics.core.messages import ToolOutput
from agent_magics.tools.schema import tool
from tests.tools.dispatching import call, run_all


@pytest.mark.req("E10", "E20.15")
def test_long_output_is_cut_and_marked() -> None:
    """Content and metadata together stay within the limit; cuts are marked."""

    @tool
    def long() -> ToolOutput:
        return ToolOutput(content="é" * 1000, metadata={"k": "v" * 500})

    seen = run_all(
        [long],
        call("long", {}),
        tool_output_max_bytes=600,
        tool_output_metadata_max_bytes=100,
    )
    output = seen.answers[0].output
    assert output.metadata == {"_truncated": True, "_original_bytes": 508}
    assert output.content.endswith("é\n\n[output truncated]")
    size = len(output.content.encode()) + len(msgspec.json.encode(output.metadata))
    assert size <= 600


@pytest.mark.req("E10", "E20.15")
@pytest.mark.parametrize("over", [0, 1])
def test_the_default_limits_are_a_mebibyte_and_64_kibibytes(over: int) -> None:
    """What just fits is whole; one byte more, and it is cut."""
    metadata = {"k": "v" * (65_536 - len('{"k":""}') + over)}
    room = 1_048_576 - (65_536 if not over else len('{"_truncated":true,"_original_bytes":65537}'))

    @tool
    def exact() -> ToolOutput:
        return ToolOutput(content="x" * (room + over), metadata=metadata)

    output = run_all([exact], call("exact", {})).answers[0].output
    assert (output.metadata == metadata) == (over == 0)
    assert output.content.endswith("[output truncated]") == (over == 1)
    assert len(output.content.encode()) == room


class Odd:
    """A foreign tool that keeps no promise about what it gives."""

    name = "odd"
    description = ""
    parameters: dict[str, Any] = {}  # noqa: RUF012  # the protocol's shape
    is_mutating = False

    def __init__(self, given: Any) -> None:
        self.given = given

    async def execute(self, _call: object, _on_main: object) -> Any:
        return self.given


_LOOP: dict[str, Any] = {}
_LOOP["self"] = _LOOP
_RING: list[Any] = []
_RING.append(_RING)


@pytest.mark.parametrize(
    "given",
    [
        None,
        5,
        10**30,
        b"\xff\x00",
        _RING,
        "\ud800 \0 \u2028 \u202e",
        ToolOutput(content=5),  # type: ignore[arg-type]
        ToolOutput(content="x", is_error="yes"),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata=None),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata=[1]),  # type: ignore[arg-type]
        ToolOutput(content="x", metadata={1: {2}}),  # type: ignore[dict-item]
        ToolOutput(content="x", metadata={"n": float("nan"), "\ud800": "\0"}),
        ToolOutput(content="x", metadata=_LOOP),
        ToolOutput(content="x", metadata={"t": threading.Lock()}),
    ],
    ids=lambda given: repr(given)[:40],
)
@pytest.mark.req("inv10", "inv16")
def test_an_output_of_wrong_types_is_one_that_can_be_read_again(given: Any) -> None:
    """What a reader would refuse never reaches the ledger."""
    (answer,) = run_all([Odd(given)], call("odd", {})).answers
    encoded = msgspec.msgpack.encode(answer.output)
    assert msgspec.msgpack.decode(encoded, type=ToolOutput) == answer.output
