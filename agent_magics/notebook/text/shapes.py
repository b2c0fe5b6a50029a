"""What can be said of a value without running any code of it: its type and its size.

Callable from any thread; what lies about its class is named by what it is.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

MAX_NAME_CHARACTERS = 60
_SIZED = (dict, list, tuple, set, frozenset, deque, range, str, bytes, bytearray)
_ARRAYS = {"torch", "polars", "xarray", "pyarrow", "jax", "jaxlib", "cupy", "tensorflow"}
_type_name_of = type.__dict__["__name__"].__get__


def type_name(value: object) -> str:
    """Name a value's type, whatever its metaclass says of it."""
    return plain_name(str(_type_name_of(type(value))))


def plain_name(name: str) -> str:
    """Write a name that code has chosen on one short line, without what can't be seen."""
    seen = "".join(c if c.isprintable() else "?" for c in name[: MAX_NAME_CHARACTERS + 1])
    return seen if len(seen) <= MAX_NAME_CHARACTERS else f"{seen[:MAX_NAME_CHARACTERS]}…"


def is_a(value: object, module: str, name: str) -> bool:
    """Return whether a value is of a library's class; the library isn't imported for it."""
    kind = getattr(sys.modules.get(module), name, None)
    return type(kind) is type and issubclass(type(value), kind)


def library_of(value: object) -> str:
    """Name the top module of a value's type where it is a known library of arrays and tables."""
    module = type.__dict__["__module__"].__get__(type(value))
    top = module.partition(".")[0] if isinstance(module, str) else ""
    return top if top in _ARRAYS else ""


def size_of(value: object) -> str:
    """Return how large a value is, in the words of its kind; "" where that isn't known."""
    try:
        return _size(value)
    except Exception:  # noqa: BLE001 - a half-made object of a library may raise anything
        return ""


def _size(value: Any) -> str:
    if is_a(value, "pandas", "DataFrame"):
        rows, columns = sys.modules["pandas"].DataFrame.shape.fget(value)
        return f"{counted(rows, 'row')} x {counted(columns, 'column')}"
    if is_a(value, "pandas", "Series"):
        return f"{counted(len(value), 'value')}, {value.dtype}"
    if is_a(value, "numpy", "ndarray"):
        return f"shape {value.shape}, {value.dtype}"
    if library_of(value) and isinstance(getattr(value, "shape", None), tuple):
        return f"shape {tuple(value.shape)}"
    for kind in _SIZED:
        if issubclass(type(value), kind):
            noun = {str: "character", bytes: "byte", bytearray: "byte"}.get(kind, "item")
            return counted(kind.__len__(value), noun)
    return ""


def counted(count: int, noun: str) -> str:
    """Say how many, in the singular where it is one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
