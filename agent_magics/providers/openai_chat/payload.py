"""A request as OpenAI's Chat Completions, in the dialect of the server that gets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

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
from agent_magics.providers.http.conversations import NOTE_MARK, file_text, split_system
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.openai_chat.adjustments import Adjustment
from agent_magics.providers.presets import Quirks

NO_QUIRKS = Quirks()
Author = tuple[str, str]
AFTER_TOOL = "[the results are read]"
REASONING_DETAILS = "reasoning_details"
EXTRA_CONTENT = "extra_content"


def payload_of(
    request: ChatRequest,
    made: frozenset[Adjustment] = frozenset(),
    *,
    quirks: Quirks = NO_QUIRKS,
    author: Author = ("", ""),
) -> JSONObject:
    """Write a request as a JSON body for `POST …/chat/completions`.

    `quirks` is what is known of the server, `made` the adjustments that it wanted since; `author`
    is the provider and model whose own reasoning may be sent (docs/decisions.md#5).
    """
    field = _reasoning_field(quirks, made)
    messages = list(_messages(request.messages, field, author))
    if field and "reasoning_everywhere" in made:
        for message in messages:
            if message["role"] == "assistant":
                message.setdefault(field, "")
    if quirks.assistant_after_tool or "assistant_after_tool" in made:
        messages = list(_with_answers(messages))
    messages = _with_role(messages, "user" if "no_system_role" in made else quirks.system_role)
    body: JSONObject = {"model": request.model, "messages": messages, "stream": True}
    if quirks.stream_options and "no_stream_options" not in made:
        body["stream_options"] = {"include_usage": True}
    if quirks.tools:
        body.update(_tools(request, quirks, made))
    params = request.params
    settings = {
        "temperature": None if "no_temperature" in made else params.temperature,
        _limit(quirks, made): params.max_tokens,
        "reasoning_effort": None if "no_reasoning_effort" in made else params.reasoning_effort,
    }
    body.update({name: value for name, value in settings.items() if value is not None})
    return body


def _reasoning_field(quirks: Quirks, made: frozenset[Adjustment]) -> str:
    if "no_reasoning" in made:
        return ""
    return quirks.reasoning or ("reasoning_content" if "reasoning_everywhere" in made else "")


def _limit(quirks: Quirks, made: frozenset[Adjustment]) -> str:
    if "max_completion_tokens" in made:
        return "max_completion_tokens"
    return "max_tokens" if "max_tokens" in made else quirks.limit


def _tools(
    request: ChatRequest, quirks: Quirks, made: frozenset[Adjustment]
) -> Iterator[tuple[str, object]]:
    """List the tools; none where a call is forbidden and the server can't be told that."""
    is_forbidden = request.tool_choice == "none"
    knows_none = quirks.tool_choice_none and "no_tool_choice" not in made
    if not request.tools or (is_forbidden and not knows_none):
        return
    yield "tools", [_tool(tool) for tool in request.tools]
    if is_forbidden:
        yield "tool_choice", "none"
    if quirks.parallel_tools is not None and "no_parallel_tools" not in made:
        yield "parallel_tool_calls", quirks.parallel_tools


def _messages(messages: Sequence[Message], field: str, author: Author) -> Iterator[JSONObject]:
    """Write one system message first, then the rest."""
    system, rest = split_system(messages)
    if system:
        yield {"role": "system", "content": "\n\n".join(system)}
    ids = _CallIds()
    for message in rest:
        match message:
            case System(text=text):
                yield {"role": "user", "content": NOTE_MARK + text}
            case User(content=content):
                yield {"role": "user", "content": _content(content)}
            case ToolResult(call_id=call_id, content=text):
                yield {"role": "tool", "tool_call_id": ids.of(call_id), "content": text}
            case Assistant():
                yield _assistant(message, field, author, ids)


class _CallIds:
    """Writes call ids as every server takes them: Mistral's wants nine letters and digits."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, call_id: str) -> str:
        return self._known.setdefault(call_id, f"call{len(self._known) + 1:05d}")


def _assistant(message: Assistant, field: str, author: Author, ids: _CallIds) -> JSONObject:
    said: JSONObject = {"role": "assistant", "content": text_of(message.content)}
    thought = message.reasoning
    if thought is not None and (thought.provider, thought.model) != author:
        thought = None
    if message.calls:
        said["tool_calls"] = [_call(call, ids) for call in message.calls]
        said["content"] = said["content"] or None  # beside calls some refuse an empty text
        _sign(said["tool_calls"], thought)
    if field and thought is not None:
        said.update(_thought(field, thought))
    return said


def _thought(field: str, thought: Reasoning) -> JSONObject:
    """Write reasoning into the field that wants it; details where the server gave some."""
    if field != REASONING_DETAILS:
        return {field: thought.text} if thought.text else {}
    details = [block for block in thought.blocks if EXTRA_CONTENT not in block]
    if details:
        return {REASONING_DETAILS: details}
    return {"reasoning": thought.text} if thought.text else {}


def _sign(calls: list[JSONObject], thought: Reasoning | None) -> None:
    """Put back on calls what their server had put on them; Gemini refuses them without."""
    for block in thought.blocks if thought else ():
        place, extra = block.get("call"), block.get(EXTRA_CONTENT)
        if isinstance(place, int) and extra is not None and place < len(calls):
            calls[place][EXTRA_CONTENT] = extra


def _call(call: ToolCall, ids: _CallIds) -> JSONObject:
    arguments = json.dumps(call.arguments or {}, ensure_ascii=False)
    return {
        "id": ids.of(call.call_id),
        "type": "function",
        "function": {"name": call.tool_name, "arguments": arguments},
    }


def _tool(tool: ToolDefinition) -> JSONObject:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def _content(content: Content) -> str | list[JSONObject]:
    """A plain string where there is no image: every server takes that."""
    parts = [_part(block) for block in content]
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts)


def _part(block: Text | Image | File) -> JSONObject:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case File():
            return {"type": "text", "text": file_text(block)}
        case Image(data=data, media_type=media_type):
            url = f"data:{media_type};base64,{data}"
            return {"type": "image_url", "image_url": {"url": url}}


def _with_answers(messages: list[JSONObject]) -> Iterator[JSONObject]:
    """Let something of the assistant stand between a tool's result and the user."""
    before = ""
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": AFTER_TOOL}
        yield message
        before = message["role"]


def _with_role(messages: list[JSONObject], role: str) -> list[JSONObject]:
    """Name the system part as the server does; as "user", before the first user's own text."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, rest = messages[0]["content"], messages[1:]
    if role != "user":
        return [{"role": role, "content": system}, *rest]
    if rest and rest[0]["role"] == "user" and isinstance(rest[0]["content"], str):
        first = {"role": "user", "content": f"{system}\n\n{rest[0]['content']}"}
        return [first, *rest[1:]]
    return [{"role": "user", "content": system}, *rest]
