"""What a key looks like, wherever it stands: it is taken out of texts, and never remembered.

This is the only table of its forms: `holds_secret` (memories), `core.redact` (errors, logs and
recordings) and the notebook's `scrubbed` (what reaches a model) all go by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# A hyphen makes a key of fewer characters than an underscore, which names of columns have too.
_FORMS = (
    r"\b(?i:sk|pk|rk|xai)-(?:(?=[\w-]{0,200}\d)[\w-]{8,}|\w{16,})",
    r"\b(?i:sk|pk|rk)_(?i:live|test)_\w{8,}",
    r"\b(?i:sk|pk|rk|gsk|hf|xai|key)[-_](?=[A-Za-z]{0,200}\d)[A-Za-z0-9]{16,}",
    r"\b(?:gsk|hf)_[A-Za-z0-9]{20,}",
    r"\bAIza[\w-]{20,}",
    r"\bgh[opsur]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_\w{20,}",
    r"\bglpat-[\w-]{12,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{8,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\beyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]*",
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    r"(?<=://)[^\s/:@\"']{0,100}:[^\s/@\"']{1,200}(?=@)",
)
_KEY = re.compile("|".join(_FORMS))
_CALLED = (
    r"(?:\b(?:pass(?:word|phrase|wd|code)|pwd|pin|passwort|contraseña|mot de passe"
    r"|api[ _-]?key|secret(?:[ _-]key)?|(?:(?:access|auth|bearer)[ _-]?)?token)\b|密码|パスワード)"
)
_NAMED = re.compile(
    rf"(?i){_CALLED}[\"'`]?\s*(?:"
    r"[=:\uff1a]\s*\S{4,}"
    r"|(?:(?:is|ist|es|est)\b|是|は)\s*(?=\S*\d)\S{4,})"
)


def without_keys(text: str, mark: Callable[[str], str]) -> str:
    """Put `mark(key)` in the place of all that has the form of a key."""
    return _KEY.sub(lambda found: mark(found.group()), text)


def holds_secret(text: str) -> bool:
    """Return whether `text` has something in it that looks like a key or names a password.

    It may be wrong both ways: it keeps the plain cases out, and no more is promised.
    """
    return any(kind.search(text) for kind in (_KEY, _NAMED))
