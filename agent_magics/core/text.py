"""The one sanitiser at the ledger's door: text that would kill a session is made harmless.

A server refuses every later request that has such text, so one result could end a session. Nothing
is unescaped, so cleaning twice is the same as cleaning once.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_DEPTH = 200
TOO_DEEP = "[nested too deeply]"

_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


def clean_text(text: str) -> str:
    r"""Return `text` as it can be stored, sent and shown.

    Two halves of a surrogate pair are joined, a lone half becomes U+FFFD, NUL becomes the four
    visible characters `\x00`. Everything else stays, U+2028 and right-to-left marks too.
    """
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    # Nearly all text is fine as it is, and comes back as the same object.
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub(_joined, text)


def clean_value(value: Any, *, depth: int = MAX_DEPTH) -> Any:
    """Return `value`, JSON-like or one of our structs, with every text in it cleaned, keys too.

    Values below `depth` levels become a mark, so that no value is too deep to be stored.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return type(value)(**clean_value(fields, depth=depth + 1))
    if not isinstance(value, (dict, list, tuple)):
        return value
    # A structure that holds itself, or a thousand levels of a hostile tool, would end in
    # RecursionError where it is stored.
    if depth <= 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {
            clean_text(key) if isinstance(key, str) else key: clean_value(item, depth=depth - 1)
            for key, item in value.items()
        }
    items = [clean_value(item, depth=depth - 1) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _joined(match: re.Match[str]) -> str:
    found = match.group()
    if len(found) == 1:
        return "\ufffd"
    # JSON escapes characters beyond the first 65,536 as two halves; some servers' streams pass them
    # on unjoined.
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
