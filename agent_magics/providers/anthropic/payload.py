"""A request in the words of Anthropic's messages, and what some models refuse of them.

Marks for the prompt cache (four at most) stand where the next request will look for them: at the
end of the system part, which covers the tools too, and at the ends of the last three messages. So
a growing conversation is read from the cache up to what is new, also where the block of news
before the last prompt (decision 4) is another one each turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, assert_never

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
from agent_magics.providers.openai_chat.payload import NOTE_MARK

LEFT_OUT = f"{NOTE_MARK}Earlier messages are left out here."
EMPTY = f"{NOTE_MARK}(empty)"
MARKED_MESSAGES = 3
DEFAULT_MAX_TOKENS = 8_192
LEAST_THINKING_TOKENS = 1_024

Concession = Literal["no_temperature", "thinking_by_budget", "no_thinking"]

_MARK = {"type": "ephemeral"}
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_THINKING_SHARES = {"low": 0.25, "medium": 0.5, "high": 0.75}
_REFUSING_STATUS = frozenset({400, 422})
_REFUSALS: tuple[tuple[Concession, re.Pattern[str]], ...] = (
    ("no_temperature", re.compile(r"\btemperature\b", re.IGNORECASE)),
    (
        "thinking_by_budget",
        re.compile(r"adaptive|output_config|effort|thinking\.[^ ]*display", re.IGNORECASE),
    ),
    ("no_thinking", re.compile(r"thinking|budget_tokens", re.IGNORECASE)),
)
_MOST_OUTPUT = re.compile(r"max_tokens: \d+ > (\d{2,9})\b")


def concession_for(error: ProviderError, made: frozenset[Concession]) -> Concession | None:
    """Name what to leave out or say otherwise, so that a model that refused may answer."""
    if error.kind != "other" or error.status not in _REFUSING_STATUS:
        return None
    for concession, wording in _REFUSALS:
        if concession not in made and wording.search(error.message):
            return concession
    return None


def most_output(error: ProviderError) -> int | None:
    """Read the largest `max_tokens` that a model allows out of its refusal."""
    found = _MOST_OUTPUT.search(error.message) if error.status in _REFUSING_STATUS else None
    return int(found.group(1)) if found else None


def payload_of(
    request: ChatRequest,
    made: frozenset[Concession] = frozenset(),
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    provider: str = "",
    known_as: str | None = None,
) -> dict[str, Any]:
    """Write a request as a JSON body for `POST …/messages`.

    `made`: the concessions this model wants. `max_tokens` holds where the request names none: the
    server needs a number. `known_as`: the model's whole name, by which its own thoughts are told.
    """
    system, messages = _parts(request, provider, known_as or request.model)
    body: dict[str, Any] = {
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
    if temperature is not None and "no_temperature" not in made and "thinking" not in body:
        body["temperature"] = temperature
    _mark(body)
    return body


# Messages


def _parts(request: ChatRequest, provider: str, model: str) -> tuple[str, list[dict[str, Any]]]:
    """The leading system texts, and the rest as turns of user and assistant."""
    messages = request.messages
    lead = 0
    while lead < len(messages) and isinstance(messages[lead], System):
        lead += 1
    texts = [message.text for message in messages[:lead] if isinstance(message, System)]
    system = "\n\n".join(text for text in texts if text.strip())
    return system, _alternating(messages[lead:], provider, model)


def _alternating(messages: Sequence[Message], provider: str, model: str) -> list[dict[str, Any]]:
    """Join neighbours of one role; the first is the user's, results stand before other words."""
    turns: list[dict[str, Any]] = []
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
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def _blocks(message: Message, provider: str, model: str) -> Iterator[dict[str, Any]]:
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


def _content(content: Content) -> Iterator[dict[str, Any]]:
    """Write blocks; the server refuses those without a visible character."""
    for block in content:
        match block:
            case Text(text=text):
                yield _text(text if text.strip() else EMPTY)
            case File(name=name, text=text):
                yield _text(f"File {name}:\n{text}")
            case Image(data=data, media_type=media_type):
                source = {"type": "base64", "media_type": media_type, "data": data}
                yield {"type": "image", "source": source}
            case _:
                assert_never(block)


def _assistant(message: Assistant, provider: str, model: str) -> Iterator[dict[str, Any]]:
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


def _said(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield _text(text)


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": _id(call.call_id),
        "name": call.tool_name,
        "input": call.arguments or {},
    }


def _id(call_id: str) -> str:
    return _ID.sub("_", call_id)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


# Thinking


def _thinking(
    request: ChatRequest,
    made: frozenset[Concession],
    max_tokens: int,
    messages: Sequence[dict[str, Any]],
) -> dict[str, Any]:
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


def _may_think(messages: Sequence[dict[str, Any]]) -> bool:
    """With a budget, a turn of tools that began without a thought can't go on with one."""
    for message in reversed(messages):
        blocks = message["content"]
        if message["role"] == "assistant":
            return "thinking" in blocks[0]["type"]
        if not any(block["type"] == "tool_result" for block in blocks):
            return True
    return True


# Cache


def _mark(body: dict[str, Any]) -> None:
    """Set the marks of the prompt cache on the blocks that can bear one."""
    ends = body.get("system") or body.get("tools")
    if ends:
        ends[-1]["cache_control"] = _MARK
    for message in body["messages"][-MARKED_MESSAGES:]:
        for block in reversed(message["content"]):
            if "thinking" not in block["type"]:
                block["cache_control"] = _MARK
                break
