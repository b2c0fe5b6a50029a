"""Hooks are fired here: plugins' handlers in order, each patch seen by the next.

A handler is foreign code. What it raises ends what was being done, by name; it never ends the
session's loop.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from agent_magics.core.errors import (
    PluginAborted,
    PluginFailed,
    PluginHookContractViolation,
    said_by,
)
from agent_magics.core.hooks import (
    Abort,
    BeforeToolUse,
    BeforeToolUsePatch,
    Continue,
    ContinueWith,
    HookData,
    HookEvent,
    HookHandler,
    HookPatch,
    HookPayload,
    HookResult,
    TurnStarting,
    TurnStartPatch,
)
from agent_magics.core.ports import Clock
from agent_magics.core.text import clean_value

_UNFIT = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


@dataclass(frozen=True, kw_only=True)
class HookEntry:
    """One registered handler, whose it is, and the settings it is called with."""

    plugin_id: str
    plugin_config: Mapping[str, Any]
    handler: HookHandler


class HookRegistry:
    """The handlers of each event, in the order of registration."""

    def __init__(self) -> None:
        self._entries: dict[HookEvent, list[HookEntry]] = {}

    def register(self, event: HookEvent, entry: HookEntry) -> None:
        """Add a handler behind those that are there."""
        self._entries.setdefault(event, []).append(entry)

    def has(self, event: HookEvent) -> bool:
        """Return whether anybody listens to `event`."""
        return bool(self._entries.get(event))

    async def dispatch(self, payload: HookPayload) -> HookPatch | None:
        """Call the handlers of the payload's event one after the other; return the patches joined.

        Each handler gets its plugin's settings and a payload with the patches so far. Sections of
        `turn_start` are appended, arguments of `before_tool_use` replaced. Raises `PluginAborted`,
        `PluginHookContractViolation` (a patch that the event doesn't take, or no answer of ours)
        and `PluginFailed` (a handler raised); later handlers are not called then.
        """
        joined: HookPatch | None = None
        working = payload.data
        for entry in self._entries.get(payload.event, ()):
            # A fresh copy for each handler: what one does to a dictionary in place must not reach
            # the next, or us.
            shown = msgspec.structs.replace(
                payload, data=clean_value(working), plugin_config=dict(entry.plugin_config)
            )
            match await _answer(entry, shown):
                case None | Continue():
                    continue
                case Abort(reason=reason):
                    raise PluginAborted(payload.event, f"{entry.plugin_id}: {reason}")
                case ContinueWith(patch=patch):
                    working, joined = _patched(entry, working, joined, patch)
                case other:
                    raise _violation(entry, payload.event, f"answered {other!r:.80}")
        return joined


@dataclass(frozen=True, kw_only=True)
class HookScope:
    """Where hooks are fired: a session, or (`slot_id` and the others set) one of its turns.

    Hooks of one scope run one at a time, also where tools run at once (docs/decisions.md#15).
    """

    registry: HookRegistry
    clock: Clock
    session_id: str
    slot_id: str | None = None
    turn_id: str | None = None
    turn_index: int | None = None
    _order: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_firing(self) -> bool:
        return self._order.locked()

    async def fire(self, data: HookData) -> HookPatch | None:
        """Fire the event that `data` belongs to; raises as `HookRegistry.dispatch`."""
        event: HookEvent = data.__struct_config__.tag  # type: ignore[assignment]  # our own tags
        if not self.registry.has(event):
            return None
        # Parallel tools of a turn reach their hooks at once; plugins are written without that in
        # mind.
        async with self._order:
            token = _scope.set(self)
            try:
                return await self._dispatched(event, data)
            finally:
                _scope.reset(token)

    async def _dispatched(self, event: HookEvent, data: HookData) -> HookPatch | None:
        return await self.registry.dispatch(
            HookPayload(
                event=event,
                session_id=self.session_id,
                data=data,
                created_at=self.clock.now(),
                slot_id=self.slot_id,
                turn_id=self.turn_id,
                turn_index=self.turn_index,
            )
        )


_scope: ContextVar[HookScope | None] = ContextVar("agent_magics_hooks", default=None)


def called_from_hook() -> bool:
    """Return whether a hook that hasn't answered yet calls this; waiting for its end would hang."""
    scope = _scope.get()
    return scope is not None and scope.is_firing


async def _answer(entry: HookEntry, payload: HookPayload) -> HookResult | None:
    """Call one handler; let nothing through but its answer, our cancel, and an error of ours."""
    try:
        said: HookResult | None = await settled(entry.handler(payload))
    except BaseException as error:
        if is_our_cancel(error):
            raise
        raise _failed(entry, payload, error) from error
    return said


async def settled(made: object) -> Any:
    """Wait for what foreign code made, where that is anything to wait for."""
    # Handlers may be plain functions.
    return await made if inspect.isawaitable(made) else made


def is_our_cancel(error: BaseException) -> bool:
    """Return whether foreign code raised `error` because we stopped waiting for it."""
    if isinstance(error, GeneratorExit):
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _failed(entry: HookEntry, payload: HookPayload, error: BaseException) -> PluginFailed:
    return PluginFailed(entry.plugin_id, payload.event, said_by(error))


def _patched(
    entry: HookEntry, working: HookData, joined: HookPatch | None, patch: object
) -> tuple[HookData, HookPatch]:
    """Put a patch on the working copy, and behind or in place of the patches before it."""
    event = str(working.__struct_config__.tag)
    match working, patch:
        case TurnStarting(dynamic_sections=so_far), TurnStartPatch():
            added = _sections(entry, patch)
            before = joined.append_dynamic_sections if isinstance(joined, TurnStartPatch) else ()
            return (
                msgspec.structs.replace(working, dynamic_sections=(*so_far, *added)),
                TurnStartPatch(append_dynamic_sections=(*before, *added)),
            )
        case BeforeToolUse(), BeforeToolUsePatch():
            arguments = _arguments(entry, patch)
            return (
                msgspec.structs.replace(working, arguments=arguments),
                BeforeToolUsePatch(arguments=arguments),
            )
        case _ if isinstance(patch, get_args(HookPatch)):
            raise _violation(entry, event, f"patched with {type(patch).__name__}")
        case _:
            raise _violation(entry, event, f"patched with {patch!r:.80}")


def _sections(entry: HookEntry, patch: TurnStartPatch) -> tuple[str, ...]:
    given: object = patch.append_dynamic_sections
    if isinstance(given, list | tuple) and all(isinstance(section, str) for section in given):
        return tuple(clean_value(tuple(given)))
    raise _violation(entry, "turn_start", "gave append_dynamic_sections that are no tuple of texts")


def _arguments(entry: HookEntry, patch: BeforeToolUsePatch) -> dict[str, Any]:
    """Return arguments as strict JSON carries them."""
    try:
        # Through JSON and back: a tuple, a NaN or an object of the plugin's own would reach the
        # ledger, which can't hold them.
        value = json.loads(json.dumps(clean_value(patch.arguments), allow_nan=False))
    except _UNFIT as error:
        raise _violation(
            entry, "before_tool_use", f"gave arguments that are no JSON: {error}"
        ) from error
    if isinstance(value, dict):
        return value
    raise _violation(entry, "before_tool_use", "gave arguments that are no dictionary")


def _violation(entry: HookEntry, event: str, what: str) -> PluginHookContractViolation:
    return PluginHookContractViolation(entry.plugin_id, f"at {event} it {what}")
