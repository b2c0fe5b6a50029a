"""Token counts: exact, offline, and bounded on degenerate text."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.context.tokens import (
    EXACT_CHARACTERS,
    FRAME_TOKENS,
    IMAGE_TOKENS,
    PIECE_CHARACTERS,
    count_message,
    count_payload,
    count_text,
    count_tools,
)
from agent_magics.core.chat import ToolDefinition
from agent_magics.core.events import (
    AssistantMessage,
    Clear,
    Imported,
    MemorySet,
    Payload,
    Rewind,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import (
    Assistant,
    File,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolOutput,
    ToolResult,
    User,
)
from tests.context.story import said

pytestmark = pytest.mark.req("dec38")


def reference(text: str) -> int:
    count_text("a")
    return len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("Hello, world!", 4),
        ("antidisestablishmentarianism", 6),
        ("    return x", 3),
        ("你好 世界", 2),
        ("\n\n\n", 1),
    ],
)
def test_known_texts_have_known_counts(text: str, tokens: int) -> None:
    """The counts are those of the published o200k_base encoding."""
    assert count_text(text) == tokens


@given(st.text(max_size=300))
def test_short_texts_are_counted_exactly(text: str) -> None:
    """Any text counts as the encoding itself counts it."""
    assert count_text(text) == reference(text)


def test_long_prose_is_counted_exactly_across_pieces() -> None:
    """The cuts between pieces fall where no token crosses."""
    text = "It was, she said; a day in (late) June 1999 and nobody's dog had x_1 barked.\n" * 4_000
    assert len(text) > 5 * PIECE_CHARACTERS
    assert count_text(text) == reference(text)


@pytest.mark.req("inv13")
@pytest.mark.parametrize("unit", [" ", "a", "\n", "=", "😀", "aB3x+/", "中"])
def test_degenerate_lines_are_counted_in_bounded_time(unit: str) -> None:
    """A million equal characters neither crash the encoder nor keep it busy."""
    text = unit * (1_000_000 // len(unit))
    began = time.perf_counter()
    tokens = count_text(text)
    assert time.perf_counter() - began < 5
    assert 0 < tokens <= len(text.encode())


@pytest.mark.req("inv13")
def test_fifty_megabytes_in_one_line_are_estimated_in_bounded_time() -> None:
    """Beyond what a tool may write a text is sampled and scaled up."""
    unit = "some words and 12 numbers; "
    text = unit * (50_000_000 // len(unit))
    began = time.perf_counter()
    tokens = count_text(text)
    assert time.perf_counter() - began < 5
    exact = reference(unit * 1_000) * (len(text) / (len(unit) * 1_000))
    assert len(text) > EXACT_CHARACTERS
    assert abs(tokens - exact) < exact * 0.02


@pytest.mark.parametrize(
    ("payload", "tokens"),
    [
        pytest.param(UserMessage(content=said("hello world")), 2, id="user"),
        pytest.param(
            UserMessage(
                content=(Text(text="hello world"), Image(data="x", media_type="image/png"))
            ),
            2 + IMAGE_TOKENS,
            id="image",
        ),
        pytest.param(
            UserMessage(content=(File(name="hello", media_type="text/plain", text="world"),)),
            2,
            id="file",
        ),
        pytest.param(
            AssistantMessage(content=said("hello"), reasoning=Reasoning(text="a b c d")),
            1,
            id="reasoning is not history",
        ),
        pytest.param(
            ToolCalled(call_id="a", tool_name="hello", arguments=None, raw="world"), 2, id="raw"
        ),
        pytest.param(
            ToolAnswered(call_id="a", tool_name="f", output=ToolOutput(content="hello world")),
            2,
            id="result",
        ),
        pytest.param(SystemMessage(text="hello world"), 2, id="note"),
        pytest.param(
            Imported(message=ToolResult(call_id="a", tool_name="f", content="hello")),
            1,
            id="imported",
        ),
        pytest.param(Rewind(to_seq=3), 0, id="rewind"),
        pytest.param(Clear(), 0, id="clear"),
        pytest.param(MemorySet(key="key", value="value"), 0, id="memory"),
    ],
)
def test_events_weigh_what_a_model_reads_of_them(payload: Payload, tokens: int) -> None:
    """Only spoken kinds weigh anything, and an image is a fixed number."""
    assert count_payload(payload) == tokens


def test_arguments_of_a_call_are_counted_even_with_bad_text() -> None:
    """A lone surrogate in an argument is no reason to fail."""
    payload = ToolCalled(call_id="a", tool_name="f", arguments={"x": "\ud800"})
    assert count_payload(payload) > 1


def test_messages_weigh_their_frame_and_the_reasoning_that_goes_along() -> None:
    """A message costs what is in it and what a server puts around it."""
    assert count_message(User(content=said("hello world"))) == 2 + FRAME_TOKENS
    thought = Assistant(content=said("hello"), reasoning=Reasoning(text="hello world"))
    assert count_message(thought) == 3 + FRAME_TOKENS
    call = ToolCall(call_id="a", tool_name="hello", arguments={})
    assert count_message(Assistant(calls=(call,))) == 2 + FRAME_TOKENS


def test_tool_schemas_are_counted() -> None:
    """A longer schema weighs more, none weighs nothing."""
    small = ToolDefinition(name="f", description="do", parameters={})
    large = ToolDefinition(name="f", description="do", parameters={"x": {"type": "string"}})
    assert count_tools([]) == 0
    assert FRAME_TOKENS < count_tools([small]) < count_tools([large])
    assert count_tools([small, large]) == count_tools([small]) + count_tools([large])


def test_counting_needs_no_network_and_loading_needs_no_tiktoken() -> None:
    """The ranks are the package's own, and nothing is built before the first count."""
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket = socket.create_connection = refuse\n"
        "from agent_magics.context.tokens import count_text\n"
        "assert 'tiktoken' not in sys.modules\n"
        "print(count_text('hello world'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"
