"""What is no summary: refusals, blanks, tool calls, answers to the conversation."""

from __future__ import annotations

import time

import pytest

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.summary_check import fault_of

pytestmark = pytest.mark.req("inv6", "dec36", "C12")
GOOD = "\n".join(f"## {heading}\nSomething about it." for heading in SUMMARY_HEADINGS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD, id="all nine"),
        pytest.param("Here is the summary:\n\n" + GOOD, id="with an introduction"),
        pytest.param(GOOD.replace("## ", "**").replace("\nSome", "**\nSome"), id="bold headings"),
        pytest.param(GOOD.replace("## ", "# 1. "), id="numbered"),
        pytest.param("## Objective: tea\n## Progress: boiled\n## Decisions: milk", id="inline"),
        pytest.param(
            GOOD.replace("Something", "The assistant said: I cannot open /tmp/x. Something"),
            id="tells of a refusal",
        ),
        pytest.param(
            GOOD + "\nThe model wrote <tool_call> markup, which the parser dropped.",
            id="tells of a tool call",
        ),
        pytest.param(
            GOOD + "\n" + "Kept fact. " * 100 + "No conversation was provided by the inbox tool.",
            id="a long one tells of nothing found",
        ),
    ],
)
def test_a_summary_is_taken(text: str) -> None:
    """At least three of the headings, and nothing before them that is no summary."""
    assert fault_of(text) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "it is blank", id="empty"),
        pytest.param(" \n\t", "it is blank", id="blanks"),
        pytest.param("I'm sorry, but I can't help with that.", "it is a refusal", id="sorry"),
        pytest.param("I cannot summarise this content.", "it is a refusal", id="cannot"),
        pytest.param("As an AI language model, I …", "it is a refusal", id="as an AI"),
        pytest.param("I'm unable to process it.\n\n" + GOOD, "it is a refusal", id="then form"),
        pytest.param("抱歉,我无法完成这个请求。", "it is a refusal", id="Chinese"),
        pytest.param("Leider kann ich das nicht.", "it is a refusal", id="German"),
        pytest.param("How can I help you today?", "it is a refusal", id="chats"),
        pytest.param(
            "There is no conversation history provided.",
            "it says there was nothing to summarise",
            id="saw nothing",
        ),
        pytest.param(
            "Please provide the conversation you'd like me to summarize.",
            "it says there was nothing to summarise",
            id="asks for it",
        ),
        pytest.param(
            "## Objective\nNone\n## Progress\nNo messages were shared.\n## Decisions\nNone",
            "it says there was nothing to summarise",
            id="saw nothing, in form",
        ),
        pytest.param(
            '{"name": "read_file", "arguments": {"path": "x"}}', "it is a tool call", id="JSON"
        ),
        pytest.param(
            '```json\n[{"name": "f", "arguments": {}}]\n```', "it is a tool call", id="fenced"
        ),
        pytest.param("<tool_call>{}</tool_call>", "it is a tool call", id="Hermes"),
        pytest.param("[TOOL_CALLS] [{}]", "it is a tool call", id="Mistral"),
        pytest.param("The user likes tea.", "it has 0 of the 9 headings", id="no form"),
        pytest.param(
            "## Objective\ntea\n## Progress\nboiled", "it has 2 of the 9 headings", id="two"
        ),
        pytest.param(
            "## Objective\ntea\n## Objective\ntea\n## Objective",
            "it has 1 of the 9 headings",
            id="one, three times",
        ),
    ],
)
def test_what_is_no_summary_is_refused(text: str, fault: str) -> None:
    """Each kind is named."""
    assert fault_of(text) == fault


@pytest.mark.parametrize("begin", ["[", "```", "{", "", "no ", "I "])
def test_no_answer_keeps_the_judge_busy(begin: str) -> None:
    """A model that writes blanks without end is refused in a time that grows with their number."""
    begun = time.process_time()
    assert fault_of(begin + " " * 200_000 + "x") == "it has 0 of the 9 headings"
    assert time.process_time() - begun < 2
