"""What a person reads of one event: a line of it in a list, and all of it when it is opened."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    Clear,
    Imported,
    MemorySet,
    Metadata,
    Payload,
    Retry,
    Rewind,
    SlotChanged,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    Usage,
    UserMessage,
)
from agent_magics.core.messages import (
    Assistant,
    Content,
    File,
    Image,
    Message,
    System,
    Text,
    ToolResult,
    User,
)
from agent_magics.core.redact import redact
from agent_magics.core.values import Value
from agent_magics.dataframes.shown import shown_payload
from agent_magics.settings import shown_model

SCANNED_CHARACTERS = 2_000  # of a long text, for its line
LINE_CHARACTERS = 400


class Part(Value):
    """A piece of an opened event. `label` names it, `text` is shown as it is."""

    label: str
    text: str


def line_of(payload: Payload, *, is_exact: bool = True) -> str:  # noqa: C901, PLR0911, PLR0912  a line a kind
    """Say an event in one line; without `is_exact` nothing that differs from run to run."""
    match payload:
        case UserMessage(content=content, is_steering=is_steering):
            return _one_line(("(added) " if is_steering else "") + said_in(content))
        case AssistantMessage():
            return _one_line(f"{said_in(payload.content)}{_how_it_ended(payload)}")
        case ToolCalled(tool_name=name, arguments=arguments, raw=raw):
            return _one_line(f"{name} {raw if arguments is None else json_of(arguments)}")
        case ToolAnswered():
            return _one_line(f"{payload.tool_name} {_mark(payload, is_exact)} {_result(payload)}")
        case SystemMessage(text=text, note=note):
            return _one_line(f"{note}: {text}")
        case Imported(message=message):
            return _one_line(_said_by(message))
        case Metadata(key="session_config", value={"model_id": str(model)}):
            return f"session_config: {shown_model(model)}"
        case Metadata(key=key, value=value):
            return _one_line(f"{key} {json_of(value)}")
        case SlotChanged():
            return _slot_line(payload)
        case Rewind(to_seq=to_seq, undoes=undoes):
            return f"back to seq {to_seq}" + ("" if undoes is None else f", undoes {undoes}")
        case Clear():
            return "the view was cleared"
        case MemorySet(key=key, value=value):
            return _one_line(f"{key} = {value}" if value is not None else f"{key} is forgotten")
        case Usage():
            return _usage_line(payload, is_exact=is_exact)
        case Retry(provider=provider, model=model, attempt=attempt, reason=reason):
            who = shown_model(f"{provider}:{model}")
            return _one_line(f"{who} · attempt {attempt} failed: {redact(reason)}")
        case Approval(tool_name=name, answer=answer):
            return f"{name}: {answer}"
        case _:
            assert_never(payload)


def parts_of(payload: Payload) -> tuple[Part, ...]:  # noqa: PLR0911  a line a kind
    """Take an event apart for reading: its texts as texts, the rest as JSON."""
    match payload:
        case UserMessage(content=content):
            return _content_parts(content)
        case AssistantMessage(content=content, reasoning=reasoning):
            thought = [Part(label="thought", text=reasoning.text)] if reasoning else []
            return (*filter(lambda part: part.text, thought), *_content_parts(content))
        case ToolCalled(arguments=arguments, raw=raw):
            return (_arguments(arguments, raw),)
        case ToolAnswered():
            return _answer_parts(payload)
        case SystemMessage(text=text):
            return (Part(label="text", text=text),)
        case Imported(message=System(text=text) | ToolResult(content=text)):
            return (Part(label="text", text=text),)
        case Imported(message=User(content=content) | Assistant(content=content)):
            return _content_parts(content)
        case _:
            return (Part(label="event", text=pretty(shown_payload(payload))),)


def said_in(content: Content) -> str:
    """Return a message's text; images and files by what they are."""
    return " ".join(filter(None, (_shown(block) for block in content)))


def json_of(value: object) -> str:
    """Write a value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def pretty(value: object) -> str:
    """Write a value as JSON that is read easily."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def usage_facts(spent: Usage, *, is_exact: bool) -> list[str]:
    """Say what a request took: tokens, and (`is_exact`) time and money."""
    facts = [] if spent.told is None else [str(spent.told)]
    if is_exact and spent.duration_ms:
        facts.append(f"{spent.duration_ms / 1000:.1f} s")
    if is_exact and spent.cost_usd is not None:
        facts.append(f"${spent.cost_usd:.4f}".rstrip("0").rstrip("."))
    return facts


def _one_line(text: str) -> str:
    line = " ".join(text[:SCANNED_CHARACTERS].split())
    return f"{line[:LINE_CHARACTERS]}…" if len(line) > LINE_CHARACTERS else line


def _shown(block: Text | Image | File) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=media_type):
            return f"[{media_type}]"
        case File(name=name):
            return f"[{name}]"
        case _:
            assert_never(block)


def _content_parts(content: Content) -> tuple[Part, ...]:
    return tuple(_block_part(block) for block in content) or (Part(label="text", text=""),)


def _block_part(block: Text | Image | File) -> Part:
    match block:
        case Text(text=text):
            return Part(label="text", text=text)
        case Image(media_type=media_type, data=data):
            return Part(label="image", text=f"{media_type}, {len(data) * 3 // 4:,} bytes")
        case File(name=name, text=text):
            return Part(label=f"file {name}", text=text)
        case _:
            assert_never(block)


def _arguments(arguments: dict[str, Any] | None, raw: str) -> Part:
    if arguments is None:
        return Part(label="what the model wrote", text=raw)
    return Part(label="arguments", text=pretty(arguments))


def _answer_parts(answer: ToolAnswered) -> tuple[Part, ...]:
    parts = [Part(label="result", text=answer.output.content)]
    if answer.ran_with is not None:
        parts.insert(0, Part(label="ran with", text=pretty(answer.ran_with)))
    if answer.output.metadata:
        parts.append(Part(label="metadata", text=pretty(answer.output.metadata)))
    return tuple(parts)


def _how_it_ended(answer: AssistantMessage) -> str:
    if answer.status == "complete":
        return ""
    return f" ({answer.cause or 'failed'}{f': {redact(answer.detail)}' if answer.detail else ''})"


def _mark(answer: ToolAnswered, is_exact: bool) -> str:  # noqa: FBT001  passed on
    mark = "✗" if answer.output.is_error else "✓"
    is_timed = is_exact and answer.duration_ms is not None
    return f"{mark} {answer.duration_ms:,} ms ·" if is_timed else f"{mark} ·"


def _result(answer: ToolAnswered) -> str:
    return answer.output.content[:SCANNED_CHARACTERS]


def _said_by(message: Message) -> str:
    match message:
        case System(text=text):
            return f"system: {text}"
        case User(content=content):
            return f"user: {said_in(content)}"
        case Assistant(content=content):
            return f"assistant: {said_in(content)}"
        case ToolResult(tool_name=name, content=text):
            return f"{name}: {text}"
        case _:
            assert_never(message)


def _slot_line(change: SlotChanged) -> str:
    match change:
        case SlotChanged(action="derived", parent_id=str(parent), fork_seq=fork):
            return f"derived {change.slot_id} from {parent} at seq {fork}"
        case SlotChanged(action="renamed", previous_id=str(previous)):
            return f"renamed {previous} to {change.slot_id}"
        case SlotChanged(action=action):
            return f"{action} {change.slot_id}"


def _usage_line(spent: Usage, *, is_exact: bool) -> str:
    again = [f"attempt {spent.attempt}"] if spent.attempt > 1 else []
    model = shown_model(f"{spent.provider}:{spent.model}")
    return " · ".join([spent.purpose, *again, *usage_facts(spent, is_exact=is_exact), model])
