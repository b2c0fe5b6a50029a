"""Take keys out of text that people, logs and recordings will see."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_magics.core.keys import without_keys

SHOWN_CHARACTERS = 3
_SHORTEST_KEY = 6

_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s\"',;]+")
_BASIC = re.compile(r"(?i)\b(authorization[\"']?\s*[:=]?\s*[\"']?basic\s+)[^\s\"',;]+")
_QUERY = re.compile(r"(?i)([?&](?:api[-_]?key|key|token|access_token)=)[^&\s\"']+")
_USER_INFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]{0,20}://)[^/\s@\"']+@")
_SCHEME = re.compile(r"(?i)\bhttps?://")
_ADDRESS = re.compile(_SCHEME.pattern + r"[^\s\"'<>`]+")
_USER = re.compile(r"^[^/?#]*@")
_HOST = re.compile(r"(?:[^\s:@/?#]*|\[[^\]]*\])(?::\d*)?(?=[/?#]|$)")
_PATH_LIKE = re.compile(r"[/\\~.]|[A-Za-z]:[/\\]")


def key_end(key: str) -> str:
    """Show the end of a key, enough to tell two apart: `…x3F`."""
    return f"…{key[-SHOWN_CHARACTERS:]}" if len(key) > 2 * SHOWN_CHARACTERS else "…"


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """Replace every given secret, and whatever looks like a key, by its end.

    Addresses of the web in it are as `shown_address` writes them. Empty and very short secrets
    are left alone: they would blank out ordinary words.
    """
    for secret in secrets:
        if secret and len(secret) >= _SHORTEST_KEY:
            text = text.replace(secret, key_end(secret))
    return without_marked_keys(_ADDRESS.sub(lambda found: shown_address(found.group()), text))


def without_marked_keys(text: str) -> str:
    """Replace what looks like a key or is called one; other parts of an address stay."""
    text = _USER_INFO.sub(r"\1…@", text)
    text = without_keys(text, lambda key: "…" if "PRIVATE KEY" in key else key_end(key))
    text = _BASIC.sub(r"\1…", _BEARER.sub(r"\1…", text))
    return _QUERY.sub(r"\1…", text)


def shown_address(text: str) -> str:
    """Write an address, or a name that ends in one, without its user, password and query.

    What has no address of the web in it stays as it is. Of one that can't be read, too much is
    left out rather than too little.
    """
    found = _SCHEME.search(text)
    if found is None:
        return text
    # Passwords may hold any character, an @ among them; what stands before the last one is none of
    # the host.
    rest = _USER.sub("", text[found.end() :])
    if not _HOST.match(rest):
        rest = rest.rpartition("@")[2]
    return text[: found.end()] + re.split(r"[?#]", rest, maxsplit=1)[0]


def shown_model(spec: str) -> str:
    """Write a model for an output that may be saved and shared: no folder, and of an address
    neither its user nor its query, where keys may stand.

    `scripted:/home/me/answers.yaml` is shown as `scripted:answers.yaml`; other names stay whole.
    """
    provider, _, rest = shown_address(spec).partition(":")
    if rest.startswith("//"):
        return f"{provider}:{rest}"  # an address alone
    name, at, address = rest.partition("@http")
    if provider == "scripted" or _PATH_LIKE.match(name) or name.lower().endswith(".gguf"):
        name = re.split(r"[/\\]", name)[-1]
    return f"{provider}:{name}{at}{address}" if name else provider
