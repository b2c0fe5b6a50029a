"""How frames, series and arrays are told to the model: schema, what is missing, a few rows.

Nothing here imports a library: a frame exists only where its library was imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from agent_magics.core.errors import said_by
from agent_magics.notebook.kernel.sharing import SECRET, ShareLevel, is_secret, is_secret_name
from agent_magics.notebook.text.shapes import (
    counted,
    is_a,
    library_of,
    plain_name,
    size_of,
    type_name,
)

SAMPLE_ROWS = 5
MAX_COLUMNS = 100
MAX_CELL_CHARACTERS = 200
MAX_COUNTED_CELLS = 5_000_000
MAX_OWN_CHARACTERS = 4_000


def table_text(value: object, share: ShareLevel) -> str | None:
    """Describe a frame, series or array; None for anything else. `share` isn't "names" here."""
    if is_a(value, "pandas", "DataFrame"):
        return _joined(_frame(value, share))
    if is_a(value, "pandas", "Series"):
        return _joined(_series(value, share))
    if is_a(value, "numpy", "ndarray"):
        return _joined(_array(value, share))
    # By name and shape, importing nothing: a library that isn't loaded can't have made the value.
    if library_of(value) and hasattr(value, "shape"):
        return _joined(_of_other_library(value, share))
    return None


def without_secrets(value: object) -> object:
    """Return a frame or series with the values of columns masked that are called like secrets.

    Anything else, and what has no such column, is given back as it is.
    """
    if is_a(value, "pandas", "DataFrame"):
        secret = _secret_columns(value)
        return _masked(value, secret) if secret else value
    if is_a(value, "pandas", "Series") and _is_secret_column(value.name, value.dtype):  # type: ignore[attr-defined]
        masked: object = value.astype(object).where(value.isna() & False, SECRET)  # type: ignore[attr-defined]
        return masked
    return value


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip("\n")


def _frame(frame: Any, share: ShareLevel) -> Iterator[str]:
    width = frame.shape[1]
    yield f"{type_name(frame)}, {size_of(frame)}"
    shown = frame.iloc[:, :MAX_COLUMNS]
    missing = _missing_by_column(shown)
    for at, (name, dtype) in enumerate(zip(shown.columns, shown.dtypes, strict=True)):
        lacks = f", {missing[at]:,} missing" if missing and missing[at] else ""
        yield f"{_named(name)}: {dtype}{lacks}"
    if width > MAX_COLUMNS:
        yield f"[{width - MAX_COLUMNS:,} more columns]"
    if missing is None:
        yield "[missing values were not counted: the frame is large]"
    has_index = not is_a(frame.index, "pandas", "RangeIndex")
    if has_index:
        yield f"index: {type_name(frame.index)}, {_index_names(frame.index)}"
    if share == "sample":
        yield _sample(shown, has_index=has_index)


def _series(series: Any, share: ShareLevel) -> Iterator[str]:
    name = "" if series.name is None else f" {_named(series.name)!r}"
    lacks = int(series.isna().sum()) if series.size <= MAX_COUNTED_CELLS else 0
    told = f"{type_name(series)}{name}, {counted(len(series), 'value')}, {series.dtype}"
    yield f"{told}, {lacks:,} missing" if lacks else told
    if share != "sample":
        return
    if _is_secret_column(series.name, series.dtype):
        yield SECRET
        return
    if series.dtype.kind in "iuf" and series.size <= MAX_COUNTED_CELLS and len(series) > lacks:
        yield f"min {series.min():g}, mean {series.mean():g}, max {series.max():g}"
    yield _sample(series.to_frame(), has_index=True, is_series=True)


def _sample(frame: Any, *, has_index: bool, is_series: bool = False) -> str:
    """Return the first rows as CSV, long cells cut; where a cell can't be written, say so."""
    shown = min(len(frame), SAMPLE_ROWS)
    try:
        head = _masked(frame.head(SAMPLE_ROWS), _secret_columns(frame)).map(_cell)
        names = [name for name in frame.index.names if name is not None]
        # An index is a column by another name.
        hides_index = has_index and any(map(is_secret_name, names))
        text = head.to_csv(index=has_index and not hides_index, header=not is_series)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a cell's own repr may raise anything
        return f"[its rows can't be shown: {said_by(error)}]"
    noun = "" if is_series else " rows"
    return f"first {shown}{noun} as CSV:\n{text}"


def _cell(value: object) -> object:
    if type(value) is str and len(value) > MAX_CELL_CHARACTERS:
        return f"{value[:MAX_CELL_CHARACTERS]}…"
    return value


def _masked(frame: Any, secret: list[int]) -> Any:
    masked = frame.copy()
    for at in secret:
        masked.isetitem(at, SECRET)
    return masked


def _secret_columns(frame: Any) -> list[int]:
    columns = enumerate(zip(frame.columns, frame.dtypes, strict=True))
    return [at for at, (name, dtype) in columns if _is_secret_column(name, dtype)]


def _is_secret_column(name: object, dtype: Any) -> bool:
    names = name if isinstance(name, tuple) else (name,)
    return getattr(dtype, "kind", "O") not in "biufcmM" and any(map(is_secret_name, names))


def _missing_by_column(frame: Any) -> list[int] | None:
    return [int(n) for n in frame.isna().sum()] if frame.size <= MAX_COUNTED_CELLS else None


def _index_names(index: Any) -> str:
    names = [_named(name) for name in index.names if name is not None]
    return f"named {', '.join(names)}" if names else "without a name"


def _named(name: object) -> str:
    if isinstance(name, str):
        return plain_name(name)
    try:
        return plain_name(str(name))
    except Exception:  # noqa: BLE001 - a label may be any object
        return f"<{type_name(name)}>"


def _array(array: Any, share: ShareLevel) -> Iterator[str]:
    yield f"{type_name(array)}, shape {array.shape}, {array.dtype}"
    fields = array.dtype.names or ()
    if share != "sample" or not array.size:
        return
    if any(is_secret(name, "") for name in fields):
        yield SECRET
        return
    if array.dtype.kind in "iuf" and array.size <= MAX_COUNTED_CELLS:
        yield from _statistics(array)
    numpy: Any = sys.modules["numpy"]
    yield str(numpy.array2string(array, threshold=50, edgeitems=3))[:MAX_OWN_CHARACTERS]


def _statistics(array: Any) -> Iterator[str]:
    numpy: Any = sys.modules["numpy"]
    lacks = int(numpy.isnan(array).sum()) if array.dtype.kind == "f" else 0
    known = array[~numpy.isnan(array)] if lacks else array
    if known.size:
        # Overflow in a mean is the data's affair; a warning would stand in the person's cell.
        with numpy.errstate(all="ignore"):
            low, mean, high = known.min(), known.mean(dtype=float), known.max()
        yield f"min {low:g}, mean {mean:g}, max {high:g}"
    if lacks:
        yield f"{lacks:,} NaN"


def _of_other_library(value: Any, share: ShareLevel) -> Iterator[str]:
    """Describe another library's frame or tensor by its schema and, as a sample, its own words."""
    yield f"{type_name(value)} ({library_of(value)}), {size_of(value)}"
    schema: Any = getattr(value, "schema", None)
    fields = dict(schema) if hasattr(schema, "items") else {}
    for name, dtype in list(fields.items())[:MAX_COLUMNS]:
        yield f"{_named(name)}: {dtype}"
    if not fields and hasattr(value, "dtype"):
        yield f"dtype {value.dtype}"
    if share == "sample":
        has_secrets = any(map(is_secret_name, fields))
        yield SECRET if has_secrets else repr(value)[:MAX_OWN_CHARACTERS]
