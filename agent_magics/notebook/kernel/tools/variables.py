"""`list_variables` and `inspect_variable`: what the kernel holds, as far as it is shared."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import ToolOutput
from agent_magics.notebook.kernel.definitions import definition_text
from agent_magics.notebook.kernel.sharing import ShareLevel, is_secret, scrubbed
from agent_magics.notebook.kernel.tables import table_text
from agent_magics.notebook.kernel.tools.names import ShellNames, module_of
from agent_magics.notebook.kernel.values import cut, value_text
from agent_magics.notebook.text.shapes import counted, plain_name, size_of, type_name
from agent_magics.tools.schema import FunctionTool, tool

MAX_LISTED = 150
MAX_LISTED_TOKENS = 2_000
MAX_INSPECTED_TOKENS = 2_000
MAX_ATTRIBUTES = 40
MAX_DOC_CHARACTERS = 300
MAX_PREVIEW_CHARACTERS = 60
_PLAIN = (bool, int, float, complex, str, type(None))
_MAX_PLAIN_NUMBER = 10**40


def variable_tools(
    names: ShellNames, share: Callable[[], ShareLevel]
) -> tuple[FunctionTool[..., Any], ...]:
    """Make the two tools; they change nothing and run on the main thread."""

    @tool
    def list_variables() -> ToolOutput:
        """List the variables of the notebook's kernel with type and size."""
        return ToolOutput(content=_listed(names, share()))

    @tool
    def inspect_variable(name: str) -> ToolOutput:
        """Describe a variable, or what a path leads to, as model.layers[0] or df["age"].

        Frames and arrays by shape, types, missing values and first rows; functions and classes by
        signature and doc.
        """
        try:
            value = names.find(name)
        except InputValidation as error:
            return ToolOutput(content=error.message, is_error=True)
        told = _inspected(name.strip(), value, share())
        return ToolOutput(content=scrubbed(told, names.namespace))

    return list_variables, inspect_variable


def line_of(name: str, value: object, share: ShareLevel) -> str:
    """Say of a variable on one line what can be said without running code of it."""
    told = f"{plain_name(name)}: {type_name(value)}"
    size = size_of(value) if share != "names" else ""
    if type(value) in _PLAIN and share == "sample":
        return f"{told} = {_preview(value)}"
    return f"{told}, {size}" if size else told


def _preview(value: object) -> str:
    if type(value) is int and abs(value) > _MAX_PLAIN_NUMBER:
        return "a very large number"
    text = repr(value[:MAX_PREVIEW_CHARACTERS]) if type(value) is str else repr(value)
    more = type(value) is str and len(value) > MAX_PREVIEW_CHARACTERS
    return f"{text}… ({size_of(value)})" if more else text


def _listed(names: ShellNames, share: ShareLevel) -> str:
    own, shown = names.own(), names.shown()
    definitions = [
        name for name, value in shown.items() if isinstance(value, type | types.FunctionType)
    ]
    modules = [name for name, value in own.items() if issubclass(type(value), types.ModuleType)]
    lines = [line_of(n, v, share) for n, v in shown.items() if n not in definitions]
    if not lines:
        lines = ["There are no variables yet."]
    if len(lines) > MAX_LISTED:
        lines[MAX_LISTED:] = [f"[{len(lines) - MAX_LISTED:,} more]"]
    for what, which in (("functions and classes", definitions), ("modules", modules)):
        if which:
            lines.append(f"{what}: {', '.join(map(plain_name, which))}")
    secrets = sum(is_secret(name, value) for name, value in own.items())
    if secrets:
        lines.append(f"[{counted(secrets, 'variable')} called like secrets left out]")
    return cut(scrubbed("\n".join(lines), names.namespace), MAX_LISTED_TOKENS)


def _inspected(name: str, value: object, share: ShareLevel) -> str:
    if share == "names":
        return f"{name}: {type_name(value)} [values are not shared here: AgentMagics.share]"
    told = value_text(value, share=share, max_tokens=MAX_INSPECTED_TOKENS)
    if _has_head(value, share):
        return f"{name}: {told}"
    head = line_of(name, value, "schema")
    about = _about(value)
    body = "" if share == "schema" else told
    return cut("\n".join(filter(None, [head, about, body])), MAX_INSPECTED_TOKENS)


def _has_head(value: object, share: ShareLevel) -> bool:
    """Return whether the form of a value begins with its type and size."""
    try:
        return bool(table_text(value, "schema") or definition_text(value, share))
    except Exception:  # noqa: BLE001 - a half-made frame; its form says so
        return False


def _about(value: object) -> str:
    """Describe an object by its class's doc and the attributes that it holds."""
    if module_of(value) == "builtins":
        return ""
    try:
        return "\n".join([*_doc(type(value)), *_held(value)])
    except Exception:  # noqa: BLE001 - a class may answer its own `__dict__`, and fail
        return ""


def _doc(kind: type) -> Iterator[str]:
    doc = kind.__dict__.get("__doc__")
    if isinstance(doc, str) and doc.strip():
        yield doc.strip().split("\n\n")[0][:MAX_DOC_CHARACTERS]


def _held(value: object) -> Iterator[str]:
    held: dict[str, object] = getattr(value, "__dict__", {})
    shown = [
        line_of(name, item, "schema")
        for name, item in held.items()
        if isinstance(name, str) and not name.startswith("_") and not is_secret(name, item)
    ]
    if shown:
        yield f"holds {'; '.join(shown[:MAX_ATTRIBUTES])}"
