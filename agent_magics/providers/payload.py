"""A request in the words of OpenAI's chat completions, and what some servers refuse of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from agent_magics.core.chat import ChatRequest, ToolDefinition
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import (
    Assistant,
    Content,
    File,
    Image,
    Message,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
    text_of,
)

NOTE_MARK = "[note] "

Concession = Literal["no_stream_options", "no_system_role", "max_completion_tokens"]

_REFUSALS: tuple[tuple[Concession, re.Pattern[str]], ...] = (
    ("no_stream_options", re.compile(r"stream_options|include_usage", re.IGNORECASE)),
    ("max_completion_tokens", re.compile(r"max_completion_tokens", re.IGNORECASE)),
    (
        "no_system_role",
        re.compile(r"system (?:role|message|instruction)s? (?:is |are )?not", re.IGNORECASE),
    ),
)
_REFUSING_STATUS = frozenset({400, 404, 422, 500, 501})


def concession_for(error: ProviderError, made: frozenset[Concession]) -> Concession | None:
    """Name what to leave out so that a server that refused a request may take it."""
    if error.kind != "other" or error.status not in _REFUSING_STATUS:
        return None
    for concession, wording in _REFUSALS:
        if concession not in made and wording.search(error.message):
            return concession
    return None


def payload_of(
    request: ChatRequest,
    made: frozenset[Concession] = frozenset(),
    *,
    sends_tools: bool = True,
    reasoning_field: str | None = None,
    provider: str = "",
) -> dict[str, Any]:
    """Write a request as a JSON body for `POST …/chat/completions`.

    `made`: the concessions this server wants. `reasoning_field`: under which name the server
    wants its own reasoning back (None: it doesn't).
    """
    messages = list(_messages(request.messages, reasoning_field, provider, request.model))
    if "no_system_role" in made:
        messages = _without_system(messages)
    body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
    if "no_stream_options" not in made:
        body["stream_options"] = {"include_usage": True}
    if request.tools and sends_tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = "none"
    params = request.params
    limit = "max_completion_tokens" if "max_completion_tokens" in made else "max_tokens"
    settings = {
        "temperature": params.temperature,
        limit: params.max_tokens,
        "reasoning_effort": params.reasoning_effort,
    }
    body.update({name: value for name, value in settings.items() if value is not None})
    return body


def _messages(
    messages: Sequence[Message], reasoning_field: str | None, provider: str, model: str
) -> Iterator[dict[str, Any]]:
    """One system message first; a later one is a marked note of the user (decision 2)."""
    lead = 0
    while lead < len(messages) and isinstance(messages[lead], System):
        lead += 1
    parts = [message.text for message in messages[:lead] if isinstance(message, System)]
    if parts:
        yield {"role": "system", "content": "\n\n".join(parts)}
    for message in messages[lead:]:
        match message:
            case System(text=text):
                yield {"role": "user", "content": NOTE_MARK + text}
            case User(content=content):
                yield {"role": "user", "content": _content(content)}
            case ToolResult(call_id=call_id, content=text):
                yield {"role": "tool", "tool_call_id": call_id, "content": text}
            case Assistant():
                yield _assistant(message, reasoning_field, provider, model)


def _assistant(
    message: Assistant, reasoning_field: str | None, provider: str, model: str
) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": text_of(message.content)}
    if message.calls:
        said["tool_calls"] = [_call(call) for call in message.calls]
        said["content"] = said["content"] or None
    thought = message.reasoning
    if reasoning_field and thought is not None and _is_own(thought, provider, model):
        said[reasoning_field] = thought.text
    return said


def _is_own(reasoning: Reasoning, provider: str, model: str) -> bool:
    return (reasoning.provider, reasoning.model) == (provider, model)


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments or {}, ensure_ascii=False)
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool_name, "arguments": arguments},
    }


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def _content(content: Content) -> str | list[dict[str, Any]]:
    """A plain string where there is no image: every server takes that."""
    parts = [_part(block) for block in content]
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts)


def _part(block: Text | Image | File) -> dict[str, Any]:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case File(name=name, text=text):
            return {"type": "text", "text": f"File {name}:\n{text}"}
        case Image(data=data, media_type=media_type):
            url = f"data:{media_type};base64,{data}"
            return {"type": "image_url", "image_url": {"url": url}}


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the system text before the first user message's own text."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, rest = messages[0]["content"], messages[1:]
    if rest and rest[0]["role"] == "user" and isinstance(rest[0]["content"], str):
        first = {"role": "user", "content": f"{system}\n\n{rest[0]['content']}"}
        return [first, *rest[1:]]
    return [{"role": "user", "content": system}, *rest]
