"""Plugins: started in order with the agent, shut down in reverse.

`PluginBase` is the short way to one: a method that is called as an event taps that event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agent_magics.core.errors import (
    BuildError,
    NameConflict,
    PluginHookContractViolation,
    PluginInitFailed,
    said_by,
)
from agent_magics.core.hooks import HOOK_EVENTS, HookEvent, HookHandler, PluginDescriptor
from agent_magics.core.ports import Plugin, PluginContext
from agent_magics.core.text import clean_value
from agent_magics.session.extensions.hooks import HookEntry, HookRegistry, is_our_cancel, settled

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


OnFault = Callable[[str], None]


class Registered(NamedTuple):
    """A plugin, its settings, and what to do with the sentence where it can't start.

    `on_fault` None: the build fails. Else the agent is built without the plugin.
    """

    plugin: Plugin
    config: dict[str, Any]
    on_fault: OnFault | None = None


class Plugins:
    """The plugins of one agent, started; `hooks` has their handlers."""

    def __init__(self) -> None:
        self.hooks = HookRegistry()
        self._started: list[_Starting] = []

    @property
    def descriptors(self) -> tuple[PluginDescriptor, ...]:
        """What the plugins are called, in their order."""
        descriptors: tuple[PluginDescriptor, ...] = clean_value(
            tuple(each.descriptor for each in self._started)
        )
        return descriptors

    async def start(self, registered: Sequence[Registered]) -> None:
        """Initialise all in order, then let each tap its hooks.

        Where one fails, those before it are shut down in reverse. Raises `NameConflict`,
        `PluginInitFailed`, and `PluginHookContractViolation` with all that was wrong.
        """
        starting = _named(registered)
        try:
            for each in starting:
                if await each.initialise():
                    self._started.append(each)
            await self._apply()
        except BaseException:  # cancelled, too: what was started is shut down
            await self.shutdown()
            raise

    async def shutdown(self) -> None:
        """Shut all down in reverse; what one raises is logged, and the next has its turn."""
        # Popped first: a second shutdown meanwhile ends no plugin twice.
        while self._started:
            await self._started.pop().shut_down()

    async def _apply(self) -> None:
        violations: list[PluginHookContractViolation] = []
        for each in tuple(self._started):
            faults = each.apply()
            if faults and each.on_fault is not None:
                self._started.remove(each)
                await each.shut_down()
                each.on_fault(PluginHookContractViolation.of_all(faults).message)
            # All of them are told in one error: fixing them one build at a time is no pleasure.
            elif faults:
                violations += faults
            else:
                each.tapping.register(self.hooks)
        if violations:
            raise PluginHookContractViolation.of_all(violations)


class _Starting:
    """One plugin on its way into an agent."""

    def __init__(self, registered: Registered, descriptor: PluginDescriptor) -> None:
        self.descriptor = descriptor
        self.plugin, self.config, self.on_fault = registered
        self.tapping = _Tapping(descriptor, self.config)

    async def initialise(self) -> bool:
        """Return whether the plugin has started; raises `PluginInitFailed` where it must have."""
        try:
            await settled(self.plugin.initialize(dict(self.config)))
        except BaseException as error:
            if is_our_cancel(error):
                raise
            failed = PluginInitFailed(self.descriptor.plugin_id, said_by(error))
            if self.on_fault is None:
                raise failed from error
            self.on_fault(failed.message)
            return False
        return True

    def apply(self) -> list[PluginHookContractViolation]:
        """Let the plugin tap its hooks, and return what it did wrong; raises `PluginInitFailed`."""
        try:
            self.plugin.apply(self.tapping)
        except PluginHookContractViolation as violation:
            self.tapping.note(violation)
        except BaseException as error:
            if self.on_fault is None:
                raise PluginInitFailed(self.descriptor.plugin_id, said_by(error)) from error
            self.tapping.note(
                PluginHookContractViolation(self.descriptor.plugin_id, said_by(error))
            )
        return self.tapping.close()

    async def shut_down(self) -> None:
        """Shut the plugin down; what it raises is logged."""
        try:
            await settled(self.plugin.shutdown())
        except BaseException as error:
            if is_our_cancel(error):
                raise
            _log.warning(
                "plugin %s failed at its shutdown: %s", self.descriptor.plugin_id, said_by(error)
            )


class _Tapping:
    """What a plugin's `apply` is given; closed once it has returned."""

    def __init__(self, descriptor: PluginDescriptor, config: dict[str, Any]) -> None:
        self._descriptor = descriptor
        self._config = config
        self._tapped: list[tuple[HookEvent, HookHandler]] = []
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
        self._tapped.append((event, handler))

    def note(self, violation: PluginHookContractViolation) -> None:
        """Keep what was wrong, also where the plugin swallows it."""
        if violation not in self._violations:
            self._violations.append(violation)

    def close(self) -> list[PluginHookContractViolation]:
        """Take no more taps, say which hooks were declared and not tapped, give what was wrong."""
        self._is_closed = True
        tapped = {event for event, _ in self._tapped}
        for event in self._descriptor.tapped_hooks:
            if event not in tapped:
                _log.warning(
                    "plugin %s declares the hook %s and doesn't tap it",
                    self._descriptor.plugin_id,
                    event,
                )
        return self._violations

    def register(self, hooks: HookRegistry) -> None:
        """Put what was tapped behind what is there."""
        for event, handler in self._tapped:
            hooks.register(
                event,
                HookEntry(
                    plugin_id=self._descriptor.plugin_id,
                    plugin_config=dict(self._config),
                    handler=handler,
                ),
            )

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


def _named(registered: Sequence[Registered]) -> list[_Starting]:
    """Read the descriptors, once; raises `NameConflict` and `PluginInitFailed`."""
    named: dict[str, _Starting] = {}
    for each in registered:
        try:
            descriptor = _described(each.plugin)
            if descriptor.plugin_id in named:
                raise NameConflict("plugin", descriptor.plugin_id)
        except BuildError as error:
            if each.on_fault is None:
                raise
            each.on_fault(error.message)
        else:
            named[descriptor.plugin_id] = _Starting(each, descriptor)
    return list(named.values())


def _described(plugin: Plugin) -> PluginDescriptor:
    try:
        descriptor: object = plugin.descriptor
    except BaseException as error:
        raise PluginInitFailed(type(plugin).__name__, said_by(error)) from error
    if not isinstance(descriptor, PluginDescriptor):
        raise PluginInitFailed(type(plugin).__name__, "its descriptor is no PluginDescriptor.")
    if not descriptor.plugin_id.strip():
        raise PluginInitFailed(type(plugin).__name__, "its plugin_id is blank.")
    return descriptor
