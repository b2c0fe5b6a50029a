"""Lines that set one of our settings to what Python can't read, as a text without quotes."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import traitlets
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import make_tokens_by_line

from agent_magics.notebook.binding.setting_checks import form_of

_LINE = re.compile(
    r"(?P<before>\s*)%config\s+AgentMagics\.(?P<name>\w+)\s*=(?!=)\s*(?P<value>.+?)\s*$"
)
_QUOTES = "'\"`\u2018\u2019\u201c\u201d"
_TEXTS = (traitlets.Unicode, traitlets.Enum, traitlets.Union)


class SettingLines:
    """Refuses such lines before IPython runs them: it would show its own code in a traceback.

    `traits` are our settings; `names` gives what has a value in the notebook now.
    """

    def __init__(
        self, traits: Mapping[str, Any], names: Callable[[], Collection[str]] = tuple
    ) -> None:
        self._traits = traits
        self._names = names

    def check(self, lines: list[str]) -> None:
        """Raise `UsageError` on the first value that can't be read, with how to write it."""
        found = [(number, _LINE.match(line)) for number, line in enumerate(lines)]
        if not any(match for _, match in found):
            return
        tokens = (token for line in make_tokens_by_line(lines) for token in line)
        starts = {token.start for token in tokens if token.string == "%"}  # none in a text
        for number, match in found:
            if match and (number + 1, match.end("before")) in starts:
                others = "".join([*lines[:number], *lines[number + 1 :]])
                self._check(match["name"], match["value"], others)

    def _check(self, name: str, value: str, others: str) -> None:
        trait = self._traits.get(name)
        if trait is None or not self._is_unread(value, others):
            return
        text = value.partition("#")[0].strip().strip(_QUOTES)
        if isinstance(trait, _TEXTS) and not set(text) & set("{}[]\"'\\"):
            how = f'write it in quotes, %config AgentMagics.{name} = "{text}"'
        else:
            how = f"write {form_of(trait)}"
        raise UsageError(f"AgentMagics.{name} stays as it was: {value} can't be read; {how}.")

    def _is_unread(self, value: str, others: str) -> bool:
        try:
            read = ast.parse(value, mode="eval").body
        except (SyntaxError, ValueError):
            return True
        if not isinstance(read, ast.Name) or hasattr(builtins, read.id):
            return False
        is_made_here = re.search(rf"\b{re.escape(read.id)}\b", others)
        return read.id not in self._names() and is_made_here is None
