"""JSON as servers send it: read without trust, asked for the type that it should have."""

from __future__ import annotations

import json
from typing import Any, TypeAlias, TypeGuard

JSONObject: TypeAlias = dict[str, Any]

_NO_COUNT = 10**12


def parse_json(text: str | bytes) -> object:
    """Parse JSON; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # nested too deep, on purpose or not
        return None


def is_token_count(value: object) -> TypeGuard[int]:
    """Whether a server's number can be one of tokens; some send sentinels and nonsense."""
    return type(value) is int and 0 < value < _NO_COUNT


def objects_in(value: object) -> list[JSONObject]:
    """Return the objects of a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string_at(value: JSONObject, name: str) -> str:
    """Return the text under a name; "" where there is none."""
    found = value.get(name)
    return found if isinstance(found, str) else ""
