"""How many tokens things weigh, exact and offline, in o200k_base (docs/decisions.md#38).

A text is counted once, when it is recorded; everything later adds up stored numbers.
"""

from __future__ import annotations

import base64
import functools
import lzma
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from agent_magics.core.chat import ToolDefinition
from agent_magics.core.events import (
    SPOKEN,
    AssistantMessage,
    Imported,
    Payload,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
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
from agent_magics.core.text import clean_value

if TYPE_CHECKING:
    import tiktoken

IMAGE_TOKENS = 1_600
FRAME_TOKENS = 4  # what a server adds around each message and each tool: role, separators
EXACT_CHARACTERS = 1_500_000  # above what one tool may write; longer texts are sampled
PIECE_CHARACTERS = 50_000  # tiktoken's matcher dies on a million spaces in one call
SAMPLES = 32

# The published split pattern of o200k_base; it belongs to the ranks as data does.
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SEAM = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")  # no token crosses the space between two words


def count_text(text: str) -> int:
    """Count the tokens of `text`.

    Exact up to 1,500,000 characters (a text of over 50,000 in which words are never parted by a
    blank may count a token more for each 50,000). Longer ones are sampled evenly and scaled up,
    so that the time stays under about a second whatever the text is.
    """
    if not text:
        return 0
    if len(text) <= EXACT_CHARACTERS:
        return sum(_count_piece(piece) for piece in _pieces(text))
    # Spread over the whole: a log that begins with words and goes on in numbers would be misjudged
    # by its head.
    stride = len(text) // SAMPLES
    size = EXACT_CHARACTERS // SAMPLES
    sampled = sum(_count_piece(text[at * stride : at * stride + size]) for at in range(SAMPLES))
    return -(-sampled * len(text) // (SAMPLES * size))


def count_payload(payload: Payload) -> int:
    """Count what an event weighs in a request, private reasoning left out.

    0 for kinds that no model sees.
    """
    if not isinstance(payload, SPOKEN):
        return 0
    match payload:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return _count_content(content)
        case ToolCalled(tool_name=name, arguments=arguments, raw=raw):
            return _count_call(name, arguments, raw)
        case ToolAnswered(output=output):
            return count_text(output.content)
        case SystemMessage(text=text):
            return count_text(text)
        case Imported(message=message):
            return _count_said(message)
        case _:
            assert_never(payload)


def count_message(message: Message) -> int:
    """Count a message as it is sent: its frame, and reasoning where it goes along."""
    reasoning = 0
    if isinstance(message, Assistant) and message.reasoning is not None:
        reasoning = count_text(message.reasoning.text)
    return FRAME_TOKENS + reasoning + _count_said(message)


def count_tools(tools: Sequence[ToolDefinition]) -> int:
    """Count the tool schemas of a request."""
    return sum(FRAME_TOKENS + count_text(_json(tool)) for tool in tools)


def _count_said(message: Message) -> int:
    match message:
        case System(text=text):
            return count_text(text)
        case User(content=content):
            return _count_content(content)
        case Assistant(content=content, calls=calls):
            return _count_content(content) + sum(_count_tool_call(call) for call in calls)
        case ToolResult(content=text):
            return count_text(text)
        case _:
            assert_never(message)


def _count_tool_call(call: ToolCall) -> int:
    return _count_call(call.tool_name, call.arguments, call.raw)


def _count_call(name: str, arguments: dict[str, Any] | None, raw: str) -> int:
    # Arguments that aren't JSON go out as they came.
    said = raw if arguments is None else _json(clean_value(arguments))
    return count_text(name) + count_text(said)


def _count_content(content: Sequence[ContentBlock]) -> int:
    return sum(_count_block(block) for block in content)


def _count_block(block: ContentBlock) -> int:
    match block:
        case Text(text=text):
            return count_text(text)
        case Image():
            return IMAGE_TOKENS
        case File(name=name, text=text):
            return count_text(name) + count_text(text)
        case _:
            assert_never(block)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _count_piece(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


def _pieces(text: str) -> Iterator[str]:
    """Cut a text where no token crosses the cut, at most `PIECE_CHARACTERS` apart."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + PIECE_CHARACTERS
        # Looked for near the limit only: in a text without blanks the search would walk all of it.
        seam = _SEAM.search(text, limit - 2_000, limit)
        end = seam.start() if seam else limit
        yield text[start:end]
        start = end
    yield text[start:]


@functools.cache
def _encoding() -> tiktoken.Encoding:
    """Build the encoding from the package's own ranks (0.5 s, once; no network).

    It is registered too, so that tiktoken gives it to others in this process without a download.
    """
    import tiktoken  # noqa: PLC0415 - slow to load, and the first count comes long after %load_ext

    packed = resources.files("agent_magics").joinpath("data", "o200k_base.tiktoken.xz").read_bytes()
    lines = (line.split() for line in lzma.decompress(packed).splitlines())
    encoding = tiktoken.Encoding(
        name="o200k_base",
        pat_str=_PATTERN,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in lines},
        special_tokens={"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
    )
    tiktoken.registry.ENCODINGS.setdefault(encoding.name, encoding)
    return encoding
