"""`--attach`: a file or a value of the kernel goes along with the prompt."""

from __future__ import annotations

import base64
import builtins
import mimetypes
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import IMAGE_TYPES, ContentBlock, File, Image
from agent_magics.notebook.kernel.fill import compiled, evaluated
from agent_magics.notebook.kernel.sharing import ShareLevel
from agent_magics.notebook.kernel.values import value_text

MAX_TEXT_BYTES = 1_000_000
_ROOT = re.compile(r"[^\W\d]\w*")
_LIKE_A_PATH = re.compile(r"[/\\]|\.\w{1,5}$")


def attachments(
    shell: InteractiveShell,
    wanted: Sequence[str],
    names: dict[str, Any],
    *,
    share: ShareLevel = "sample",
) -> tuple[ContentBlock, ...]:
    """Read what `--attach` names, each a path or else an expression.

    Images (png, jpeg, gif, webp) go as images: a file, or a value that shows itself as one (a
    figure, a PIL image). Everything else goes as text, a value as `{{…}}` would tell it. Raises
    `InputValidation` on what is neither; nothing was sent then.
    """
    return tuple(_attachment(shell, one, names, share) for one in wanted)


def _attachment(
    shell: InteractiveShell, wanted: str, names: dict[str, Any], share: ShareLevel
) -> ContentBlock:
    path = _at_home(wanted)
    # A file first: `data.csv` is also an expression, of a variable `data`.
    if _holds(path.is_file):
        return _of_file(path, wanted)
    code = compiled(wanted)
    root = _ROOT.match(wanted)
    is_value = code is not None and (root is None or root.group() in {*names, *dir(builtins)})
    if not is_value and _holds(path.is_dir):
        raise InputValidation(
            f'--attach "{wanted}" is a folder; name a file in it. Nothing was sent.'
        )
    # A mistyped path would otherwise be evaluated, and fail with a NameError about its first part.
    if not is_value and _LIKE_A_PATH.search(wanted):
        raise InputValidation(
            f'--attach "{wanted}": there is no such file, looked for from {Path.cwd().name}/.'
            f"{_near(path)} Nothing was sent."
        )
    if code is None:
        raise InputValidation(
            f'--attach "{wanted}" is neither a file nor an expression. Nothing was sent.'
        )
    value = evaluated(code, wanted, names, named=f'--attach "{wanted}"')
    return _of_value(shell, wanted, value, share)


def _holds(is_there: Callable[[], bool]) -> bool:
    try:
        return is_there()
    except (OSError, ValueError):  # no path at all: too long, or with a NUL
        return False


def _near(path: Path) -> str:
    """Name the file that was probably meant."""
    try:
        there = [each.name for each in path.parent.iterdir()]
    except OSError:
        return ""
    found = get_close_matches(path.name, there, n=1)
    return f" Did you mean {path.parent / found[0]}?" if found else ""


def _at_home(wanted: str) -> Path:
    try:
        return Path(wanted).expanduser()
    except RuntimeError:  # nobody of that name has a home
        return Path(wanted)


def _of_file(path: Path, wanted: str) -> ContentBlock:
    media_type = mimetypes.guess_type(path.name)[0] or "text/plain"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputValidation(
            f'--attach "{wanted}" can\'t be read ({error.strerror}). Nothing was sent.'
        ) from error
    if media_type in IMAGE_TYPES:
        return Image(data=base64.b64encode(data).decode(), media_type=media_type)
    if len(data) > MAX_TEXT_BYTES:
        raise InputValidation(
            f'--attach "{wanted}" has {len(data):,} bytes; {MAX_TEXT_BYTES:,} of text are allowed.'
            " Nothing was sent."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputValidation(
            f'--attach "{wanted}" is neither an image ({", ".join(IMAGE_TYPES)}) nor UTF-8 text.'
            " Nothing was sent."
        ) from error
    return File(name=path.name, media_type=media_type, text=text)


def _of_value(shell: InteractiveShell, name: str, value: object, share: ShareLevel) -> ContentBlock:
    if isinstance(value, str):
        return File(name=name, media_type="text/plain", text=value)
    image = image_of(shell, value)
    if image is not None:
        return image
    return File(name=name, media_type="text/plain", text=value_text(value, share=share))


def image_of(shell: InteractiveShell, value: object) -> Image | None:
    """Return the image that a value shows itself as in the notebook; None where it shows none."""
    formatter: Any = shell.display_formatter  # IPython's has no types
    shown, _ = formatter.format(value, include=IMAGE_TYPES)
    for media_type in IMAGE_TYPES:
        data = shown.get(media_type)
        if data:
            encoded = base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)
            # matplotlib's base64 has line breaks, which servers refuse.
            return Image(data="".join(encoded.split()), media_type=media_type)
    return None
