"""A slot's conversation as Markdown for people: who said what, tool calls folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from agent_magics.core.events import (
    AssistantMessage,
    Imported,
    LedgerEvent,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import (
    Assistant,
    Content,
    File,
    Image,
    System,
    ToolResult,
    User,
    text_of,
)
from agent_magics.notebook.text.markdown import (
    code_span,
    escape_markdown,
    fenced,
    folded,
    safe_markdown,
)
from agent_magics.notebook.views.ledger.lines import json_of, pretty
from agent_magics.settings import shown_model

SUMMARY_CHARACTERS = 100


def conversation(
    title: str, slot: str, events: Sequence[LedgerEvent], turns: Mapping[str, int]
) -> str:
    """Write the events of a slot's view; `turns` tells the number of each turn id.

    Answers stand as they were written, questions as quotations, calls and results folded; nothing
    a model, a tool or a file said is HTML, and no image is loaded.
    """
    parts = [f"# {escape_markdown(title)}", _about(slot, events, turns)]
    results = {
        (event.turn_id, event.payload.call_id): event.payload
        for event in events
        if isinstance(event.payload, ToolAnswered)
    }
    for turn_id, told in groupby(events, key=lambda event: event.turn_id):
        of_turn = list(told)
        if turn_id in turns:
            parts.append(f"## Turn {turns[turn_id]}")
            parts.append(f"_{of_turn[0].created_at:%Y-%m-%d %H:%M} UTC_")
        for event in of_turn:
            parts += _told(event, results)
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(slot: str, events: Sequence[LedgerEvent], turns: Mapping[str, int]) -> str:
    facts = [f"Slot {code_span(slot)}", f"{len(turns):,} turn{'' if len(turns) == 1 else 's'}"]
    answers = [each.payload for each in events if isinstance(each.payload, AssistantMessage)]
    models = {
        shown_model(f"{answer.provider}:{answer.model}") for answer in answers if answer.model
    }
    facts += map(code_span, sorted(models))
    return " · ".join(facts)


def _told(
    event: LedgerEvent, results: Mapping[tuple[str | None, str], ToolAnswered]
) -> Iterator[str]:
    payload = event.payload
    match payload:
        case UserMessage(content=content):
            yield from _quoted("You", content)
        case AssistantMessage(content=content):
            yield from _content(content)
            if payload.status != "complete":
                yield f"_{escape_markdown(payload.cause or 'failed')}_"
        case ToolCalled():
            yield _call(payload, results.get((event.turn_id, payload.call_id)))
        case SystemMessage(text=text, note=note):
            yield folded(note, "", [fenced(text)])
        case Imported(message=User(content=content)):
            yield from _quoted("Given", content)
        case Imported(message=Assistant(content=content)):
            yield from _content(content)
        case Imported(message=System(text=text) | ToolResult(content=text)):
            yield folded("given", "", [fenced(text)])
        case _:
            pass


def _call(call: ToolCalled, result: ToolAnswered | None) -> str:
    if call.arguments is None:
        short, arguments = "", fenced(call.raw)
    else:
        short, arguments = json_of(call.arguments), fenced(pretty(call.arguments), "json")
    if len(short) > SUMMARY_CHARACTERS:
        short = f"{short[:SUMMARY_CHARACTERS]}…"
    if result is None:
        return folded(call.tool_name, f"{short} · no result", [arguments])
    mark = "✗" if result.output.is_error else "✓"
    return folded(call.tool_name, f"{short} {mark}", [arguments, fenced(result.output.content)])


def _quoted(who: str, content: Content) -> Iterator[str]:
    text = safe_markdown(text_of(content))
    quoted = "\n".join(f"> {line}".rstrip() for line in text.splitlines())
    yield f"**{who}**"
    yield quoted
    yield from _attached(content)


def _content(content: Content) -> Iterator[str]:
    yield safe_markdown(text_of(content)).strip()
    yield from _attached(content)


def _attached(content: Content) -> Iterator[str]:
    for block in content:
        match block:
            case File(name=name, text=text):
                yield folded(name, "attached", [fenced(text)])
            case Image(media_type=media_type, data=data):
                yield f"_{escape_markdown(media_type)}, {len(data) * 3 // 4:,} bytes_"
            case _:
                pass
