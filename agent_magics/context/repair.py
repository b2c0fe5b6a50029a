"""Any list of messages as one that a strict server accepts.

Deterministic, without a clock, and idempotent: what is already right isn't touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from agent_magics.context.prompt import MISSING_RESULT, OPENING_NOTE, shield
from agent_magics.core.messages import (
    Assistant,
    Content,
    ContentBlock,
    File,
    Image,
    Message,
    System,
    Text,
    ToolCall,
    ToolResult,
    User,
)

NO_OUTPUT = "(no output)"
UNKNOWN_TOOL = "unknown_tool"
MAX_TOOL_NAME = 64

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return `messages` in a shape that no server refuses.

    Every call is followed by its result (a missing one is made), results without a call and
    second results are dropped, ids are unique, blank messages are dropped, arguments that aren't
    JSON become `{}`, a system message in mid-conversation becomes a note, and the first message
    after the system part is a user's.
    """
    return tuple(opened(paired(messages)))


def opened(messages: Sequence[Message]) -> list[Message]:
    """Put a note in front where the first message after the system part isn't a user's."""
    head = 0
    while head < len(messages) and isinstance(messages[head], System):
        head += 1
    if head == len(messages) or isinstance(messages[head], User):
        return list(messages)
    # Chat templates of local models and some vendors fail where the assistant speaks first.
    note = User(content=(Text(text=OPENING_NOTE),))
    return [*messages[:head], note, *messages[head:]]


def paired(messages: Sequence[Message]) -> list[Message]:
    """Repair everything but the first role."""
    results = _results_by_call(messages)
    ids = _Ids(messages)
    sent: list[Message] = []
    for at, message in enumerate(messages):
        match message:
            case System():
                sent.extend(_system(message, is_first=all(isinstance(m, System) for m in sent)))
            case User(content=content):
                if said := spoken(content):
                    sent.append(message if said is content else User(content=said, seq=message.seq))
            case Assistant():
                sent.extend(_exchange(message, results.get(at, {}), ids))
            case ToolResult():
                pass  # it went out right after its call
    return sent


class _Ids:
    """Gives every call of a request an id of its own; a good one is kept."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._taken = {
            call.call_id for m in messages if isinstance(m, Assistant) for call in m.calls
        }
        self._used: set[str] = set()
        self._made = 0

    def of(self, call_id: str) -> str:
        # Some local servers call every call the same, or nothing at all.
        if not call_id.strip() or call_id in self._used:
            call_id = self._new()
        self._used.add(call_id)
        return call_id

    def _new(self) -> str:
        while True:
            self._made += 1
            # Counted, not random: the same history must give the same bytes in every process.
            made = f"call-{self._made}"
            if made not in self._taken and made not in self._used:
                return made


def _results_by_call(messages: Sequence[Message]) -> dict[int, dict[int, ToolResult]]:
    """Find each call's result: message index → call position → the first result that names it.

    Where an id is used again, its results belong to the newest message that has it, in order.
    """
    waiting: dict[str, tuple[int, list[int]]] = {}
    found: dict[int, dict[int, ToolResult]] = {}
    for at, message in enumerate(messages):
        match message:
            case Assistant(calls=calls):
                # An id that comes again means the newest call of it; an older one that still waits
                # for its result has lost it for good.
                mine: dict[str, tuple[int, list[int]]] = {}
                for position, call in enumerate(calls):
                    mine.setdefault(call.call_id, (at, []))[1].append(position)
                waiting.update(mine)
            case ToolResult(call_id=call_id) if call_id in waiting:
                owner, positions = waiting[call_id]
                if positions:
                    found.setdefault(owner, {})[positions.pop(0)] = message
            case _:
                pass
    return found


def _exchange(message: Assistant, results: dict[int, ToolResult], ids: _Ids) -> list[Message]:
    """Write an assistant's message and, right after it, one result for each call."""
    content = spoken(message.content)
    if not message.calls:
        if not content:
            return []
        return [message if content is message.content else _with(message, content, ())]
    calls = tuple(_call(call, ids.of(call.call_id)) for call in message.calls)
    same = content is message.content and all(map(_is, calls, message.calls))
    sent: list[Message] = [message if same else _with(message, content, calls)]
    sent.extend(_result(call, results.get(at)) for at, call in enumerate(calls))
    return sent


def _with(message: Assistant, content: Content, calls: tuple[ToolCall, ...]) -> Assistant:
    return msgspec.structs.replace(message, content=content, calls=calls)


def _is(one: ToolCall, other: ToolCall) -> bool:
    return one is other


def _call(call: ToolCall, call_id: str) -> ToolCall:
    name = wire_name(call.tool_name)
    if call.arguments is not None and call_id == call.call_id and name == call.tool_name:
        return call
    raw = "" if call.arguments is None else call.raw
    return ToolCall(call_id=call_id, tool_name=name, arguments=call.arguments or {}, raw=raw)


def _result(call: ToolCall, result: ToolResult | None) -> ToolResult:
    if result is None:
        return ToolResult(
            call_id=call.call_id, tool_name=call.tool_name, content=MISSING_RESULT, is_error=True
        )
    content = result.content if result.content.strip() else NO_OUTPUT
    named = result.call_id == call.call_id and result.tool_name == call.tool_name
    if named and content is result.content:
        return result
    return ToolResult(
        call_id=call.call_id,
        tool_name=call.tool_name,
        content=content,
        is_error=result.is_error,
        seq=result.seq,
    )


def _system(message: System, *, is_first: bool) -> list[Message]:
    if not message.text.strip():
        return []
    if is_first:
        return [message]
    # A system message in mid-conversation is refused by many servers, and moved to the top by
    # others, where it would change what it was said about.
    note = f"[Note from the system]\n{shield(message.text)}"
    return [User(content=(Text(text=note),), seq=message.seq)]


def spoken(content: Content) -> Content:
    """Leave out blocks that say nothing; the same object where all of them speak."""
    if len(content) == 1 and isinstance(content[0], Text):
        text = content[0].text
        return content if text and not text.isspace() else ()
    if all(map(_speaks, content)):
        return content
    return tuple(block for block in content if _speaks(block))


def wire_name(name: str) -> str:
    """Return a tool's name in the letters that every server takes; a good one as it is."""
    if name.isascii() and name.isidentifier() and len(name) <= MAX_TOOL_NAME:
        return name
    return _NOT_IN_NAMES.sub("_", name)[:MAX_TOOL_NAME] or UNKNOWN_TOOL


def _speaks(block: ContentBlock) -> bool:
    match block:
        case Text(text=text):
            return bool(text) and not text.isspace()
        case Image(data=data):
            return bool(data)
        case File():
            return True
