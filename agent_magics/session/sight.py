"""What a model that takes no images is sent: an image that is asked about is refused in a sentence,
those of earlier turns become a word (seed 001 § 5.1).
"""

from __future__ import annotations

import msgspec

from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Image, Message, Text, User

UNSEEN_IMAGE = "[an image, which is not shown to you]"


def as_seen_by(model: ModelInfo, request: ChatRequest) -> ChatRequest:
    """Give the request as this model may be sent it; itself where nobody said that it is blind.

    Raises `ProviderError`, and nothing is sent, where what is asked now has an image in it.
    """
    if model.has_vision is not False:
        return request
    asked = next((m for m in reversed(request.messages) if isinstance(m, User)), None)
    if asked is not None and _has_image(asked):
        error = ProviderError(
            f"{model.shown} takes no images. Leave the image out, or choose a model that takes them"
            " with %agent model."
        )
        error.was_sent = False
        raise error
    return msgspec.structs.replace(request, messages=tuple(map(_without_images, request.messages)))


def _has_image(message: User) -> bool:
    return any(isinstance(block, Image) for block in message.content)


def _without_images(message: Message) -> Message:
    if not isinstance(message, User) or not _has_image(message):
        return message
    content = tuple(
        Text(text=UNSEEN_IMAGE) if isinstance(block, Image) else block for block in message.content
    )
    return msgspec.structs.replace(message, content=content)
