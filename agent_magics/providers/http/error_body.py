"""An error body, read without knowing whose it is: codes, sentences and numbers, wherever they are.

Servers nest errors differently, and proxies put another server's error into a string of theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agent_magics.providers.http.json_values import JSONObject, is_token_count

MAX_JUDGED_CHARACTERS = 20_000  # patterns look no further: a body may be made to keep them busy
_MAX_DEPTH = 6
_MAX_PAGE_HEAD = 200
_MESSAGE_KEYS = ("message", "error", "detail", "msg", "error_message", "errors")
_CODE_KEYS = ("code", "type", "status", "error_type")
_NUMBER_KEYS = ("n_ctx", "n_prompt_tokens")


@dataclass
class ErrorBody:
    """What an error body says. `words` are the server's own, whole and on one line."""

    words: str = ""
    codes: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All its sentences, as far as patterns look."""
        return "\n".join(self.messages)[:MAX_JUDGED_CHARACTERS]

    def has_code(self, known: frozenset[str]) -> bool:
        """Whether one of its codes is among those."""
        return not known.isdisjoint(self.codes)


def read_error_body(body: bytes | str | JSONObject | list[object]) -> ErrorBody:
    """Read an error body, or an error object that came in a stream."""
    document = _document(body)
    found = ErrorBody()
    for key, value in _fields(document, "message", 0):
        if key in _NUMBER_KEYS:
            if is_token_count(value):
                found.numbers.setdefault(key, value)
        elif key in _CODE_KEYS:
            found.codes.append(str(value).lower())
        elif isinstance(value, str):
            found.messages.append(value)
    found.words = " ".join(_words(document, found.messages).split())
    return found


def _document(body: bytes | str | JSONObject | list[object]) -> object:
    if isinstance(body, (dict, list)):
        return body
    text = body.decode("utf-8-sig", "replace") if isinstance(body, bytes) else body
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return document


def _fields(value: object, key: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield names and values of an error body, and of the JSON that hides in its strings."""
    if depth > _MAX_DEPTH:
        return
    match value:
        case {"loc": list(where), "msg": str(said)}:  # what pydantic says of a field
            yield "message", f"{'.'.join(map(str, where))}: {said}"
        case dict():
            yield from _fields_of(value, depth)
        case list():
            for inner in value:
                yield from _fields(inner, key, depth + 1)
        case str():
            yield key, value
            inside = _json_inside(value)
            if inside is not None:
                yield from _fields(inside, key, depth + 1)
        case _:
            return


def _fields_of(fields: JSONObject, depth: int) -> Iterator[tuple[str, object]]:
    for name, inner in fields.items():
        if isinstance(inner, (dict, list)) or name in _MESSAGE_KEYS:
            yield from _fields(inner, str(name), depth + 1)
        elif name in _CODE_KEYS + _NUMBER_KEYS and inner is not None:
            yield str(name), inner


def _json_inside(text: str) -> object:
    # As Python prints a dict or an escaped string of it: proxies do.
    start = text.find("{")
    if start < 0:
        return None
    for candidate in (text[start:], text[start:].replace("\\'", "'").replace('\\\\"', '\\"')):
        try:
            return json.JSONDecoder().raw_decode(candidate)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _words(document: object, messages: list[str]) -> str:
    if not isinstance(document, str):
        return messages[0] if messages else json.dumps(document)
    return _page_title(document) if "<" in document[:_MAX_PAGE_HEAD] else document


def _page_title(page: str) -> str:
    head = page[:MAX_JUDGED_CHARACTERS]
    found = re.search(r"<title[^>]{0,99}>(.{0,300}?)</title>", head, re.IGNORECASE | re.DOTALL)
    title = f' titled "{" ".join(found.group(1).split())}"' if found else ""
    return f"it answered with a web page{title}; a proxy may stand between, check the base URL"
