r"""`{{expr}}` in prompts: filled from the kernel's namespace when it is Python (D 53).

Text between the braces that isn't an expression stays as it is; so does `\{{`.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from types import CodeType
from typing import Any

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.values import value_text

OPEN, CLOSE = "{{", "}}"
MAX_EXPRESSION_CHARACTERS = 2_000
MAX_CLOSES_TRIED = 16
# The last name of a variable, an attribute or a subscript, alone or after an underscore.
_SECRET = re.compile(
    r"(?:^|[._'\"\[])(?:api_?)?(?:key|token|password|passwd|secret|credential)s?(?:['\"]?\])?$",
    re.IGNORECASE,
)


def fill(text: str, namespace: dict[str, Any]) -> str:
    """Put values in the place of every `{{expr}}` of `text`.

    Strings go in as they are, other values as `value_text` shows them. Raises `InputValidation`
    where a name is unknown or the expression fails; nothing has been sent then.
    """
    made: list[str] = []
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        if text[start - 1 : start] == "\\":
            made += [text[position : start - 1], OPEN]
            position = start + len(OPEN)
            continue
        found = _expression(text, start + len(OPEN))
        made.append(text[position:start])
        if found is None:
            made.append(OPEN)
            position = start + len(OPEN)
        else:
            code, position = found
            source = text[start + len(OPEN) : position - len(CLOSE)]
            made.append(_shown(code, source.strip(), namespace))
    return "".join([*made, text[position:]])


def _expression(text: str, start: int) -> tuple[CodeType, int] | None:
    """Compile the shortest expression that ends in `}}`; with it, where the text goes on."""
    end = start
    for _ in range(MAX_CLOSES_TRIED):
        end = text.find(CLOSE, end, start + MAX_EXPRESSION_CHARACTERS)
        if end < 0:
            return None
        code = _compiled(text[start:end])
        if code is not None:
            return code, end + len(CLOSE)
        end += 1
    return None


def _compiled(source: str) -> CodeType | None:
    if not source.strip():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return compile(source.strip(), "<prompt>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _shown(code: CodeType, source: str, namespace: dict[str, Any]) -> str:
    try:
        # The person's own expression, in the person's own kernel.
        value = eval(code, namespace)  # noqa: S307
    except NameError as error:
        raise InputValidation(_undefined(source, error, namespace)) from error
    except (Exception, SystemExit) as error:  # whatever the person's expression raises
        reason = f"{type(error).__name__}: {error}"
        raise InputValidation(f"{{{{{source}}}}} failed ({reason}). Nothing was sent.") from error
    if _is_secret(source, value):
        raise InputValidation(
            f"{{{{{source}}}}} is called like a secret, and secrets are never sent; if it is none,"
            " put it under another name. Nothing was sent."
        )
    return value if isinstance(value, str) else value_text(value)


def _is_secret(source: str, value: object) -> bool:
    """Tell whether an expression plainly names a secret text, or the environment (D 56)."""
    if value is os.environ:
        return True
    return isinstance(value, str | bytes) and _SECRET.search(source) is not None


def _undefined(source: str, error: NameError, namespace: Mapping[str, Any]) -> str:
    name = error.name or source
    known = [known for known in namespace if not known.startswith("_")]
    near = get_close_matches(name, known, n=1)
    hint = (
        f"; did you mean {near[0]}?" if near else "; write \\{{ or --raw to send it as it stands."
    )
    asked = f"{{{{{source}}}}}"
    what = f"{asked} is not defined" if name == source else f"{asked} uses {name}, not defined"
    return f"{what}{hint} Nothing was sent."
