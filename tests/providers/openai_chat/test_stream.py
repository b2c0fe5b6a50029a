"""The stream corpus: every quirk gives the right answer, wherever reads are cut."""

from __future__ import annotations

import asyncio
import base64
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.server_sent_events import ServerEvent, server_events
from benchmarks import reading
from tests.providers.answers import (
    Gathered,
    anthropic_server,
    ask,
    gather,
    known_server,
    server,
    streamed,
)

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = json.loads((DATA / "streams.json").read_text("utf-8"))
pytestmark = pytest.mark.req("P1")


def seen(answer: Gathered) -> dict[str, Any]:
    usage = answer.done.usage if answer.done else answer.error and answer.error.usage
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "calls": [{"name": c.tool_name, "arguments": c.arguments} for c in answer.calls],
        "usage": usage
        and {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "end": answer.end,
    }


async def answers_for(reads: list[tuple[bytes, ...]], api: str = "openai") -> list[Gathered]:
    pending = iter(reads)
    serve = server if api == "openai" else anthropic_server
    provider = serve(lambda _: streamed(*next(pending)))
    try:
        return [await gather(provider) for _ in reads]
    finally:
        await provider.aclose()


def answer_to(*chunks: str) -> Gathered:
    body = tuple(f"data: {chunk}\n\n".encode() for chunk in chunks)
    return asyncio.run(answers_for([body]))[0]


async def events_of(*reads: bytes) -> list[ServerEvent]:
    async def chunks() -> AsyncIterator[bytes]:
        for read in reads:
            yield read

    return [event async for event in server_events(chunks())]


@pytest.mark.req("inv14", "P2")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_corpus_gives_the_right_answer(case: dict[str, Any]) -> None:
    """Whole and byte by byte, through the provider."""
    body = base64.b64decode(case["body_b64"])
    reads = [(body,), tuple(body[i : i + 1] for i in range(len(body)))]
    for answer in asyncio.run(answers_for(reads, case["api"])):
        assert seen(answer) == case["expect"]


@pytest.mark.req("inv14")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_corpus_is_the_same_events_cut_at_every_byte(case: dict[str, Any]) -> None:
    """Two reads with any cut between them give what one read gives."""
    body = base64.b64decode(case["body_b64"])

    async def run() -> None:
        whole = await events_of(body)
        for cut in range(1, len(body)):
            assert await events_of(body[:cut], body[cut:]) == whole

    asyncio.run(run())


def test_bare_carriage_returns_end_lines() -> None:
    """The third line end of the standard works, cut or not."""
    body = (
        b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\r\rdata: [DONE]\r\r'
    )
    reads: list[tuple[bytes, ...]] = [(body[:cut], body[cut:]) for cut in range(1, len(body))]
    assert {answer.text for answer in asyncio.run(answers_for(reads))} == {"Hi"}


def test_byte_order_mark_is_no_part_of_the_first_field() -> None:
    """A leading mark is dropped as the standard says."""
    body = b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    assert asyncio.run(answers_for([(body,)]))[0].text == "Hi"


def test_pair_of_surrogates_cut_between_two_deltas_is_one_character() -> None:
    """Servers that cut by UTF-16 units lose nothing."""
    answer = answer_to(
        '{"choices":[{"delta":{"content":"a\\ud83d"}}]}',
        '{"choices":[{"delta":{"content":"\\ude00b"},"finish_reason":"stop"}]}',
    )
    assert answer.text == "a\U0001f600b"


def test_half_a_surrogate_pair_at_the_end_is_replaced() -> None:
    """What never gets its other half is still text."""
    answer = answer_to('{"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}')
    assert answer.text == "a�"


def test_think_tag_in_the_middle_is_text() -> None:
    """Only a leading tag is reasoning; a user may ask about the others."""
    answer = answer_to(
        '{"choices":[{"delta":{"content":"The tag <think>x</think> marks"}}]}', "[DONE]"
    )
    assert (answer.text, answer.reasoning) == ("The tag <think>x</think> marks", "")


def test_thought_that_never_closes_is_reasoning() -> None:
    """A half closing tag at the end belongs to the thought."""
    answer = answer_to(
        '{"choices":[{"delta":{"content":"<think>on and on </thi"},"finish_reason":"length"}]}'
    )
    assert (answer.text, answer.reasoning, answer.end) == ("", "on and on </thi", "length")
    assert answer.done
    assert answer.done.reasoning
    assert (answer.done.reasoning.provider, answer.done.reasoning.model) == ("openai", "m")


def test_content_in_typed_parts_is_told_apart() -> None:
    """Lists of thinking and text parts are read as strings are."""
    answer = answer_to(
        '{"choices":[{"delta":{"content":[{"type":"thinking","thinking":'
        '[{"type":"text","text":"hm"}]},{"type":"text","text":"42"}]},"finish_reason":"stop"}]}'
    )
    assert (answer.text, answer.reasoning) == ("42", "hm")


def test_calls_get_ids_of_our_own() -> None:
    """Missing and reused ids give two calls that can be told apart."""
    piece = (
        '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},'
        '"finish_reason":"tool_calls"}]}'
    )
    answer = answer_to(piece, piece)
    assert [call.tool_name for call in answer.calls] == ["f", "f"]
    assert len({call.call_id for call in answer.calls}) == 2


def test_arguments_that_are_no_object_are_kept_and_not_executable() -> None:
    """A list is no set of arguments; what the model wrote stays to be shown."""
    answer = answer_to(
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
        '{"name":"f","arguments":"[1]"}}]},"finish_reason":"tool_calls"}]}'
    )
    assert answer.calls[0].arguments is None
    assert answer.calls[0].raw == "[1]"


def test_cached_and_reasoning_tokens_are_read() -> None:
    """The details of the usage reach the cost."""
    answer = answer_to(
        '{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,'
        '"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":7},'
        '"completion_tokens_details":{"reasoning_tokens":3}}}'
    )
    assert answer.done
    assert answer.done.usage == TokenUsage(
        input_tokens=9, output_tokens=4, cached_tokens=7, reasoning_tokens=3
    )


def test_line_that_is_no_json_is_left_out_with_a_warning() -> None:
    """One bad line doesn't lose the answer."""
    answer = answer_to("garbage", '{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}')
    assert answer.text == "x"
    assert answer.done
    assert len(answer.done.warnings) == 1


def test_error_event_of_plain_words_is_an_error() -> None:
    """`event: error` counts whatever its data is."""
    body = b"event: error\ndata: the model crashed\n\n"
    answer = asyncio.run(answers_for([(body,)]))[0]
    assert answer.end == "error"
    assert "the model crashed" in str(answer.error)


def test_json_answer_to_a_stream_request_is_used() -> None:
    """The answer counts, and nothing is asked twice."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(
            200,
            json={
                "choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
            },
        )

    answer = asyncio.run(gather(server(handle)))
    assert (answer.text, len(asked)) == ("whole", 1)
    assert answer.done
    assert answer.done.usage == TokenUsage(input_tokens=3, output_tokens=1)


def test_prompt_that_was_cut_silently_is_told() -> None:
    """A count far below the words sent means that the server cut the front away."""
    provider = server(
        lambda _: streamed(
            b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],'
            b'"usage":{"prompt_tokens":2048,"completion_tokens":1}}\n\n'
        )
    )
    answer = asyncio.run(gather(provider, ask("word " * 5_000)))
    assert answer.done
    assert "2,048" in answer.done.warnings[0]


@pytest.mark.parametrize(
    "text", ["word " * 5_000, "这是一个很长的句子" * 900], ids=["words", "Chinese"]
)
def test_ollamas_silent_cut_is_told_with_its_remedy(text: str) -> None:
    """It counts what was left of the prompt; the warning names the setting."""
    body = (
        'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],'
        '"usage":{"prompt_tokens":1024,"completion_tokens":1}}\n\n'
    )
    transport = httpx.MockTransport(lambda _: streamed(body.encode()))
    provider = known_server("ollama", transport=transport)
    answer = asyncio.run(gather(provider, ask(text)))
    assert answer.done
    (warning,) = answer.done.warnings
    assert "ollama read 1,024 tokens of a request of at least" in warning
    assert "OLLAMA_CONTEXT_LENGTH" in warning
    assert "num_ctx" in warning


@pytest.mark.parametrize("counted", [4_500, 9_000, 0])
def test_a_count_that_may_be_right_is_no_cut(counted: int) -> None:
    """Tokenizers differ, and nothing counted is nothing known."""
    usage = {"prompt_tokens": counted, "completion_tokens": 1}
    chunk = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    provider = server(lambda _: streamed(f"data: {json.dumps(chunk)}\n\n".encode()))
    answer = asyncio.run(gather(provider, ask("word " * 5_000)))
    assert answer.done
    assert answer.done.warnings == ()


@pytest.mark.parametrize("done", ["data: [DONE]\n\n", 'data: {"choices":[]}\n\ndata: [DONE]\n\n'])
def test_an_answer_without_a_word_is_an_empty_answer(done: str) -> None:
    """LM Studio gives one now and then; the engine says that the model returned nothing."""
    answer = asyncio.run(answers_for([(done.encode(),)]))[0]
    assert (answer.text, answer.end) == ("", "done")


@pytest.mark.parametrize("prompt", [{}, {"prompt_tokens": 0}, {"prompt_tokens": None}])
def test_a_prompt_of_no_tokens_was_not_counted(prompt: dict[str, Any]) -> None:
    """A count of the output alone is kept, and leaves the input unknown, not 0."""
    chunk = {
        "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {**prompt, "completion_tokens": 3},
    }
    answer = asyncio.run(answers_for([(f"data: {json.dumps(chunk)}\n\n".encode(),)]))[0]
    assert answer.done
    assert answer.done.usage == TokenUsage(output_tokens=3)


def test_counts_that_come_apart_are_put_together() -> None:
    """A chunk that tells the output alone leaves the input as it was told before."""
    counts: list[dict[str, Any]] = [{"prompt_tokens": 8}, {"completion_tokens": 3}]
    chunks: list[dict[str, Any]] = [{"choices": [], "usage": usage} for usage in counts]
    chunks.append({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    sent = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    answer = asyncio.run(answers_for([(sent.encode(),)]))[0]
    assert answer.done
    assert answer.done.usage == TokenUsage(input_tokens=8, output_tokens=3)


@pytest.mark.parametrize(
    ("reason", "end", "warnings"),
    [
        ("stop", "done", 0),
        ("length", "length", 0),
        ("model_length", "length", 0),
        ("content_filter", "done", 1),
        ("error", "interrupted", 0),
        ("something_new", "done", 0),
    ],
)
def test_reasons_to_finish(reason: str, end: str, warnings: int) -> None:
    """What was withheld is told; what a server broke off itself is not done, whatever follows."""
    chunk = {"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    answer = asyncio.run(answers_for([(body,)]))[0]
    assert (answer.text, answer.end) == ("x", end)
    assert len(answer.done.warnings if answer.done else ()) == warnings


@pytest.mark.parametrize("arguments", ["", "{}", '{"all": true}', {"all": True}, '{"al'])
def test_a_withheld_call_never_runs(arguments: Any) -> None:
    """What the filter took may be a part of it: the model gets a result, as of a half call."""
    function = {"name": "delete_files", "arguments": arguments}
    delta = {"tool_calls": [{"index": 0, "id": "c", "function": function}]}
    chunk = {"choices": [{"delta": delta, "finish_reason": "content_filter"}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    answer = asyncio.run(answers_for([(body,)]))[0]
    (call,) = answer.calls
    assert (call.tool_name, call.arguments) == ("delete_files", None)


@pytest.mark.parametrize(
    ("read", "allowed_bytes"),
    [(reading.ours_openai, 100_000), (reading.ours_anthropic, 900_000)],
    ids=["openai", "anthropic"],
)
def test_a_long_answer_takes_no_more_memory_than_a_short_one(
    read: Callable[[int], Awaitable[int]], allowed_bytes: int
) -> None:
    """What was given on is forgotten; Anthropic's blocks are kept once, to be sent back."""

    async def counted(count: int) -> int:
        return await read(count)

    def peak(count: int) -> int:
        tracemalloc.start()
        assert asyncio.run(counted(count)) == count
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(100)
    assert peak(6_000) - peak(500) < allowed_bytes
