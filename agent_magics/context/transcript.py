"""A conversation as plain text for a model that summarises it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from agent_magics.context.prompt import within_role
from agent_magics.core.messages import (
    Assistant,
    ContentBlock,
    File,
    Image,
    Message,
    System,
    Text,
    ToolResult,
    User,
)

CUT = "…"


def transcript(
    messages: Sequence[Message],
    *,
    max_tool_result_chars: int = 500,
    max_chars: int = 30_000,
) -> str:
    """Write messages as lines, an empty line between two.

    A tool result keeps its first `max_tool_result_chars` characters. The whole keeps its newest
    messages, at most `max_chars` characters; of a newest message that is longer alone, its end.
    Arguments of calls and private reasoning are left out. A line that begins like
    another speaker's is marked, so that no tool speaks as the user.
    """
    kept: list[str] = []
    room = max_chars
    for message in reversed(messages):
        line = _line(message, max_tool_result_chars)
        if not line:
            continue
        if len(line) > room:
            if not kept:
                kept.append(_end_of(line, max_chars))
            break
        kept.append(line)
        room -= len(line) + 2
    return "\n\n".join(reversed(kept))


def _line(message: Message, max_tool_result_chars: int) -> str:
    match message:
        case System(text=text):
            return _labelled("System", text)
        case User(content=content):
            return _labelled("User", _said(content))
        case Assistant(content=content, calls=calls):
            tools = [f"[Tool: {call.tool_name}]" for call in calls]
            return _labelled("Assistant", " ".join(filter(None, [_said(content), *tools])))
        case ToolResult(call_id=call_id, content=text, is_error=is_error):
            label = "Tool Error" if is_error else "Tool Result"
            shown = text[:max_tool_result_chars]
            cut = CUT if len(text) > len(shown) else ""
            return f"{label} [{call_id}]: {within_role(shown)}{cut}"
        case _:
            assert_never(message)


def _labelled(label: str, text: str) -> str:
    return f"{label}: {within_role(text)}" if text.strip() else ""


def _said(content: Sequence[ContentBlock]) -> str:
    return " ".join(filter(None, (_shown(block) for block in content)))


def _shown(block: ContentBlock) -> str:
    match block:
        case Text(text=text):
            return text
        case Image():
            return "[image]"
        case File():
            return "[file]"
        case _:
            assert_never(block)


def _end_of(line: str, max_chars: int) -> str:
    label, _, text = line.partition(": ")
    room = max_chars - len(label) - len(CUT) - 2
    return f"{label}: {CUT}{text[-room:]}" if room > 0 else ""
