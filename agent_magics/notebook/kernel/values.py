"""How a value of the kernel is told to the model: short, typed, never longer than its share.

One form for `{{expr}}`, `--attach` and the tools, as far as `share` allows. Showing a
value runs its own `__repr__`, and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_magics.core.errors import said_by
from agent_magics.notebook.kernel.definitions import definition_text
from agent_magics.notebook.kernel.sharing import SECRET, ShareLevel, is_secret
from agent_magics.notebook.kernel.tables import table_text
from agent_magics.notebook.text.shapes import counted, size_of, type_name

MAX_VALUE_TOKENS = 4_000
MAX_ITEMS = 1_000
MAX_TEXT_CHARACTERS = 20_000
MAX_BYTES = 500
_MAX_PARTS = 4_000
_MAX_DEPTH = 8
_WIDE, _NARROW = 1_000_000, 79
_CONTAINERS = (dict, list, tuple, set, frozenset)


def value_text(
    value: object, *, share: ShareLevel = "sample", max_tokens: int = MAX_VALUE_TOKENS
) -> str:
    """Describe a value in at most `max_tokens` tokens, cut with a mark where it is longer.

    Frames, series and arrays are told by shape, types, what is missing and first rows; functions,
    classes and modules by signature, doc and members; everything else by its pretty-printed form,
    long containers by their first items. Entries called like secrets are masked. A value whose
    repr fails is named by its type. `share` "schema" tells types and sizes only, "names" the type.
    """
    return cut(_told(value, share), max_tokens)


def cut(text: str, max_tokens: int) -> str:
    """Keep the first `max_tokens` o200k_base tokens of a text; a mark says how many there were."""
    if len(text.encode("utf-8", "replace")) <= max_tokens:
        return text  # a token is at least one byte
    # tiktoken's ranks take a moment to build: only for what may be too long.
    from agent_magics.context.tokens import count_text  # noqa: PLC0415

    total = count_text(text)
    if total <= max_tokens:
        return text
    low, high = 0, min(len(text), max_tokens * 16)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_text(text[:middle]) <= max_tokens else (low, middle - 1)
    return f"{text[:low]}\n[cut here: {max_tokens:,} of {total:,} tokens]"


def _told(value: object, share: ShareLevel) -> str:
    if share == "names":
        return type_name(value)
    try:
        known = table_text(value, share) or definition_text(value, share)
        if known:
            return known
        return _pretty(value) if share == "sample" else _sized(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a value's own repr may raise anything
        return f"<{type_name(value)}: can't be shown ({said_by(error)})>"


def _sized(value: object) -> str:
    size = size_of(value)
    return f"{type_name(value)}, {size}" if size else type_name(value)


def _pretty(value: object) -> str:
    # IPython's printer is slow to import outside a shell and knows cycles.
    from IPython.lib import pretty as printer  # noqa: PLC0415

    pretty: Callable[..., str] = printer.pretty
    # A line an item would be mostly blanks.
    width = _WIDE if type(value) in _CONTAINERS[1:] else _NARROW
    # Printing a container prints all of it before anything is cut: a list of a million frames would
    # hold the cell for minutes.
    shown = pretty(_Sampler().sampled(value), max_width=width, max_seq_length=MAX_ITEMS + 1)
    size = len(value) if type(value) in _CONTAINERS else 0  # type: ignore[arg-type] # one of them
    if size <= MAX_ITEMS:
        return shown
    return f"{type_name(value)}, {counted(size, 'item')}, the first {MAX_ITEMS:,} of them:\n{shown}"


class _Raw:
    """Stands for a part of a container; shown without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Sampler:
    """Copies the builtin containers of a value as far as they are told, secrets masked.

    A frame in a container is named, not shown. Bounded in all, so that a value of any size takes
    little time.
    """

    def __init__(self) -> None:
        self._parts = 0

    def sampled(self, value: Any, depth: int = 0) -> object:
        self._parts += 1
        kind = type(value)
        if kind in _CONTAINERS and value:
            if depth > _MAX_DEPTH or self._is_full():
                return _Raw("…")
            return self._dict(value, depth) if kind is dict else self._items(value, depth)
        if kind is str and len(value) > MAX_TEXT_CHARACTERS:
            return _Raw(f"{value[:MAX_TEXT_CHARACTERS]!r}… ({size_of(value)})")
        if kind is bytes and len(value) > MAX_BYTES:
            return _Raw(f"{value[:MAX_BYTES]!r}… ({size_of(value)})")
        size = size_of(value) if depth else ""
        is_table = "row" in size or "shape" in size or "value" in size
        return _Raw(f"<{type_name(value)}, {size}>") if is_table else value

    def _dict(self, value: dict[object, object], depth: int) -> dict[object, object]:
        made: dict[object, object] = {}
        for key, item in value.items():
            if len(made) >= MAX_ITEMS or self._is_full():
                made[_Raw("…")] = _Raw("…")
                break
            shown = self.sampled(key, depth + 1)
            # Keys of a dictionary are names as well: settings are often kept so.
            made[shown] = _Raw(SECRET) if is_secret(key, item) else self.sampled(item, depth + 1)
        return made

    def _items(self, value: Any, depth: int) -> object:
        made: list[object] = []
        for item in value:
            if len(made) >= MAX_ITEMS or self._is_full():
                made.append(_Raw("…"))
                break
            made.append(self.sampled(item, depth + 1))
        return type(value)(made)

    def _is_full(self) -> bool:
        return self._parts > _MAX_PARTS
