"""Take keys out of text that people, logs and recordings will see (decision 66)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_magics.core.keys import without_keys

SHOWN_CHARACTERS = 3
_SHORTEST_KEY = 6

_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s\"',;]+")
_QUERY = re.compile(r"(?i)([?&](?:api[-_]?key|key|token|access_token)=)[^&\s\"']+")
_USER_INFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]{0,20}://)[^/\s@\"']+@")


def key_end(key: str) -> str:
    """Show the end of a key, enough to tell two apart: `…x3F`."""
    return f"…{key[-SHOWN_CHARACTERS:]}" if len(key) > 2 * SHOWN_CHARACTERS else "…"


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """Replace every given secret, and whatever looks like a key, by its end.

    Empty and very short secrets are left alone: they would blank out ordinary words.
    """
    for secret in secrets:
        if secret and len(secret) >= _SHORTEST_KEY:
            text = text.replace(secret, key_end(secret))
    text = _USER_INFO.sub(r"\1…@", text)
    text = without_keys(text, lambda key: "…" if "PRIVATE KEY" in key else key_end(key))
    text = _BEARER.sub(r"\1…", text)
    return _QUERY.sub(r"\1…", text)
