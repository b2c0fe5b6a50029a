"""The person's variables, and what a dotted path from one of them leads to without running code."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from agent_magics.core.errors import InputValidation
from agent_magics.notebook.kernel.sharing import is_secret, is_secret_source
from agent_magics.notebook.text.shapes import is_a, type_name

OURS = "agent_magics."
_NO_VALUE = object()
# Attributes that such libraries compute are computed by them, not by code of the notebook.
_LIBRARIES = {"pandas", "numpy", "polars", "torch", "xarray", "datetime", "collections", "pathlib"}
_STORED = (
    *(types.MemberDescriptorType, types.GetSetDescriptorType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
)
_INDEXED = (dict, list, tuple, str, bytes, range)


class ShellNames:
    """The names of a shell; `hidden` are those that IPython itself put there."""

    def __init__(self, namespace: dict[str, Any], hidden: Mapping[str, object]) -> None:
        self.namespace = namespace
        self._hidden = hidden

    def own(self) -> dict[str, object]:
        """Return what the person made, by name; callable from any thread.

        Not what begins with an underscore, nor objects of this package.
        """
        return {
            name: value
            for name, value in sorted(dict(self.namespace).items(), key=lambda item: str(item[0]))
            if isinstance(name, str)
            and not name.startswith("_")
            and value is not self._hidden.get(name, _NO_VALUE)
            and not module_of(value).startswith(OURS)
        }

    def shown(self) -> dict[str, object]:
        """Return the person's variables that may be told: no secrets, no modules."""
        return {
            name: value
            for name, value in self.own().items()
            if not is_secret(name, value) and not issubclass(type(value), types.ModuleType)
        }

    def find(self, path: str) -> object:
        """Follow a path such as `model.layers[0].weights` or `df["age"]`.

        Raises `InputValidation` where it isn't one, leads nowhere, is called like a secret, or
        can be known only by running code of the notebook.
        """
        try:
            tree = ast.parse(path.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputValidation(_no_path(path)) from None
        value = self._followed(tree, path)
        if is_secret_source(path, value):
            raise InputValidation(f"{path} is called like a secret; secrets are never shown.")
        return value

    def _followed(self, tree: ast.expr, path: str) -> object:
        match tree:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name.startswith("_"):
                raise InputValidation(f"{name} begins with an underscore; such names stay here.")
            case ast.Name(id=name):
                return self._variable(name)
            case ast.Attribute(value=whole, attr=name):
                return _attribute(self._followed(whole, path), name)
            case ast.Subscript(value=whole, slice=index):
                return _item(self._followed(whole, path), _constant(index, path))
        raise InputValidation(_no_path(path))

    def _variable(self, name: str) -> object:
        value = self.namespace.get(name, _NO_VALUE)
        if value is _NO_VALUE:
            near = get_close_matches(name, self.own(), n=1)
            hint = f"; did you mean {near[0]}?" if near else "; list_variables tells what there is."
            raise InputValidation(f"There is no variable {name}{hint}")
        return value


def module_of(value: object) -> str:
    """Name the module of a value's type."""
    # Past the metaclass, which may have a `__module__` that runs code.
    module = type.__dict__["__module__"].__get__(type(value))
    return module if isinstance(module, str) else ""


def _is_of_library(value: object) -> bool:
    return module_of(value).partition(".")[0] in _LIBRARIES


def _no_path(path: str) -> str:
    return (
        f'"{path[:80]}" is no name with attributes and indexes, as in model.layers[0]; to evaluate'
        " an expression use run_python."
    )


def _needs_code(what: str) -> InputValidation:
    return InputValidation(f"{what} is computed by code; use run_python to look at it.")


def _constant(index: ast.expr, path: str) -> object:
    try:
        value = ast.literal_eval(index)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InputValidation(_no_path(path)) from None
    if not isinstance(value, str | int | float | tuple):
        raise InputValidation(_no_path(path))
    return value


def _attribute(value: Any, name: str) -> object:
    found = inspect.getattr_static(value, name, _NO_VALUE)
    if found is _NO_VALUE:
        if is_a(value, "pandas", "DataFrame") and name in value.columns:
            return value[name]
        raise InputValidation(f"{type_name(value)} has no attribute {name}.")
    # A property of the notebook's own class is code that may do anything; those of known libraries
    # only compute.
    if type(found) in _STORED or (_is_of_library(value) and not callable(found)):
        return getattr(value, name)
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    if hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType | type):
        raise _needs_code(f"{type_name(value)}.{name}")
    return found


def _item(value: Any, index: object) -> object:
    # `type`, not `isinstance`: a subclass may have a `__getitem__` of its own.
    if not (type(value) in _INDEXED or _is_of_library(value)):
        raise _needs_code(f"An item of {type_name(value)}")
    try:
        return value[index]
    except Exception:  # noqa: BLE001 - whatever a library says of a wrong index
        raise InputValidation(f"{type_name(value)} has no item {index!r}.") from None
