"""What is sent to Anthropic: the conversation, the marks of its cache, thoughts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import (
    File,
    Image,
    Message,
    Reasoning,
    System,
    Text,
    User,
)
from agent_magics.core.slots import ModelParams
from agent_magics.providers.anthropic.adjustments import Adjustment
from agent_magics.providers.anthropic.payload import EMPTY, LEFT_OUT, payload_of
from tests.providers.answers import (
    answer_of,
    anthropic_server,
    ask,
)
from tests.providers.anthropic.examples import (
    MARK,
    START,
    STOP,
    TOOL,
    asked,
    body_of,
    called,
    events,
    hello,
    marked,
    opened,
    piece,
    plain,
    refused,
    result,
    said,
    stopped,
    user,
)

pytestmark = pytest.mark.req("P2")


# What is sent


def test_conversation_is_written_in_the_servers_words() -> None:
    """Every kind of message, results first, neighbours joined, the system part by itself."""
    body = body_of(
        System(text="one"),
        System(text="two"),
        User(content=(Text(text="look"), File(name="a.txt", media_type="text/plain", text="A"))),
        said("I look", called("c3"), called("c.4")),
        result("c3"),
        System(text="the plan changed"),
        result("c.4", "no", is_error=True),
        User(content=(Text(text="and this"), Image(data="QUJD", media_type="image/png"))),
        tools=(TOOL,),
        tool_choice="none",
        params=ModelParams(temperature=0.0, max_tokens=5),
    )
    use = {"type": "tool_use", "name": "f", "input": {"x": 1}}
    answer = {"type": "tool_result", "content": "done"}
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert [plain(message) for message in body["messages"]] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "text", "text": "File a.txt:\nA"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look"},
                {**use, "id": "c3"},
                {**use, "id": "c_4"},
            ],
        },
        {
            "role": "user",
            "content": [
                {**answer, "tool_use_id": "c3"},
                {**answer, "tool_use_id": "c_4", "content": "no", "is_error": True},
                {"type": "text", "text": "[note] the plan changed"},
                {"type": "text", "text": "and this"},
                {"type": "image", "source": source},
            ],
        },
    ]
    assert {k: v for k, v in body.items() if k != "messages"} == {
        "model": "m",
        "max_tokens": 5,
        "stream": True,
        "temperature": 0.0,
        "tool_choice": {"type": "none"},
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "one\n\ntwo", "cache_control": MARK}],
    }


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        ([said("hi"), user("go on")], [("user", LEFT_OUT), ("assistant", "hi"), ("user", "go on")]),
        ([user("a"), said(" \n"), user("b")], [("user", "a|b")]),
        ([user(" ")], [("user", EMPTY)]),
        ([System(text="only")], [("user", EMPTY)]),
        ([user("a"), user("b"), said("c"), said("d")], [("user", "a|b"), ("assistant", "c|d")]),
    ],
    ids=["begins with an answer", "empty answer", "blank", "nothing", "neighbours"],
)
def test_turns_take_their_turns(messages: list[Message], written: list[tuple[str, str]]) -> None:
    """The server wants the user first, the two in turn, and no text without a character."""
    made = body_of(*messages)["messages"]
    assert [(m["role"], "|".join(b["text"] for b in m["content"])) for m in made] == written


@pytest.mark.slow
def test_the_official_types_take_what_is_sent() -> None:
    """The package `anthropic` describes requests; ours is one, thoughts, images and all."""
    pydantic = pytest.importorskip("pydantic")
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    thought = Reasoning(
        text="hm",
        provider="anthropic",
        model="m",
        blocks=(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "xyz"},
        ),
    )
    body = body_of(
        System(text="be kind"),
        User(content=(Text(text="look"), Image(data="QUJD", media_type="image/png"))),
        said("I look", called("c3"), thought=thought),
        result("c3", is_error=True),
        tools=(TOOL,),
        tool_choice="none",
        params=ModelParams(reasoning_effort="high"),
    )
    types = pydantic.TypeAdapter(MessageCreateParamsStreaming)
    assert read_out(types.validate_python(body)) == body
    body["messages"][0]["content"][0]["type"] = "words"
    with pytest.raises(pydantic.ValidationError):
        read_out(types.validate_python(body))


def read_out(value: Any) -> Any:
    """Read what pydantic validates only as it is read."""
    if isinstance(value, dict):
        return {name: read_out(inner) for name, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [read_out(inner) for inner in value]


def test_same_request_is_the_same_bytes() -> None:
    """Nothing random goes out, so that prefixes are cached and replays are found."""
    _, (first, second) = asked(lambda _: hello(), ask(tools=(TOOL,)), ask(tools=(TOOL,)))
    assert first == second


# The cache


def flat(body: dict[str, Any]) -> tuple[list[tuple[str, str]], set[int]]:
    """The blocks of a request's messages in their order, and which of them bear a mark."""
    blocks = [(m["role"], block) for m in body["messages"] for block in m["content"]]
    marks = {at for at, (_, block) in enumerate(blocks) if "cache_control" in block}
    shown = [{k: v for k, v in b.items() if k != "cache_control"} for _, b in blocks]
    return [(role, json.dumps(b)) for (role, _), b in zip(blocks, shown, strict=True)], marks


def paid(before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many blocks the server reads anew: it looks back from a mark, 20 blocks at most."""
    sent, written = flat(before)
    now, marks = flat(after)
    found = [
        at
        for at in written
        if sent[: at + 1] == now[: at + 1] and any(at <= mark <= at + 20 for mark in marks)
    ]
    assert len(marks) <= 3
    assert "system 0" in marked(after)
    return len(now) - max(found, default=-1) - 1


@pytest.mark.parametrize("parallel", [1, 30])
def test_a_growing_conversation_pays_only_for_its_tail(parallel: int) -> None:
    """Whatever a turn adds, the next request reads what the last one sent from the cache."""
    ids = [f"c{number}" for number in range(parallel)]
    calls, results = map(called, ids), map(result, ids)
    history: list[Message] = [System(text="be kind"), user("one")]
    steps: list[list[Message]] = [
        [said("a", *calls), *results],
        [said("b"), user("two")],
        [said("c", called("x")), result("x")],
        [said("", called("y")), result("y")],
    ]
    for step in steps:
        before = body_of(*history, tools=(TOOL,))
        history += step
        after = body_of(*history, tools=(TOOL,))
        assert paid(before, after) == len(flat(after)[0]) - len(flat(before)[0])


def test_news_before_a_prompt_cost_only_what_follows_the_answer_before() -> None:
    """The block of news is another one each turn (D 4); the last answer before it bears a mark."""
    old: list[Message] = [System(text="s")]
    for _ in range(20):
        old += [user("one"), said("a")]
    first = body_of(*old, user("news 1"), user("two"))
    second = body_of(*old, user("two"), said("b"), user("news 2"), user("three"))
    assert paid(first, second) == 4


def test_marks_are_four_at_most_and_never_on_a_thought() -> None:
    """The server refuses a fifth one, and one on a block of thinking."""
    thought = Reasoning(
        text="",
        provider="anthropic",
        model="m",
        blocks=({"type": "redacted_thinking", "data": "x"},),
    )
    body = body_of(
        System(text="s"),
        user("1"),
        said("2"),
        user("3"),
        said("", thought=thought),
        user("5"),
        tools=(TOOL,),
    )
    assert marked(body) == ["system 0", "messages 2.0", "messages 4.0"]
    assert marked(body_of(user("1"), tools=(TOOL,))) == ["tools 0", "messages 0.0"]


# Thoughts


def test_thoughts_come_back_as_they_came() -> None:
    """Signatures, hidden ones, and their places between text and calls are kept."""
    answer = answer_of(
        anthropic_server(
            lambda _: events(
                START,
                opened(0, type="thinking", thinking="", signature=""),
                piece(0, type="thinking_delta", thinking="Let me "),
                piece(0, type="thinking_delta", thinking="see."),
                piece(0, type="signature_delta", signature="sig-a"),
                opened(1, type="redacted_thinking", data="hidden"),
                opened(2, type="text", text=""),
                piece(2, type="text_delta", text="I look."),
                opened(3, type="thinking", thinking="", signature=""),
                piece(3, type="signature_delta", signature="sig-b"),
                opened(4, type="tool_use", id="t", name="f", input={}),
                piece(4, type="input_json_delta", partial_json='{"x": 1}'),
                stopped("tool_use", output_tokens=9),
                STOP,
            )
        )
    )
    assert answer.done
    thought = answer.done.reasoning
    assert thought
    stored = msgspec.json.decode(msgspec.json.encode(thought), type=Reasoning)
    body = body_of(user("hi"), said(answer.text, called("c9"), thought=stored), result("c9"))
    assert plain(body["messages"][1])["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "sig-a"},
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "I look."},
        {"type": "thinking", "thinking": "", "signature": "sig-b"},
        {"type": "tool_use", "id": "c9", "name": "f", "input": {"x": 1}},
    ]
    assert answer.reasoning == "Let me see."


@pytest.mark.req("dec5")
def test_thoughts_go_only_to_who_made_them() -> None:
    """Another model's, another provider's, and those that were cut off are left out."""
    own = Reasoning(
        text="hm",
        provider="anthropic",
        model="m",
        blocks=({"type": "thinking", "thinking": "hm", "signature": "s"},),
    )
    for thought in (
        msgspec.structs.replace(own, model="n"),
        msgspec.structs.replace(own, provider="openai"),
        Reasoning(text="hm", provider="anthropic", model="m"),
    ):
        body = body_of(user("hi"), said("Hello", thought=thought), user("more"))
        assert "hm" not in json.dumps(body)
    assert '"hm"' in json.dumps(body_of(user("hi"), said("Hello", thought=own), user("more")))


def test_a_thought_cut_by_length_is_not_sent_back() -> None:
    """It bears no signature, and the server would refuse the whole conversation for it."""
    answer = answer_of(
        anthropic_server(
            lambda _: events(
                START,
                opened(0, type="thinking", thinking="", signature=""),
                piece(0, type="thinking_delta", thinking="on and on"),
                stopped("max_tokens", output_tokens=9),
                STOP,
            )
        )
    )
    assert (answer.reasoning, answer.end) == ("on and on", "length")
    assert answer.done
    assert answer.done.reasoning is None


def test_a_thought_that_can_not_be_kept_as_it_is_is_not_sent_back() -> None:
    """The ledger holds no NUL; a changed thought would be refused with the whole conversation."""
    answer = answer_of(
        anthropic_server(
            lambda _: events(
                START,
                opened(0, type="thinking", thinking="a\u0000b", signature="s"),
                opened(1, type="text", text="Hello"),
                stopped("end_turn"),
            )
        )
    )
    assert answer.text == "Hello"
    assert answer.done
    assert answer.done.reasoning is None


@pytest.mark.parametrize(
    ("refusals", "sent"),
    [
        ([], {"thinking": {"type": "adaptive", "display": "summarized"}}),
        (
            ["adaptive thinking is not supported on this model"],
            {"thinking": {"type": "enabled", "budget_tokens": 4_096}},
        ),
        (
            ["output_config.effort: Extra inputs are not permitted", "thinking: not supported"],
            {},
        ),
    ],
    ids=["adaptive", "budget", "none"],
)
def test_an_effort_is_asked_for_as_the_model_takes_it(
    refusals: list[str], sent: dict[str, Any]
) -> None:
    """What a model refuses is said otherwise once, and remembered."""
    left = list(refusals)
    request = ask(params=ModelParams(reasoning_effort="medium", temperature=0.3))
    answers, bodies = asked(lambda _: refused(left.pop(0)) if left else hello(), request, request)
    assert [answer.text for answer in answers] == ["Hello", "Hello"]
    assert len(bodies) == len(refusals) + 2
    for body in bodies[-2:]:
        assert {k: body[k] for k in ("thinking",) if k in body} == sent
        assert ("output_config" in body) is (not refusals)
        assert ("temperature" in body) is ("thinking" not in body)


def test_a_budget_is_left_out_where_a_turn_began_without_a_thought() -> None:
    """The server refuses a turn of tools that begins to think in its middle."""
    request = ChatRequest(
        model="m",
        messages=(user("hi"), said("", called("c1")), result("c1")),
        params=ModelParams(reasoning_effort="low"),
    )
    by_budget: frozenset[Adjustment] = frozenset({"thinking_by_budget"})
    assert "thinking" not in payload_of(request, by_budget)
    new = msgspec.structs.replace(request, messages=(*request.messages, said("a"), user("new")))
    assert payload_of(new, by_budget)["thinking"]["budget_tokens"] == 2_048
