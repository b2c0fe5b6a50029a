"""What a model that takes no images is sent: an image that is asked about is refused in a sentence,
those of earlier turns become a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from agent_magics.context.projection import Projection
from agent_magics.context.tokens import IMAGE_TOKENS, count_text
from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Content, Image, Message, Text, User

UNSEEN_IMAGE = "[an image, which is not shown to you]"


def as_seen_by(model: ModelInfo, projection: Projection, *, is_asking: bool) -> Projection:
    """Return what this model may be sent, weighed as that; itself unless it is known to be blind.

    Where somebody `is_asking`, the last message of theirs keeps its images: `check_sight` refuses
    them.
    """
    if model.has_vision is not False:
        return projection
    # An older image becomes a word, as the model did without it before; the one that is asked about
    # now must be refused, not dropped.
    asked = _last_said(projection.messages) if is_asking else None
    hidden = [m for m in projection.messages if m is not asked and has_image(m)]
    if not hidden:
        return projection
    count = sum(isinstance(block, Image) for m in hidden for block in _content(m))
    return msgspec.structs.replace(
        projection,
        messages=tuple(m if m is asked else _without_images(m) for m in projection.messages),
        history_tokens=max(0, projection.history_tokens - count * (IMAGE_TOKENS - word_tokens())),
    )


@cache
def word_tokens() -> int:
    """Weigh what stands in an image's place."""
    return count_text(UNSEEN_IMAGE)


def check_sight(model: ModelInfo, request: ChatRequest) -> None:
    """Raise `ProviderError`, so that nothing is sent, where a blind model is asked of an image."""
    if model.has_vision is not False:
        return
    asked = _last_said(request.messages)
    if asked is not None and has_image(asked):
        error = ProviderError(
            f"{model.shown} takes no images. Leave the image out, or choose a model that takes them"
            " with %agent model."
        )
        error.was_sent = False
        raise error


def has_image(message: Message) -> bool:
    """Return whether a message shows an image."""
    return any(isinstance(block, Image) for block in _content(message))


def _content(message: Message) -> Content:
    return message.content if isinstance(message, User) else ()


def _last_said(messages: Sequence[Message]) -> User | None:
    return next((m for m in reversed(messages) if isinstance(m, User)), None)


def _without_images(message: Message) -> Message:
    if not isinstance(message, User) or not has_image(message):
        return message
    content = tuple(
        Text(text=UNSEEN_IMAGE) if isinstance(block, Image) else block for block in message.content
    )
    return msgspec.structs.replace(message, content=content)
