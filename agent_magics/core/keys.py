"""What a key looks like, wherever it stands: it is taken out of texts, and never remembered."""

from __future__ import annotations

import re

KEY_LIKE = re.compile(
    r"(?i)\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_][A-Za-z0-9_\-]{8,}"
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_\-]{12,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9\-]{8,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"
)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")
_USER_INFO = re.compile(r"(?i)\b[a-z][a-z0-9+.\-]{0,20}://[^/\s@:\"']*:[^/\s@\"']+@")
_CALLED = (
    r"(?:\b(?:pass(?:word|phrase|wd|code)|pwd|pin|passwort|contraseña|mot de passe"
    r"|api[ _-]?key|secret(?:[ _-]key)?|(?:(?:access|auth|bearer)[ _-]?)?token)\b|密码|パスワード)"
)
_NAMED = re.compile(
    rf"(?i){_CALLED}[\"'`]?\s*(?:"
    r"[=:\uff1a]\s*\S{4,}"
    r"|(?:(?:is|ist|es|est)\b|是|は)\s*(?=\S*\d)\S{4,})"
)


def holds_secret(text: str) -> bool:
    """Tell whether `text` has something in it that looks like a key or names a password.

    It may be wrong both ways: it keeps the plain cases out, and no more is promised.
    """
    if any(any(map(str.isdigit, found.group())) for found in KEY_LIKE.finditer(text)):
        return True
    return any(kind.search(text) for kind in (_PEM, _USER_INFO, _NAMED))
