"""Completion of our magics' header lines and settings: subcommands, options, slots, models.

A matcher with `suppress`: where it knows what may stand, IPython's own guesses stay away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from IPython.core.completer import (
    CompletionContext,
    MatcherAPIv2,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from agent_magics.core.events import KINDS
from agent_magics.notebook.line.arguments import HELP, Command, Completes, Option
from agent_magics.notebook.line.catalogue import MAGICS, Magic, magic
from agent_magics.notebook.line.fragments import begun, continued, files_at, values_begun

MODES = ("full", "focused", "readonly")
_NAMES = "|".join(ours.name for ours in MAGICS)
_HEADER = re.compile(rf"^(?:(?P<cell>%%)|(?:[^%]*=)?\s*%)(?P<name>{_NAMES})\s+(?P<rest>.*)$")

_ASKS = re.compile(r"^(?:%%|(?:[^%]*=)?\s*%)agent(?=\s|$)(?:\s+--[\w-]+(?:=\S+|\s+[^\s/-]\S*)?)*")
_CALLS = re.compile(r"^(?:\s*/[a-z][a-z0-9_-]*(?=\s))*\s*/(?P<name>[a-z0-9_-]*)$")

_CONFIG = re.compile(r"^\s*%config\s+AgentMagics\.(?P<name>\w+)\s*=\s*(?P<value>.*)$")

FindNames = Callable[[], Sequence[str]]


class _Known(NamedTuple):
    """What may stand at a place; `option`: the one whose value it is, which takes nothing else."""

    names: list[str]
    option: Option | None = None


class Completer:
    """Callable matcher for `shell.Completer.custom_matchers`.

    `slots`, `deleted` (slots), `models`, `sessions`, `tools`, `memories`, `facts` and `skills` tell
    the names that may stand there now, `settings` the values of a setting; they must not wait for
    anything.
    """

    def __init__(
        self,
        *,
        slots: FindNames,
        models: FindNames,
        sessions: FindNames,
        tools: FindNames = tuple,
        memories: FindNames = tuple,
        facts: FindNames = tuple,
        deleted: FindNames = tuple,
        skills: FindNames = tuple,
        settings: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        self._skills = skills
        self._settings = settings
        self._names: dict[Completes, FindNames] = {
            "slot": slots,
            "deleted": deleted,
            "model": models,
            "session": sessions,
            "tool": tools,
            "memory": memories,
            "fact": facts,
            "mode": lambda: MODES,
            "kind": lambda: KINDS,
            "name": tuple,
            "": tuple,
        }

    def _named(self, what: Completes, fragment: str) -> list[str]:
        return list(files_at(fragment) if what == "file" else self._names[what]())

    def matcher(self) -> MatcherAPIv2:
        """Make the matcher as IPython wants it."""

        def agent_magics_matcher(context: CompletionContext) -> SimpleMatcherResult:
            above = context.full_text.split("\n")[: context.cursor_line]
            return self.complete(context.text_until_cursor, above)

        return cast(
            "MatcherAPIv2", context_matcher(identifier="agent_magics")(agent_magics_matcher)
        )

    def complete(self, line: str, above: Sequence[str] = ()) -> SimpleMatcherResult:
        """Complete a line up to the cursor, below the lines `above` of its cell.

        Header lines of ours, and the skills that a prompt begins with; elsewhere nothing.
        """
        called = _CALLS.match(_prompt_so_far(line, above))
        if called is not None:
            return self._skill(called["name"])
        setting = _CONFIG.match(line)
        if setting is not None:
            return _result(
                values_begun(self._settings(setting["name"]), setting["value"]), setting["value"]
            )
        found = _HEADER.match(line)
        if found is None:
            return SimpleMatcherResult(completions=[])
        done, fragment = begun(found["rest"])
        if fragment.startswith("--") and "=" in fragment:
            flag, _, fragment = fragment.partition("=")
            done.append(flag)
        known = self._known(magic(found["name"]), done, fragment, is_cell=bool(found["cell"]))
        names = known.names
        if known.option is not None and known.option.is_list:
            # In a list only what is behind the last comma is being typed.
            before, _, fragment = fragment.rpartition(",")
            names = [name for name in names if name not in before.split(",")]
        matching = continued(names, fragment)
        if known.option is not None and known.option.completes and not matching and fragment:
            matching = [fragment]  # IPython is only kept away by something that is there
        return _result(matching, fragment)

    def _skill(self, fragment: str) -> SimpleMatcherResult:
        matching = [f"/{name}" for name in self._skills() if name.startswith(fragment)]
        return _result(matching, f"/{fragment}", kind="skill")

    def _known(self, ours: Magic, done: Sequence[str], fragment: str, *, is_cell: bool) -> _Known:
        command, given = _command(ours, done)
        waiting = _waiting(command, given)
        if waiting is not None:
            return _Known(self._named(waiting.completes, fragment), waiting)
        if fragment.startswith("-"):
            return _Known([option.flag for option in command.options] + [HELP[1]])
        known: list[str] = []
        if command is ours.show and not given and not (is_cell and ours.name == "agent"):
            known += ("new",) if is_cell else ours.subcommands  # %%slot takes nothing else
        if ours.name == "agent" and list(done) == ["model"]:
            known.append("pull")
        position = len(_positional(command, given))
        if command.repeats:
            position = min(position, len(command.words) - 1)
        kinds = command.completes
        if position < len(kinds):
            known += self._named(kinds[position], fragment)
        if command.name == "slot mode" and position == 0:
            known += self._names["slot"]()
        return _Known(known)


def _result(matching: Sequence[str], fragment: str, *, kind: str = "magic") -> SimpleMatcherResult:
    return SimpleMatcherResult(
        completions=[SimpleCompletion(name, type=kind) for name in matching],
        # IPython would put files and names of Python among ours.
        suppress=bool(matching),
        matched_fragment=fragment,
    )


def _prompt_so_far(line: str, above: Sequence[str]) -> str:
    """Return what stands of a prompt before the cursor: of a `%%agent` body, or a `%agent` line."""
    if above:
        is_ours = _ASKS.match(above[0]) and above[0].startswith("%%")
        return "\n".join([*above[1:], line]) if is_ours else ""
    asked = _ASKS.match(line)
    return "" if asked is None else line[asked.end() :]


def _command(ours: Magic, done: Sequence[str]) -> tuple[Command, Sequence[str]]:
    named = ours.named(done[0]) if done else None
    return (named, done[1:]) if named else (ours.show, done)


def _waiting(command: Command, given: Sequence[str]) -> Option | None:
    """Find the option that the cursor stands behind, if its value is to come."""
    last = given[-1] if given else ""
    return next((o for o in command.options if o.flag == last and o.value is not None), None)


def _positional(command: Command, given: Sequence[str]) -> list[str]:
    takes_value = {o.flag for o in command.options if o.value is not None}
    return [
        word
        for index, word in enumerate(given)
        if not word.startswith("-") and (index == 0 or given[index - 1] not in takes_value)
    ]
