"""The bounded copy of a conversation that a summarising model reads.

Only this copy is shortened; what the ledger holds is untouched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

import msgspec

from agent_magics.context.prompt import shield, within_role
from agent_magics.context.safe_cuts import word_begin, word_end
from agent_magics.context.tokens import count_text
from agent_magics.core.messages import (
    Assistant,
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
from agent_magics.core.values import Value

TOOL_OUTPUT_CHARACTERS = 4_000
ARGUMENT_CHARACTERS = 400
MIN_ITEM_TOKENS = 48
JOINT_TOKENS = 2  # what the blank line between two items may cost

_BASE64 = re.compile(r"(?:data:([\w.+/-]+);base64,)?([A-Za-z0-9+/]{400,}={0,2})")


class Source(Value):
    """The copy and how it was made: of `total` messages, `omitted` oldest ones are not in it and
    `shortened` ones keep head and tail only.
    """

    text: str
    total: int
    omitted: int
    shortened: int


def bounded_source(messages: Sequence[Message], budget: int) -> Source | None:
    """Write the newest messages that fit into `budget` tokens, oldest first.

    A message that doesn't fit whole keeps head and tail. None where not even the newest fits so.
    """
    items: list[str] = []
    shortened = 0
    room = budget
    # The newest first: what was decided last overrules what was said before.
    for message in reversed(messages):
        text, is_cut = item_of(message)
        tokens = count_text(text) + JOINT_TOKENS
        if tokens > room:
            # Less than that says nothing, and a mark in its place costs as much.
            if room < MIN_ITEM_TOKENS:
                break
            text, is_cut = head_and_tail(text, room - JOINT_TOKENS), True
            tokens = room
        items.append(text)
        shortened += is_cut
        room -= tokens
    if messages and not items:
        return None
    return Source(
        text="\n\n".join(reversed(items)),
        total=len(messages),
        omitted=len(messages) - len(items),
        shortened=shortened,
    )


def item_of(message: Message) -> tuple[str, bool]:
    """Write one message for the summariser; tell whether something was left out of it."""
    match message:
        case System(text=text):
            return _item("Note", text)
        case User(content=content):
            return _item("User", _said(content))
        case Assistant(content=content, calls=calls):
            written = [_call(call) for call in calls]
            parts = [_said(content), *(text for text, _ in written)]
            text, is_cut = _item("Assistant", "\n".join(part for part in parts if part))
            return text, is_cut or any(cut for _, cut in written)
        case ToolResult():
            return _result(message)
        case _:
            assert_never(message)


def head_and_tail(text: str, tokens: int) -> str:
    """Cut the middle out of `text` until it has at most `tokens` tokens, and say so in place."""
    # More characters a token than any text has, so that the first try is never too short.
    keep = min(len(text), tokens * 8)
    while keep > 0:
        cut = _cut_middle(text, keep)
        count = count_text(cut)
        if count <= tokens:
            return cut
        keep = min(keep - 1, keep * tokens // count - 8)
    return ""


def _item(label: str, text: str) -> tuple[str, bool]:
    plain = _without_base64(text)
    return f"{label}: {_told(plain)}", plain is not text


def _result(result: ToolResult) -> tuple[str, bool]:
    status = "error" if result.is_error else "ok"
    if result.seq is None:
        # A made result must not become a fact of the summary.
        status = "unknown, the result was not recorded"
    plain = _without_base64(result.content)
    shown = _cut_middle(plain, TOOL_OUTPUT_CHARACTERS)
    size = f"{len(result.content):,} characters"
    head = f"Tool result of {result.tool_name} (status: {status}; {size})"
    return f"{head}: {_told(shown)}", shown is not result.content


def _told(text: str) -> str:
    return within_role(shield(text))


def _call(call: ToolCall) -> tuple[str, bool]:
    arguments = msgspec.json.encode(call.arguments or {}).decode()
    shown = _cut_middle(arguments, ARGUMENT_CHARACTERS)
    return f"[calls {call.tool_name} {shown}]", shown is not arguments


def _said(content: Sequence[ContentBlock]) -> str:
    return "\n".join(_shown(block) for block in content)


def _shown(block: ContentBlock) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(data=data, media_type=media_type):
            return f"[image: {media_type}, {_bytes(data)}]"
        case File(name=name, text=text):
            return f"[file {name}]\n{text}"
        case _:
            assert_never(block)


def _without_base64(text: str) -> str:
    """Write type and size in place of encoded bytes; the same object where there are none."""
    if len(text) < 400:  # noqa: PLR2004 - the shortest run that `_BASE64` takes for bytes
        return text
    replaced = _BASE64.sub(_as_size, text)
    return text if replaced == text else replaced


def _as_size(match: re.Match[str]) -> str:
    kind, data = match.groups()
    # A long run of one kind of letter is a rule in a table, or a hash; bytes in base64 mix all
    # three.
    if kind is None and not _looks_encoded(data):
        return match.group()
    return f"[{kind or 'base64'}: {_bytes(data)}]"


def _looks_encoded(data: str) -> bool:
    has_upper = any(character.isupper() for character in data)
    has_digit = any(character.isdigit() for character in data)
    return has_upper and has_digit and any(character.islower() for character in data)


def _bytes(data: str) -> str:
    return f"{len(data.rstrip('=')) * 3 // 4:,} bytes"


def _cut_middle(text: str, keep: int) -> str:
    """Keep the first two thirds and the last third of `keep` characters, less a torn word."""
    if len(text) <= keep:
        return text
    begin = word_begin(text, keep * 2 // 3)
    end = word_end(text, len(text) - (keep - keep * 2 // 3))
    # The end stays on the mark's line: it may begin with the name of a role.
    return f"{text[:begin]}\n[… {end - begin:,} characters left out …] {text[end:]}"
