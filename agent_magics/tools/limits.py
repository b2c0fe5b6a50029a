"""What a tool gave, as the ledger will hold it: of the declared types, and within limits."""

from __future__ import annotations

import msgspec

from agent_magics.core.config import AgentConfig
from agent_magics.core.messages import ToolOutput
from agent_magics.core.text import clean_text, clean_value
from agent_magics.tools.schema import as_output

CUT = "\n\n[output truncated]"
_NOT_JSON = (TypeError, ValueError, msgspec.MsgspecError, OverflowError, RecursionError)


def limited(output: ToolOutput, config: AgentConfig) -> ToolOutput:
    """Cut an output to `tool_output_max_bytes`, metadata included.

    Metadata over its own limit, or that no JSON can hold, is replaced by
    `{"_truncated": true, "_original_bytes": N}` (N None where it has no size); content gets a mark.
    """
    said: object = output.content
    content = said if isinstance(said, str) else as_output(said).content
    metadata, size = _metadata(output.metadata, config.tool_output_metadata_max_bytes)
    room = config.tool_output_max_bytes - size
    content = _cut_to(clean_text(_cut_to(content, room)), room)  # cleaning may lengthen it
    return ToolOutput(content=content, is_error=bool(output.is_error), metadata=metadata)


def _cut_to(content: str, room_bytes: int) -> str:
    short = content[:room_bytes]  # no character has less than a byte; 100 MB aren't encoded
    encoded = short.encode(errors="replace")
    if len(short) == len(content) and len(encoded) <= room_bytes:
        return content
    # Bytes, not characters: the limit is what the ledger and the request carry, and an emoji has
    # four.
    kept = encoded[: max(0, room_bytes - len(CUT))]
    return kept.decode(errors="ignore") + CUT


def _metadata(metadata: object, limit_bytes: int) -> tuple[dict[str, object], int]:
    """Return metadata that can be stored, and its size in bytes as JSON."""
    if not metadata and isinstance(metadata, dict):
        return {}, 2
    size = _size(metadata)
    # Measured first, so that 100 MB of metadata aren't copied to be thrown away.
    if size is not None and size <= limit_bytes:
        read = _read_again(metadata)
        if read is not None and read[1] <= limit_bytes:
            return read
        size = read[1] if read is not None else None
    mark: dict[str, object] = {"_truncated": True, "_original_bytes": size}
    return mark, len(msgspec.json.encode(mark))


def _size(metadata: object) -> int | None:
    """Measure without copying; what has odd characters is cleaned first."""
    try:
        return len(msgspec.json.encode(metadata))
    except UnicodeEncodeError:
        read = _read_again(metadata)
        return None if read is None else read[1]
    except _NOT_JSON:
        return None


def _read_again(metadata: object) -> tuple[dict[str, object], int] | None:
    try:
        encoded = msgspec.json.encode(clean_value(metadata))
        return msgspec.json.decode(encoded, type=dict[str, object]), len(encoded)
    except _NOT_JSON:
        return None
