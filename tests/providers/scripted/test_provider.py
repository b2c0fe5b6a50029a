"""The scripted model, as people test their notebooks with it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.chat import ChatEvent, Done, TextDelta
from agent_magics.core.errors import ContextOverflow, InputValidation, ProviderError
from agent_magics.core.messages import Text, User
from agent_magics.core.values import TokenUsage
from agent_magics.providers.scripted import ScriptedProvider, Step
from tests.providers.answers import Gathered, ask, gather

pytestmark = pytest.mark.req("P4")


def answers(provider: ScriptedProvider, count: int = 1, **request: Any) -> list[Gathered]:
    async def run() -> list[Gathered]:
        return [await gather(provider, ask(**request)) for _ in range(count)]

    return asyncio.run(run())


def test_each_request_takes_the_next_step() -> None:
    """Strings, mappings, steps and functions of the request are steps."""
    provider = ScriptedProvider(
        [
            "one two",
            {"text": "three", "reasoning": "hm", "usage": {"input_tokens": 5, "output_tokens": 1}},
            Step(text="four", finish="length"),
            lambda request: {"text": f"{request.model} {len(request.messages)}"},
        ]
    )
    said = answers(provider, 4)
    assert [answer.text for answer in said] == ["one two", "three", "four", "m 1"]
    assert [answer.end for answer in said] == ["done", "done", "length", "done"]
    assert said[1].reasoning == "hm"
    assert said[1].done
    assert said[1].done.usage == TokenUsage(input_tokens=5, output_tokens=1)
    assert said[0].done
    assert said[0].done.usage is None


def test_requests_are_recorded() -> None:
    """A test sees what was sent."""
    provider = ScriptedProvider(["a", "b"])
    answers(provider, 1, text="first")
    answers(provider, 1, text="second", purpose="compaction")
    assert [request.purpose for request in provider.requests] == ["turn", "compaction"]
    assert provider.requests[0].messages == (User(content=(Text(text="first"),)),)


def test_tool_calls_come_at_the_end_with_their_own_ids() -> None:
    """Arguments as text that is no object make a call that can't be executed."""
    provider = ScriptedProvider(
        [{"calls": [{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": '{"x": '}]}]
    )
    first, second = answers(provider)[0].calls
    assert (first.tool_name, first.arguments) == ("f", {"x": 1})
    assert (second.arguments, second.raw) == (None, '{"x": ')
    assert first.call_id != second.call_id


@pytest.mark.parametrize(
    ("chunks", "pieces"),
    [
        (None, ["Two", " words "]),
        (1, ["Two words "]),
        (3, ["Two ", "word", "s "]),
        (["Two", "", " words "], ["Two", "", " words "]),
    ],
)
def test_text_comes_in_the_pieces_asked_for(chunks: Any, pieces: list[str]) -> None:
    """Word by word unless a number or the pieces are given."""

    async def run() -> list[ChatEvent]:
        provider = ScriptedProvider([{"text": "Two words ", "chunks": chunks}])
        return [event async for event in provider.chat(ask())]

    events = asyncio.run(run())
    text = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(text) == "Two words "
    if chunks is not None:
        assert text == pieces
    assert isinstance(events[-1], Done)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ("auth", "auth", False),
        ("rate_limit", "quota", True),
        ("connection", "connection", True),
        ("lost", "interrupted", False),
        ("server", "other", True),
        ("max_tokens", "output_reservation", False),
        ("timeout", "timeout", False),
    ],
)
def test_errors_have_the_kinds_of_real_ones(error: str, kind: str, *, retryable: bool) -> None:
    """What was said before the error has been streamed."""
    answer = answers(ScriptedProvider([{"text": "I was", "error": error}]))[0]
    assert answer.text == "I was"
    assert answer.error
    assert (answer.error.kind, answer.error.retryable) == (kind, retryable)


def test_overflow_carries_its_numbers() -> None:
    """Overflow recovery can be tested with it."""
    step = {"error": {"kind": "overflow", "window": 4096, "used": 5000}}
    error = answers(ScriptedProvider([step]))[0].error
    assert isinstance(error, ContextOverflow)
    assert (error.window, error.used) == (4096, 5000)


def test_running_out_of_steps_is_a_clear_error() -> None:
    """It says how many steps there were; `repeat` begins again."""
    error = answers(ScriptedProvider(["a"]), 2)[1].error
    assert error
    assert "no step left" in error.message
    said = answers(ScriptedProvider(["a", "b"], repeat=True), 5)
    assert [answer.text for answer in said] == ["a", "b", "a", "b", "a"]


def test_step_with_a_purpose_waits_for_it() -> None:
    """A summary in the script isn't taken by a turn."""
    provider = ScriptedProvider([{"text": "summary", "purpose": "compaction"}, "one", "two"])
    assert answers(provider, 1, purpose="turn")[0].text == "one"
    assert answers(provider, 1, purpose="compaction")[0].text == "summary"
    assert answers(provider, 1, purpose="turn")[0].text == "two"


def test_delay_can_be_cancelled() -> None:
    """A slow model doesn't hold who leaves."""

    async def run() -> None:
        await asyncio.wait_for(gather(ScriptedProvider([{"text": "x", "delay_s": 60}])), 0.05)

    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert time.monotonic() - begun < 5


def test_script_file_is_a_model_name(tmp_path: Path) -> None:
    """`scripted:path.yaml` needs no Python; each file has its own place."""
    path = tmp_path / "script.yaml"
    path.write_text(
        "context_window: 8192\nsteps:\n  - Hello.\n  - text: Bye.\n    calls: [{name: f}]\n",
        encoding="utf-8",
    )
    provider = ScriptedProvider()
    said = answers(provider, 2, model=str(path))
    assert [answer.text for answer in said] == ["Hello.", "Bye."]
    assert said[1].calls[0].arguments == {}
    assert asyncio.run(provider.describe(str(path))).context_window == 8192
    assert answers(ScriptedProvider.from_yaml(path))[0].text == "Hello."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("steps: [", "is not YAML"),
        ("7", "neither a list of steps"),
        ("- {txt: x}", "Step 1 .*txt"),
        ("- Hello\n- {text: x, error: boom}", "Step 2 .*boom"),
        ("stepz: []", "stepz|steps"),
    ],
)
def test_bad_script_file_says_where(tmp_path: Path, content: str, words: str) -> None:
    """The file and the step are named."""
    path = tmp_path / "script.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputValidation, match=words):
        ScriptedProvider.from_yaml(path)


def test_missing_script_file_is_named() -> None:
    """No traceback for a typo."""
    with pytest.raises(InputValidation, match=r"nowhere\.yaml"):
        answers(ScriptedProvider(), 1, model="nowhere.yaml")


def test_raising_at_once_is_before_the_first_token() -> None:
    """An error without text leaves nothing behind."""
    answer = answers(ScriptedProvider([{"error": "rate_limit"}]))[0]
    assert answer.text == ""
    assert isinstance(answer.error, ProviderError)
