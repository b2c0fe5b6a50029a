"""What installed packages add: tools, plugins and providers, by their entry points.

Groups: `agent_magics.tools` (a tool, several, or a function that makes them),
`agent_magics.plugins` (a plugin, or a class or function without arguments that makes one),
`agent_magics.providers` (the same; the entry point is called as the provider's id). One that is
broken is named with its distribution, and the rest works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, cast

from agent_magics.core.errors import said_by
from agent_magics.core.ports import Plugin, Provider, Tool

Kind = Literal["tools", "plugins", "providers"]
_OF_PLUGINS = ("descriptor", "initialize", "apply", "shutdown")


class _UnfitPackage(Exception):
    """An entry point gives something else; the message ends the sentence that names it."""


@dataclass
class Extensions:
    """What was found. `plugins` come with the name by which a fault of theirs is told.

    `faults` are sentences for the person.
    """

    tools: list[Tool] = field(default_factory=list)
    plugins: list[tuple[Plugin, str]] = field(default_factory=list)
    providers: list[Provider] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def extension_names(kind: Kind) -> tuple[str, ...]:
    """Name the entry points of a group; nothing of theirs is imported."""
    return tuple(dict.fromkeys(point.name for point in _points(kind)))


def load_extensions() -> Extensions:
    """Import all that installed packages add. Foreign code runs: call it off the loop."""
    found = Extensions()
    for kind, take in _TAKERS:
        for point in _points(kind):
            try:
                take(found, point, _made(point.load()))
            except _UnfitPackage as fault:
                found.faults.append(f"{named(point)} is left out: {fault}")
            except BaseException as error:  # noqa: BLE001 - an import may raise anything
                said = " ".join(said_by(error).split())
                found.faults.append(f"{named(point)} is left out: {said}")
    return found


def named(point: EntryPoint) -> str:
    """Name an entry point with its distribution, as a fault of it is told."""
    source = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    return f'{point.group.rpartition(".")[2].removesuffix("s")} "{point.name}" of {source}'


def _points(kind: Kind) -> list[EntryPoint]:
    return sorted(entry_points(group=f"agent_magics.{kind}"), key=lambda point: point.name)


def _made(value: object) -> object:
    """Call a class or function without arguments; anything else is what it is."""
    is_finished = isinstance(value, Tool | Provider) and not isinstance(value, type)
    return value() if callable(value) and not is_finished else value


def _take_tools(found: Extensions, _: EntryPoint, made: object) -> None:
    for tool in made if isinstance(made, list | tuple) else [made]:
        if not isinstance(tool, Tool):
            raise _UnfitPackage(f"{tool!r:.60} is no tool; mark a function with @agent_magics.tool")
        found.tools.append(tool)


def _take_plugin(found: Extensions, point: EntryPoint, made: object) -> None:
    missing = [name for name in _OF_PLUGINS if not hasattr(made, name)]
    if missing:
        raise _UnfitPackage(f"{made!r:.60} is no plugin; it has no {missing[0]}")
    found.plugins.append((cast("Plugin", made), named(point)))


def _take_provider(found: Extensions, point: EntryPoint, made: object) -> None:
    if not isinstance(made, Provider):
        raise _UnfitPackage(f"{made!r:.60} is no provider of models")
    if made.provider_id != point.name:
        raise _UnfitPackage(f'its provider is called "{made.provider_id}"; call both the same')
    found.providers.append(made)


_TAKERS: tuple[tuple[Kind, Callable[[Extensions, EntryPoint, object], None]], ...] = (
    ("tools", _take_tools),
    ("plugins", _take_plugin),
    ("providers", _take_provider),
)
