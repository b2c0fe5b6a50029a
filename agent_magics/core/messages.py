"""What is said in a conversation: content blocks, tool calls and results, and request messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.values import Value

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_IMAGE_BYTES = 20_000_000


class Text(Value, tag="text"):
    text: str


class Image(Value, tag="image"):
    """An image; `data` is base64, `media_type` one of png, jpeg, gif, webp."""

    data: str
    media_type: str


class File(Value, tag="file"):
    """A text file that came with a message; the model reads `text` under its `name`."""

    name: str
    media_type: str
    text: str


ContentBlock = Text | Image | File
Content = tuple[ContentBlock, ...]


class Reasoning(Value):
    """A model's private reasoning, sent back only to the provider and model that made it.

    `blocks` are the provider's own blocks (signatures included), replayed unmodified.
    """

    text: str
    provider: str = ""
    model: str = ""
    blocks: tuple[dict[str, Any], ...] = ()


class ToolCall(Value):
    """A call the model asked for; `arguments` is None where its JSON can't be executed.

    `raw` is what the model wrote, kept where it isn't the JSON of `arguments`.
    """

    call_id: str
    tool_name: str
    arguments: dict[str, Any] | None
    raw: str = ""


class ToolOutput(Value):
    """What a tool answered. Only `content` goes to the model."""

    content: str
    is_error: bool = False
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


# What goes to a provider, in wire order. `seq` is the ledger event a message comes from
# (None: made for this request).


class System(Value, tag="system"):
    text: str
    seq: int | None = None


class User(Value, tag="user"):
    content: Content
    seq: int | None = None


class Assistant(Value, tag="assistant"):
    content: Content = ()
    calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    seq: int | None = None


class ToolResult(Value, tag="tool_result"):
    call_id: str
    tool_name: str
    content: str
    is_error: bool = False
    seq: int | None = None


Message = System | User | Assistant | ToolResult
MessageStatus = Literal["complete", "incomplete"]


class UserInput(Value):
    """What a person sends: at least one block that isn't blank, else `InputValidation`."""

    content: Content

    @classmethod
    def of(cls, what: str | UserInput | Sequence[ContentBlock]) -> UserInput:
        """Make an input of text, blocks, or an input; raise `InputValidation` on a blank one."""
        match what:
            case UserInput():
                made = what
            case str():
                made = cls(content=(Text(text=what),))
            case [*blocks] if all(isinstance(block, ContentBlock) for block in blocks):
                made = cls(content=tuple(blocks))
            case _:
                raise InputValidation(
                    f"A prompt is text, or blocks of text, images and files; this is {what!r:.80}."
                )
        if not any(_says_something(block) for block in made.content):
            raise InputValidation("The prompt is empty; write what you want to ask.")
        for block in made.content:
            if isinstance(block, Image):
                _check_image(block)
        return made


def text_of(content: Sequence[ContentBlock]) -> str:
    """Join the text blocks of a message."""
    return "".join(block.text for block in content if isinstance(block, Text))


def _check_image(image: Image) -> None:
    if image.media_type not in IMAGE_TYPES:
        raise InputValidation(
            f"An image of type {image.media_type!r} can't be sent; {', '.join(IMAGE_TYPES)} can."
        )
    size = len(image.data) * 3 // 4
    if size > MAX_IMAGE_BYTES:
        raise InputValidation(
            f"The image has {size / 1e6:,.1f} MB; {MAX_IMAGE_BYTES // 10**6} MB are allowed."
        )


def _says_something(block: ContentBlock) -> bool:
    match block:
        case Text(text=text):
            return bool(text.strip())
        case Image(data=data):
            return bool(data)
        case File(text=text):
            return bool(text)
