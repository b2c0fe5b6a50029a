"""How functions, classes and modules are told to the model: signature, doc and members."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

from agent_magics.notebook.kernel.sharing import ShareLevel
from agent_magics.notebook.text.shapes import plain_name

MAX_DOC_CHARACTERS = 600
MAX_MEMBERS = 60
_FUNCTIONS = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType),
)


def definition_text(value: object, share: ShareLevel) -> str | None:
    """Describe a function, class or module; None for anything else.

    What a default is, as a value, is told as a sample only.
    """
    kind = type(value)
    if issubclass(kind, _FUNCTIONS):
        return "\n".join(_function(value, share))
    if issubclass(kind, type):
        return "\n".join(_class(value, share))
    if issubclass(kind, types.ModuleType):
        return "\n".join(_module(value))
    return None


def _function(function: Any, share: ShareLevel) -> Iterator[str]:
    yield f"function {plain_name(function.__name__)}{_signature(function, share)}"
    yield from _doc(function.__doc__)


def _class(kind: Any, share: ShareLevel) -> Iterator[str]:
    # Past the metaclass, whose `__name__` may be code.
    name = type.__dict__["__name__"].__get__(kind)
    yield f"class {plain_name(name)}{_signature(kind, share)}"
    yield from _doc(vars(kind).get("__doc__"))
    members = [name for name in vars(kind) if not name.startswith("_")]
    if members:
        yield f"members: {_listed(members)}"


def _module(module: Any) -> Iterator[str]:
    name, version = (vars(module).get(key) for key in ("__name__", "__version__"))
    shown = plain_name(name) if isinstance(name, str) else ""
    yield f"module {shown} {version}" if isinstance(version, str) else f"module {shown}"
    yield from _doc(vars(module).get("__doc__"))
    yield f"names: {_listed(sorted(name for name in vars(module) if not name.startswith('_')))}"


def _signature(function: Any, share: ShareLevel) -> str:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return "(…)"
    # A default is a value: a path, a password.
    return str(signature) if share == "sample" else f"({', '.join(signature.parameters)})"


def _doc(doc: object) -> Iterator[str]:
    if isinstance(doc, str) and doc.strip():
        text = inspect.cleandoc(doc[: 4 * MAX_DOC_CHARACTERS])
        yield text if len(text) <= MAX_DOC_CHARACTERS else f"{text[:MAX_DOC_CHARACTERS]}…"


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_MEMBERS
    shown = ", ".join(map(plain_name, names[:MAX_MEMBERS]))
    return f"{shown} and {more:,} more" if more > 0 else shown
