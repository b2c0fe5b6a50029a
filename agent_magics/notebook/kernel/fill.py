r"""`{{expr}}` in prompts: filled from the kernel's namespace when it is Python.

Why: docs/decisions.md#53.

Text between the braces that isn't an expression stays as it is; so does `\{{`. Where it was
plainly meant as code (a variable of the kernel, or a call, subscript or attribute) that is said.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import CodeType
from typing import Any

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import Image
from agent_magics.core.values import Value
from agent_magics.notebook.kernel.sharing import ShareLevel, is_secret_source
from agent_magics.notebook.kernel.values import value_text

OPEN, CLOSE = "{{", "}}"
MAX_EXPRESSION_CHARACTERS = 2_000
MAX_CLOSES_TRIED = 16
MAX_TOLD = 3
MAX_TOLD_CHARACTERS = 80
_PLAIN = (bool, int, float, complex, type(None))
_CODE = re.compile(r"\s*(?P<name>[^\W\d]\w*)(?P<more>[.(\[])?")


class Filled(Value):
    """A prompt with its values. `unread`: what was meant as code and is none, as it was written.

    `images` go behind the text, in which `[image: fig]` stands for each.
    """

    text: str
    unread: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()

    @property
    def warning(self) -> str | None:
        """Say in one line what isn't Python; None where nothing is."""
        if not self.unread:
            return None
        shown = ", ".join(f"{{{{{source}}}}}" for source in self.unread[:MAX_TOLD])
        more = len(self.unread) - MAX_TOLD
        shown += f" and {more} more" if more > 0 else ""
        one = len(self.unread) == 1
        return (
            f"{shown} {'is' if one else 'are'} not Python and {'was' if one else 'were'} sent as "
            + ("it stands" if one else "they stand")
        )


def fill(
    text: str,
    namespace: dict[str, Any],
    *,
    share: ShareLevel = "sample",
    image_of: Callable[[object], Image | None] = lambda _: None,
) -> Filled:
    """Put values in the place of every `{{expr}}` of `text`.

    Strings and plain numbers go in as they are, what `image_of` gives an image of as that, other
    values as `value_text` shows them as far as `share` allows. Raises `InputValidation` where a
    name is unknown or the expression fails; nothing has been sent then.
    """
    made: list[str] = []
    images: list[Image] = []
    unread: dict[str, None] = {}
    position = 0
    while (start := text.find(OPEN, position)) >= 0:
        if text[start - 1 : start] == "\\":
            made += [text[position : start - 1], OPEN]
            position = start + len(OPEN)
            continue
        found = _expression(text, start + len(OPEN))
        made.append(text[position:start])
        if found is None:
            unread.update(dict.fromkeys(_meant_as_code(text, start + len(OPEN), namespace)))
            made.append(OPEN)
            position = start + len(OPEN)
        else:
            code, position = found
            source = text[start + len(OPEN) : position - len(CLOSE)]
            value = evaluated(code, source.strip(), namespace, named=f"{{{{{source.strip()}}}}}")
            image = None if isinstance(value, (str, *_PLAIN)) else image_of(value)
            if image is not None:
                images.append(image)
            made.append(f"[image: {source.strip()}]" if image else _shown(value, share))
    return Filled(
        text="".join([*made, text[position:]]), unread=tuple(unread), images=tuple(images)
    )


def _meant_as_code(text: str, start: int, namespace: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what stands between the braces, if it begins as an expression on the kernel does."""
    end = text.find(CLOSE, start, start + MAX_TOLD_CHARACTERS)
    source = text[start:end] if end >= 0 else ""
    begin = _CODE.match(source)
    if begin is None or "\n" in source or not (begin["more"] or begin["name"] in namespace):
        return ()
    return (source.strip(),)


def _expression(text: str, start: int) -> tuple[CodeType, int] | None:
    """Compile the shortest expression that ends in `}}`; with it, where the text goes on."""
    end = start
    # `}}` may end a dictionary inside the expression: the shortest text that compiles is it.
    for _ in range(MAX_CLOSES_TRIED):
        end = text.find(CLOSE, end, start + MAX_EXPRESSION_CHARACTERS)
        if end < 0:
            return None
        code = compiled(text[start:end])
        if code is not None:
            return code, end + len(CLOSE)
        end += 1
    return None


def compiled(source: str) -> CodeType | None:
    """Compile an expression; None where it is none."""
    if not source.strip():
        return None
    try:
        with warnings.catch_warnings():
            # The text may be any prose; a warning about it would stand in the person's cell.
            warnings.simplefilter("ignore", SyntaxWarning)
            return compile(source.strip(), "<prompt>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _shown(value: object, share: ShareLevel) -> str:
    if isinstance(value, str):
        return value
    # A number that is named in a prompt was meant to be in it, whatever `share` says of data.
    return value_text(value, share="sample" if type(value) in _PLAIN else share)


def evaluated(code: CodeType, source: str, namespace: dict[str, Any], *, named: str) -> object:
    """Evaluate the person's own expression in the person's own kernel.

    Raises `InputValidation`, which calls it as `named` says, where it fails or is called like a
    secret.
    """
    try:
        value: object = eval(code, namespace)  # noqa: S307
    except NameError as error:
        raise InputValidation(_undefined(source, error, namespace, named)) from error
    except (Exception, SystemExit) as error:  # whatever the person's expression raises
        reason = f"{type(error).__name__}: {error}"
        raise InputValidation(f"{named} failed ({reason}). Nothing was sent.") from error
    if is_secret_source(source, value):
        raise InputValidation(
            f"{named} is called like a secret, and secrets are never sent; if it is none,"
            " put it under another name. Nothing was sent."
        )
    return value


def _undefined(source: str, error: NameError, namespace: Mapping[str, Any], asked: str) -> str:
    name = error.name or source
    known = [known for known in namespace if not known.startswith("_")]
    near = get_close_matches(name, known, n=1)
    hint = (
        f"; did you mean {near[0]}?" if near else "; write \\{{ or --raw to send it as it stands."
    )
    what = f"{asked} is not defined" if name == source else f"{name} is not defined ({asked})"
    return f"{what}{hint} Nothing was sent."
