"""What of a kernel may reach a model (docs/decisions.md#56), and how much of each.

One rule says what is called like a secret; what prompts, tools and references tell goes by it.
"""

from __future__ import annotations

import ast
import os
import re
import types
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from agent_magics.core.keys import without_keys

ShareLevel = Literal["names", "schema", "sample"]
SECRET = "[secret]"  # noqa: S105 - the mark in its place
MIN_SECRET_CHARACTERS = 8
MIN_LITERAL_CHARACTERS = 12
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# These words say it wherever they stand in a name, the others only where it ends with them.
_STRONG = {"secret", "password", "passwd", "passphrase", "pwd", "credential", "apikey"}
_WEAK = {"key", "token"}
_STRONG_PAIRS = {("api", "key"), ("access", "key"), ("private", "key"), ("access", "token")}
_HARMLESS = (
    *(bool, int, float, complex, type(None), type),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType),
)
_ASSIGNED = re.compile(
    r"(?<!\w)(?P<name>\w{1,100})(?!\w)(?P<between>[\"']?\]?[ \t]*[:=][ \t]*[rbfuRBFU]{0,2})"
    r"(?P<quote>\"\"\"|'''|\"|')(?P<text>.*?)(?P=quote)",
    re.DOTALL,
)


_NO_SECRETS = {"pwd", "oldpwd"}  # as shells call the folder they are in


def is_secret_name(name: object) -> bool:
    """Return whether a variable, an attribute, a key or a column is called like a secret."""
    return isinstance(name, str) and (_is_strong(name) or _is_weak(name))


def is_secret(name: object, value: object) -> bool:
    """Return whether a value is never shown: a text called like a secret, or the environment.

    A name with a word such as password or secret hides whatever may hold text; one that merely ends
    in key or token hides texts (counts of tokens and lists of keys are no secrets).
    """
    # Under whatever name: it holds the keys of everything else on the machine.
    if value is os.environ or value is getattr(os, "environb", None):
        return True
    # By `type`, not `isinstance`: a proxy's `__class__` is code of the notebook.
    if not isinstance(name, str) or issubclass(type(value), _HARMLESS):
        return False
    return _is_strong(name) or (_is_weak(name) and issubclass(type(value), str | bytes))


def is_secret_source(source: str, value: object) -> bool:
    """Return whether an expression plainly names a secret; see `is_secret`."""
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return is_secret(source, value)
    # Any part of the way there: `secrets["db"]` names one as plainly as `db_secret`.
    strong = [name for name in _names(tree) if _is_strong(name)]
    return is_secret(strong[0] if strong else _last_name(tree), value)


def scrubbed(text: str, namespace: Mapping[str, object]) -> str:
    """Take secrets out of a text that is on its way to a model.

    What variables and environment variables hold that are called like secrets, literals that are
    assigned to such names, and what has the form of a well-known kind of key.
    """
    for known in _known_secrets(namespace):
        text = text.replace(known, SECRET)
    return _ASSIGNED.sub(_without_literal, without_keys(text, lambda _key: SECRET))


def _known_secrets(namespace: Mapping[str, object]) -> list[str]:
    named = [*dict(namespace).items(), *os.environ.items()]
    found = {
        value
        for name, value in named
        if type(value) is str and len(value) >= MIN_SECRET_CHARACTERS and is_secret(name, value)
    }
    return sorted(found, key=len, reverse=True)  # of two, one may be a part of the other


def _without_literal(found: re.Match[str]) -> str:
    name, text, quote = found["name"], found["text"], found["quote"]
    looks_random = len(text) >= MIN_LITERAL_CHARACTERS and not re.search(r"\s", text)
    if not text or not (_is_strong(name) or (_is_weak(name) and looks_random)):
        return found.group()
    return f"{name}{found['between']}{quote}{SECRET}{quote}"


def _words(name: str) -> list[str]:
    """Split a name at underscores and capitals, without the s of a plural."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return [word[:-1] if len(word) > 1 and word.endswith("s") else word for word in words]


def _is_strong(name: str) -> bool:
    if name.lower() in _NO_SECRETS:
        return False
    words = _words(name)
    pairs = set(pairwise(words))
    return bool(_STRONG & set(words) or _STRONG & {name.lower()} or _STRONG_PAIRS & pairs)


def _is_weak(name: str) -> bool:
    words = _words(name)
    return bool(words) and words[-1] in _WEAK


def _names(tree: ast.expr) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.append(name)
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                found.append(key)
    return found


def _last_name(tree: ast.expr) -> str:
    """Name what an expression ends with; an index by number is a part of what is indexed."""
    match tree:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
        case ast.Subscript(value=whole):
            return _last_name(whole)
    return ""
