"""Tool calls out of what servers write of them: arguments as text, as JSON, or broken."""

from __future__ import annotations

import json

import msgspec

from agent_magics.core.messages import ToolCall
from agent_magics.core.text import clean_text, clean_value
from agent_magics.providers.http.json_values import JSONObject


def tool_call(call_id: str, name: str, *, raw: str, whole: JSONObject | None) -> ToolCall:
    """Make a call of its arguments: `whole` where the server gave an object, else the text `raw`.

    Arguments that can't be read are None, and the text is kept for the model to see.
    """
    arguments = whole if whole is not None else parse_arguments(raw)
    return ToolCall(
        call_id=call_id,
        tool_name=clean_text(name),
        arguments=None if arguments is None else clean_value(arguments),
        raw=clean_text(raw) if arguments is None else "",
    )


def unrunnable(call: ToolCall) -> ToolCall:
    """Return a call without its arguments, which are kept as text."""
    raw = json.dumps(call.arguments, ensure_ascii=False) if call.arguments else call.raw
    return msgspec.structs.replace(call, arguments=None, raw=raw)


def parse_arguments(text: str, depth: int = 0) -> JSONObject | None:
    """Parse arguments; nothing is `{}`, JSON in a JSON string is unwrapped once."""
    if not text.strip():
        return {}
    try:
        # Models write line ends into strings as they are.
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and depth == 0:
        return parse_arguments(value, depth=1)
    if value is None:
        return {}
    return value if isinstance(value, dict) and _is_strict(value) else None


def _is_strict(value: JSONObject) -> bool:
    """Python reads NaN and Infinity; a strict server would refuse them in every later request."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True
