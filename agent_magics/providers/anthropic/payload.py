"""A request as Anthropic's Messages API takes it.

Marks for the prompt cache (four at most) stand where the next request will look for them: at the
end of the system part, which covers the tools too, and at the ends of the last three messages. So
a growing conversation is read from the cache up to what is new, also where the block of news
before the last prompt (docs/decisions.md#4) is another one each turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from agent_magics.core.chat import ChatRequest, ToolDefinition
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
from agent_magics.providers.anthropic.adjustments import Adjustment
from agent_magics.providers.http.conversations import NOTE_MARK, file_text, split_system
from agent_magics.providers.http.json_values import JSONObject

LEFT_OUT = f"{NOTE_MARK}Earlier messages are left out here."
EMPTY = f"{NOTE_MARK}(empty)"
MARKED_MESSAGES = 3
DEFAULT_MAX_TOKENS = 8_192
LEAST_THINKING_TOKENS = 1_024

_MARK = {"type": "ephemeral"}
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_THINKING_SHARES = {"low": 0.25, "medium": 0.5, "high": 0.75}


def payload_of(
    request: ChatRequest,
    made: frozenset[Adjustment] = frozenset(),
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    provider: str = "",
    known_as: str | None = None,
) -> JSONObject:
    """Write a request as a JSON body for `POST …/messages`.

    `made`: the adjustments this model wants. `max_tokens` holds where the request names none: the
    server needs a number. `known_as`: the model's whole name, by which its own thoughts are told.
    """
    system, messages = _parts(request, provider, known_as or request.model)
    body: JSONObject = {
        "model": request.model,
        "max_tokens": request.params.max_tokens or max_tokens,
        "stream": True,
        "messages": messages,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice == "none":
            body["tool_choice"] = {"type": "none"}
    if system:
        body["system"] = [{"type": "text", "text": system}]
    body.update(_thinking(request, made, body["max_tokens"], messages))
    temperature = request.params.temperature
    # With thinking the server takes no temperature but 1.
    if temperature is not None and "no_temperature" not in made and "thinking" not in body:
        body["temperature"] = temperature
    _mark(body)
    return body


def _parts(request: ChatRequest, provider: str, model: str) -> tuple[str, list[JSONObject]]:
    """The leading system texts, and the rest as turns of user and assistant."""
    texts, rest = split_system(request.messages)
    system = "\n\n".join(text for text in texts if text.strip())
    return system, _alternating(rest, provider, model)


def _alternating(messages: Sequence[Message], provider: str, model: str) -> list[JSONObject]:
    """Join neighbours of one role; the first is the user's, results stand before other words."""
    turns: list[JSONObject] = []
    for message in messages:
        role = "assistant" if isinstance(message, Assistant) else "user"
        blocks = list(_blocks(message, provider, model))
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text(LEFT_OUT if turns else EMPTY)]})
    for turn in turns:
        # The server refuses a turn whose results stand behind other words.
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def _blocks(message: Message, provider: str, model: str) -> Iterator[JSONObject]:
    match message:
        case System(text=text):
            yield _text(NOTE_MARK + text)
        case User(content=content):
            yield from _content(content)
        case Assistant():
            yield from _assistant(message, provider, model)
        case ToolResult(call_id=call_id, content=text, is_error=is_error):
            result = {"type": "tool_result", "tool_use_id": _id(call_id), "content": text}
            yield {**result, "is_error": True} if is_error else result
        case _:
            assert_never(message)


def _content(content: Content) -> Iterator[JSONObject]:
    """Write blocks; the server refuses those without a visible character."""
    for block in content:
        match block:
            case Text(text=text):
                yield _text(text if text.strip() else EMPTY)
            case File():
                yield _text(file_text(block))
            case Image(data=data, media_type=media_type):
                source = {"type": "base64", "media_type": media_type, "data": data}
                yield {"type": "image", "source": source}
            case _:
                assert_never(block)


def _assistant(message: Assistant, provider: str, model: str) -> Iterator[JSONObject]:
    """Write what the model said; its own thoughts as they came, in their places among the rest."""
    text, calls = text_of(message.content), list(message.calls)
    thought = message.reasoning
    if thought is not None and _is_own(thought, provider, model):
        for block in thought.blocks:
            match block:
                case {"type": "text", "characters": int(size)}:
                    piece, text = text[:size], text[size:]
                    yield from _said(piece)
                case {"type": "tool_use"}:
                    yield from map(_call, calls[:1])
                    del calls[:1]
                case _:
                    yield block
    yield from _said(text)
    yield from map(_call, calls)


def _is_own(reasoning: Reasoning, provider: str, model: str) -> bool:
    return (reasoning.provider, reasoning.model) == (provider, model)


def _said(text: str) -> Iterator[JSONObject]:
    if text.strip():
        yield _text(text)


def _call(call: ToolCall) -> JSONObject:
    return {
        "type": "tool_use",
        "id": _id(call.call_id),
        "name": call.tool_name,
        "input": call.arguments or {},
    }


def _id(call_id: str) -> str:
    return _ID.sub("_", call_id)


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _tool(tool: ToolDefinition) -> JSONObject:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _thinking(
    request: ChatRequest,
    made: frozenset[Adjustment],
    max_tokens: int,
    messages: Sequence[JSONObject],
) -> JSONObject:
    """Ask for thoughts where the slot names an effort; older models want a number of tokens."""
    effort = request.params.reasoning_effort
    if effort is None or "no_thinking" in made:
        return {}
    if "thinking_by_budget" not in made:
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"thinking": thinking, "output_config": {"effort": effort}}
    budget = int(max_tokens * _THINKING_SHARES[effort])
    if budget < LEAST_THINKING_TOKENS or not _may_think(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_think(messages: Sequence[JSONObject]) -> bool:
    """With a budget, a turn of tools that began without a thought can't go on with one."""
    for message in reversed(messages):
        blocks = message["content"]
        if message["role"] == "assistant":
            return "thinking" in blocks[0]["type"]
        if not any(block["type"] == "tool_result" for block in blocks):
            return True
    return True


def _mark(body: JSONObject) -> None:
    """Set the marks of the prompt cache on the blocks that can bear one."""
    ends = body.get("system") or body.get("tools")
    if ends:
        ends[-1]["cache_control"] = _MARK
    for message in body["messages"][-MARKED_MESSAGES:]:
        for block in reversed(message["content"]):
            if "thinking" not in block["type"]:
                block["cache_control"] = _MARK
                break
