"""How a value of the kernel is told to the model: short, typed, never longer than its share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

MAX_VALUE_TOKENS = 4_000
SAMPLE_ROWS = 5


def value_text(value: object, *, max_tokens: int = MAX_VALUE_TOKENS) -> str:
    """Describe a value in at most `max_tokens` tokens, cut with a mark where it is longer.

    Data frames and series are told by shape, dtypes and first rows, everything else by its
    pretty-printed form. A value whose repr fails is named by its type.
    """
    return cut(_told(value), max_tokens)


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


def _told(value: object) -> str:
    pandas = sys.modules.get("pandas")  # a frame exists only where pandas was imported
    try:
        if pandas is not None and isinstance(value, pandas.DataFrame):
            return _frame(value)
        if pandas is not None and isinstance(value, pandas.Series):
            return _series(value)
        return _pretty(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a value's own repr may raise anything
        return f"<{type(value).__name__}: can't be shown ({type(error).__name__}: {error})>"


def _frame(frame: Any) -> str:
    rows, columns = frame.shape
    dtypes = "\n".join(f"{name}: {dtype}" for name, dtype in frame.dtypes.items())
    head = frame.head(SAMPLE_ROWS).to_csv(index=False)
    shown = min(rows, SAMPLE_ROWS)
    told = f"DataFrame, {rows:,} rows x {columns} columns\n{dtypes}"
    return f"{told}\nfirst {shown} rows as CSV:\n{head}".rstrip("\n")


def _series(series: Any) -> str:
    head = series.head(SAMPLE_ROWS).to_csv(header=False)
    shown = min(len(series), SAMPLE_ROWS)
    name = "" if series.name is None else f" {series.name!r}"
    return (
        f"Series{name}, {len(series):,} values, {series.dtype}\nfirst {shown} as CSV:\n{head}"
    ).rstrip("\n")


def _pretty(value: object) -> str:
    # IPython's printer is slow to import outside a shell and knows cycles and long sequences.
    from IPython.lib import pretty as printer  # noqa: PLC0415

    pretty: Callable[[object], str] = printer.pretty
    return pretty(value)
