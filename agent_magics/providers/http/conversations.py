"""What every protocol does to a conversation before it writes it down."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.messages import File, Message, System

NOTE_MARK = "[note] "


def split_system(messages: Sequence[Message]) -> tuple[list[str], Sequence[Message]]:
    """Split into the leading system texts and the rest.

    Only those become the server's system part; a system message further on is written as a note
    of the user, marked with `NOTE_MARK` (docs/decisions.md#2).
    """
    texts: list[str] = []
    for message in messages:
        if not isinstance(message, System):
            break
        texts.append(message.text)
    return texts, messages[len(texts) :]


def file_text(file: File) -> str:
    """Write a text file into a message."""
    return f"File {file.name}:\n{file.text}"
