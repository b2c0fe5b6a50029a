"""A header line up to the cursor, as completion sees it: the words that are done, and a beginning.

Names are offered as they would be typed: in quotes where they have blanks, or where the person
has opened some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from agent_magics.notebook.line.arguments import next_token

_QUOTES = "\"'"
_OPEN = re.compile(r"(?:[^\s\"'=]*=)?(?:\"[^\"]*|'[^']*)")


class Begun(NamedTuple):
    """The words before the cursor without their quotes, and what stands of the last one."""

    done: list[str]
    fragment: str


def begun(text: str) -> Begun:
    """Split what stands behind a magic's name; a quote that is open holds its blanks together."""
    done: list[str] = []
    rest = text.lstrip()
    while rest:
        token, after = next_token(rest)
        # The last word is being typed only while no blank stands behind it.
        if _OPEN.fullmatch(rest) or not (after or rest[-1].isspace()):
            return Begun(done, rest)
        done.append(token)
        rest = after
    return Begun(done, "")


def continued(names: Iterable[str], fragment: str) -> list[str]:
    """Return the names that a fragment begins, as they would be typed."""
    quote = fragment[0] if fragment and fragment[0] in _QUOTES else ""
    begins = fragment.strip(quote) if quote else fragment
    return [_typed(name, quote) for name in names if name.startswith(begins)]


def values_begun(values: Iterable[str], fragment: str) -> list[str]:
    """Return the values of a setting that a fragment begins; texts among them are in quotes."""
    quote = fragment[0] if fragment and fragment[0] in _QUOTES else '"'
    typed = [value.replace('"', quote) for value in values]
    return [value for value in typed if value.strip(_QUOTES).startswith(fragment.strip(_QUOTES))]


def files_at(fragment: str) -> Iterator[str]:
    """Name the files and folders that a path's beginning may become; hidden ones when asked."""
    before, slash, begins = fragment.lstrip(_QUOTES).rpartition("/")
    try:
        found = sorted(Path(before + slash).expanduser().iterdir())
    except OSError:
        return
    for path in found:
        if not path.name.startswith(".") or begins.startswith("."):
            yield f"{before}{slash}{path.name}{'/' if path.is_dir() else ''}"


def _typed(name: str, quote: str) -> str:
    if not quote and " " in name:
        quote = '"'
    return f"{quote}{name}{quote}"
