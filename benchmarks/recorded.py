"""Recorded conversations of real tool work, as a script: what the model and its tools said.

From the folder of design data beside a checkout (its README tells where they come from).
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import OnMain, ToolInput

CONVERSATIONS = Path(__file__).parents[2] / "shared" / "data" / "airline_conversations.jsonl.gz"
Conversation = list[dict[str, Any]]


class RecordedTool:
    """A tool that answers what it answered in the recording."""

    description = "A recorded tool."
    parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - the port's shape
    is_mutating = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: deque[str] = deque()

    async def execute(self, call: ToolInput, on_main: OnMain) -> ToolOutput:  # noqa: ARG002 - the port's
        return ToolOutput(content=self.answers.popleft())


@dataclass(frozen=True)
class Script:
    """Conversations end to end: prompts, the model's steps for a scripted provider, the tools."""

    prompts: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    tools: dict[str, RecordedTool] = field(default_factory=dict)


def read_conversations(path: Path = CONVERSATIONS, count: int | None = None) -> list[Conversation]:
    """Read the first `count` conversations of a file, all where None."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["messages"] for line in islice(lines, count)]


def script_of(conversations: Sequence[Conversation]) -> Script:
    """Part a recording into prompts, answers of the model, and answers of its tools."""
    script = Script()
    names: dict[str, str] = defaultdict(str)
    for message in (each for conversation in conversations for each in ended(conversation)):
        match message["role"]:
            case "user":
                script.prompts.append(message["content"] or "(nothing)")
            case "assistant":
                calls = message.get("tool_calls") or []
                names.update({call["id"]: call["function"]["name"] for call in calls})
                script.steps.append(_step(message["content"], calls))
            case "tool":
                name = names[message["tool_call_id"]]
                tool = script.tools.setdefault(name, RecordedTool(name))
                tool.answers.append(message["content"])
            case _:
                pass
    return script


def ended(conversation: Conversation) -> Conversation:
    """Give a conversation its last word where the recording stops before it."""
    if conversation[-1]["role"] == "assistant" and not conversation[-1].get("tool_calls"):
        return conversation
    return [*conversation, {"role": "assistant", "content": "(the recording ends here)"}]


def _step(content: str | None, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "text": content or "",
        "chunks": 3,
        "calls": [dict(call["function"]) for call in calls],
    }
