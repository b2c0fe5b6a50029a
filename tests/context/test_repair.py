"""Broken histories as requests that every server takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_magics.context.projection import repair
from agent_magics.context.prompt import MISSING_RESULT
from agent_magics.core.events import AssistantMessage, ToolAnswered, ToolCalled, UserMessage
from agent_magics.core.messages import (
    Assistant,
    Image,
    Message,
    System,
    Text,
    ToolCall,
    ToolOutput,
    ToolResult,
    User,
)
from tests.context.story import Story, said, words
from tests.context.strict import assert_strict

DATA = Path(__file__).resolve().parent.parent / "data"
CASES = json.loads((DATA / "histories.json").read_text("utf-8"))
pytestmark = pytest.mark.req("inv3")


def parsed(arguments: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(arguments))
    except ValueError:
        return None


def message_of(raw: dict[str, Any]) -> Message:
    """Read a message in chat format; ids and broken arguments as they are."""
    content = raw["content"] or ""
    match raw["role"]:
        case "user":
            return User(content=said(content))
        case "tool":
            return ToolResult(call_id=raw["tool_call_id"], tool_name="f", content=content)
        case _:
            calls = [
                ToolCall(
                    call_id=call["id"],
                    tool_name=call["function"]["name"],
                    arguments=parsed(call["function"]["arguments"]),
                    raw=call["function"]["arguments"],
                )
                for call in raw.get("tool_calls", ())
            ]
            return Assistant(content=said(content) if content else (), calls=tuple(calls))


def by_events(messages: list[Message]) -> tuple[Message, ...]:
    """Send a history through a ledger: a user's message begins a turn."""
    story = Story()
    for message in messages:
        match message:
            case User(content=content):
                story.begin()
                story.write(UserMessage(content=content), turn_id=story.turn_id)
            case Assistant(content=content, calls=calls):
                story.write(AssistantMessage(content=content), turn_id=story.turn_id)
                for call in calls:
                    story.write(
                        ToolCalled(
                            call_id=call.call_id,
                            tool_name=call.tool_name,
                            arguments=call.arguments,
                            raw=call.raw,
                        ),
                        turn_id=story.turn_id,
                    )
            case ToolResult(call_id=call_id, content=content):
                output = ToolOutput(content=content)
                story.write(
                    ToolAnswered(call_id=call_id, tool_name="f", output=output),
                    turn_id=story.turn_id,
                )
    return story.project().messages


def by_import(messages: list[Message]) -> tuple[Message, ...]:
    story = Story()
    story.imported(messages)
    return story.project().messages


@pytest.mark.parametrize("way", [repair, by_events, by_import])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_broken_histories_become_strict_requests(case: dict[str, Any], way: Any) -> None:
    """By repair alone, from a ledger's events, and imported: the same results are sent."""
    messages = [message_of(raw) for raw in case["messages"]]
    sent = way(messages)
    assert_strict(sent)
    expect = case["expect"]
    results = [message for message in sent if isinstance(message, ToolResult)]
    made = [result for result in results if result.content == MISSING_RESULT]
    calls = [call for m in messages if isinstance(m, Assistant) for call in m.calls]
    assert len(results) == len(calls)
    if "synthesized" in expect:
        assert len(made) == len(expect["synthesized"])
        assert all(result.is_error for result in made)
    if "results_sent" in expect:
        kept = [call.call_id for call, result in zip(calls, results, strict=True)
                if result not in made]  # fmt: skip
        assert kept == expect["results_sent"]
    for content in expect.get("kept", {}).values():
        assert [result.content for result in results] == [content]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_users_and_models_said_is_all_there(case: dict[str, Any]) -> None:
    """Repair drops no word of either."""
    messages = [message_of(raw) for raw in case["messages"]]
    spoken = [words(m) for m in messages if not isinstance(m, ToolResult) and words(m).strip()]
    sent = [words(m) for m in repair(messages) if not isinstance(m, ToolResult) and words(m)]
    assert [text for text in sent if not text.startswith("[Note")] == spoken


def test_two_results_of_one_id_keep_their_order() -> None:
    """The first result belongs to the first call that has the id."""
    call = ToolCall(call_id="x", tool_name="f", arguments={})
    first, second = (ToolResult(call_id="x", tool_name="f", content=c) for c in ("one", "two"))
    sent = repair([User(content=said("q")), Assistant(calls=(call, call)), first, second])
    assert [words(message) for message in sent[2:]] == ["one", "two"]
    assert isinstance(sent[1], Assistant)
    assert [c.call_id for c in sent[1].calls] == ["x", "call-1"]


def test_names_that_servers_refuse_are_written_in_their_letters() -> None:
    """A model may call a tool by any name; the request must still be accepted."""
    calls = tuple(
        ToolCall(call_id=name, tool_name=name, arguments={}) for name in ("a b/c", "é" * 70, "")
    )
    sent = repair([User(content=said("q")), Assistant(calls=calls)])
    assert_strict(sent)
    assert [m.tool_name for m in sent if isinstance(m, ToolResult)] == [
        "a_b_c", "_" * 64, "unknown_tool",
    ]  # fmt: skip


def test_a_right_history_is_left_alone() -> None:
    """The very same objects, the system part too."""
    call = ToolCall(call_id="a", tool_name="f", arguments={"x": 1})
    messages = (
        System(text="be kind"),
        User(content=said("q"), seq=1),
        Assistant(calls=(call,), seq=2),
        ToolResult(call_id="a", tool_name="f", content="r", seq=3),
        Assistant(content=said("a"), seq=4),
    )
    assert all(sent is given for sent, given in zip(repair(messages), messages, strict=True))


IDS = st.sampled_from(["", " ", "a", "b", "call-1"])
NAMES = st.sampled_from(["f", "", "look up", "g" * 80])
TEXT = st.sampled_from(["", " ", "\n", "words", "more words"])
CONTENT = st.lists(
    TEXT.map(lambda text: Text(text=text))
    | st.sampled_from(["", "aGk="]).map(lambda data: Image(data=data, media_type="image/png")),
    max_size=2,
).map(tuple)
CALLS = st.lists(
    st.builds(ToolCall, call_id=IDS, tool_name=NAMES, arguments=st.none() | st.just({"x": 1})),
    max_size=3,
).map(tuple)
MESSAGES = st.lists(
    st.builds(System, text=TEXT)
    | st.builds(User, content=CONTENT)
    | st.builds(Assistant, content=CONTENT, calls=CALLS)
    | st.builds(ToolResult, call_id=IDS, tool_name=NAMES, content=TEXT, is_error=st.booleans()),
    max_size=12,
)


@given(MESSAGES)
def test_any_messages_become_a_strict_request(messages: list[Message]) -> None:
    """Repair is total, idempotent and deterministic."""
    sent = repair(messages)
    assert_strict(sent)
    assert repair(sent) == sent
    assert repair(list(messages)) == sent
    assert sum(isinstance(m, ToolResult) for m in sent) == sum(
        len(m.calls) for m in messages if isinstance(m, Assistant)
    )
