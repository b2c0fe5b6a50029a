"""The tools that a notebook offers its agent: functions of its namespace marked with `@tool`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_magics.tools.schema import FunctionTool


def tools_in(namespace: Mapping[str, object]) -> tuple[FunctionTool[..., Any], ...]:
    """Return the tools that a namespace holds now, by name; callable from any thread.

    What has an underscore before its name isn't among them (IPython's own keep old values alive).
    Of two that are called the same, the one in the variable of that name wins.
    """
    found: dict[str, FunctionTool[..., Any]] = {}
    for variable, value in dict(namespace).items():
        if not isinstance(value, FunctionTool) or variable.startswith("_"):
            continue
        if value.name not in found or variable == value.name:
            found[value.name] = value
    return tuple(found[name] for name in sorted(found))
