"""Plugins: started in order with the agent, shut down in reverse (E14).

`PluginBase` is the short way to one: a method that is called as an event taps that event.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from agent_magics.core.errors import (
    NameConflict,
    PluginHookContractViolation,
    PluginInitFailed,
    said_by,
)
from agent_magics.core.hooks import HOOK_EVENTS, HookEvent, HookHandler, PluginDescriptor
from agent_magics.core.ports import Plugin, PluginContext
from agent_magics.core.text import clean_value
from agent_magics.session.hooks import HookEntry, HookRegistry, is_our_cancel, settled

_log = logging.getLogger("agent_magics.session")


class PluginBase:
    """A plugin whose methods are its hooks: `def turn_start(self, payload)` taps `turn_start`.

    A hook may be sync or async, and gives None or `Continue()` to go on, `ContinueWith(patch)` or
    `Abort(reason)`. Its name is the class's, its description the first line of the docstring.
    """

    plugin_id: str = ""

    @property
    def descriptor(self) -> PluginDescriptor:
        """What this plugin is called and which hooks it has."""
        name = type(self).__name__
        said = (type(self).__doc__ or "").strip()
        return PluginDescriptor(
            plugin_id=self.plugin_id or name.lower(),
            display_name=name,
            description=said.partition("\n")[0] if type(self) is not PluginBase else "",
            tapped_hooks=tuple(event for event in HOOK_EVENTS if hasattr(self, event)),
        )

    async def initialize(self, config: dict[str, Any]) -> None:
        """Get ready; whatever is raised here fails the build."""

    def apply(self, context: PluginContext) -> None:
        """Tap each event that a method is named after."""
        for event in self.descriptor.tapped_hooks:
            context.tap(event, getattr(self, event))

    async def shutdown(self) -> None:
        """Free what `initialize` took."""


class Registered(NamedTuple):
    """A plugin and the settings it was registered with."""

    plugin: Plugin
    config: dict[str, Any]


class Plugins:
    """The plugins of one agent, started; `hooks` has their handlers."""

    def __init__(self) -> None:
        self.hooks = HookRegistry()
        self.descriptors: tuple[PluginDescriptor, ...] = ()
        self._started: list[tuple[PluginDescriptor, Plugin]] = []

    async def start(self, registered: Sequence[Registered]) -> None:
        """Initialise all in order, then let each tap its hooks.

        Where one fails, those before it are shut down in reverse. Raises `NameConflict`,
        `PluginInitFailed`, and `PluginHookContractViolation` with all that was wrong.
        """
        described = [(_described(each.plugin), each) for each in registered]
        ids = [descriptor.plugin_id for descriptor, _ in described]
        for plugin_id in ids:
            if ids.count(plugin_id) > 1:
                raise NameConflict("plugin", plugin_id)
        try:
            for descriptor, (plugin, config) in described:
                await _initialise(descriptor, plugin, config)
                self._started.append((descriptor, plugin))
            self._apply_all(described)
        except BaseException:  # cancelled, too: what was started is shut down
            await self.shutdown()
            raise
        self.descriptors = clean_value(tuple(descriptor for descriptor, _ in described))

    async def shutdown(self) -> None:
        """Shut all down in reverse; what one raises is logged, and the next has its turn."""
        while self._started:
            descriptor, plugin = self._started.pop()
            try:
                await settled(plugin.shutdown())
            except BaseException as error:
                if is_our_cancel(error):
                    raise
                _log.warning(
                    "plugin %s failed at its shutdown: %s", descriptor.plugin_id, said_by(error)
                )

    def _apply_all(self, described: Sequence[tuple[PluginDescriptor, Registered]]) -> None:
        violations: list[PluginHookContractViolation] = []
        for descriptor, (plugin, config) in described:
            tapping = _Tapping(descriptor, config, self.hooks)
            try:
                plugin.apply(tapping)
            except PluginHookContractViolation as violation:
                tapping.note(violation)
            except BaseException as error:
                raise PluginInitFailed(descriptor.plugin_id, said_by(error)) from error
            violations += tapping.close()
        if violations:
            raise PluginHookContractViolation.of_all(violations)


class _Tapping:
    """What a plugin's `apply` is given; closed once it has returned."""

    def __init__(
        self, descriptor: PluginDescriptor, config: dict[str, Any], hooks: HookRegistry
    ) -> None:
        self._descriptor = descriptor
        self._config = config
        self._hooks = hooks
        self._tapped: set[HookEvent] = set()
        self._violations: list[PluginHookContractViolation] = []
        self._is_closed = False

    @property
    def config(self) -> dict[str, Any]:
        return dict(self._config)

    def tap(self, event: HookEvent, handler: HookHandler) -> None:
        """Call `handler` at `event`, behind the handlers of plugins registered before."""
        fault = self._fault(event, handler)
        if fault is not None:
            violation = PluginHookContractViolation(self._descriptor.plugin_id, fault)
            self.note(violation)
            raise violation
        self._tapped.add(event)
        self._hooks.register(
            event,
            HookEntry(
                plugin_id=self._descriptor.plugin_id,
                plugin_config=dict(self._config),
                handler=handler,
            ),
        )

    def note(self, violation: PluginHookContractViolation) -> None:
        """Keep what was wrong, also where the plugin swallows it."""
        if violation not in self._violations:
            self._violations.append(violation)

    def close(self) -> list[PluginHookContractViolation]:
        """Take no more taps, say which hooks were declared and not tapped, give what was wrong."""
        self._is_closed = True
        for event in self._descriptor.tapped_hooks:
            if event not in self._tapped:
                _log.warning(
                    "plugin %s declares the hook %s and doesn't tap it",
                    self._descriptor.plugin_id,
                    event,
                )
        return self._violations

    def _fault(self, event: HookEvent, handler: HookHandler) -> str | None:
        if self._is_closed:
            return f"it tapped {event!r:.40} after the agent was built"
        if event not in HOOK_EVENTS:
            return f"there is no hook {event!r:.40}; there are {', '.join(HOOK_EVENTS)}"
        if event not in self._descriptor.tapped_hooks:
            return f"it tapped {event}, which its descriptor doesn't declare"
        if not callable(handler):
            return f"its handler of {event} can't be called"
        return None


def _described(plugin: Plugin) -> PluginDescriptor:
    """Read a plugin's descriptor, once."""
    try:
        descriptor: object = plugin.descriptor
    except BaseException as error:
        raise PluginInitFailed(type(plugin).__name__, said_by(error)) from error
    if not isinstance(descriptor, PluginDescriptor):
        raise PluginInitFailed(type(plugin).__name__, "its descriptor is no PluginDescriptor.")
    if not descriptor.plugin_id.strip():
        raise PluginInitFailed(type(plugin).__name__, "its plugin_id is blank.")
    return descriptor


async def _initialise(descriptor: PluginDescriptor, plugin: Plugin, config: dict[str, Any]) -> None:
    try:
        await settled(plugin.initialize(dict(config)))
    except BaseException as error:
        if is_our_cancel(error):
            raise
        raise PluginInitFailed(descriptor.plugin_id, said_by(error)) from error
