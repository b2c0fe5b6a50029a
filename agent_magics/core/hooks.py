"""Hooks: the seven moments at which a plugin may look, add something, or say no.

A handler gets a frozen `HookPayload` and answers `Continue`, `ContinueWith(patch)` or `Abort`;
None counts as `Continue`. An abort ends what its moment is about, but never keeps a kernel from
ending (docs/decisions.md#14).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from agent_magics.core.messages import ToolOutput, UserInput
from agent_magics.core.values import Value

HookEvent = Literal[
    "session_start",
    "session_end",
    "turn_start",
    "turn_end",
    "before_tool_use",
    "after_tool_use",
    "before_compact",
]
HOOK_EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)


class SessionStarting(Value, tag="session_start"):
    """A new session is about to be stored; a resumed one fires nothing."""

    model_id: str


class SessionEnding(Value, tag="session_end"):
    """A session is about to close; `message_count` is its user and assistant messages."""

    message_count: int


class TurnStarting(Value, tag="turn_start"):
    """A turn is about to record its prompt; `dynamic_sections` are those added so far."""

    user_input: UserInput
    dynamic_sections: tuple[str, ...] = ()


class TurnEnding(Value, tag="turn_end"):
    """A turn whose prompt was recorded has ended; `error_code` says by which error, if by one."""

    assistant_output: str
    tool_calls_count: int
    cancelled: bool
    error_code: str | None = None


class BeforeToolUse(Value, tag="before_tool_use"):
    call_id: str
    tool_name: str
    arguments: dict[str, Any]


class AfterToolUse(Value, tag="after_tool_use"):
    call_id: str
    tool_name: str
    output: ToolOutput
    duration_ms: int
    success: bool


class BeforeCompact(Value, tag="before_compact"):
    message_count: int
    estimated_tokens: int


HookData = (
    SessionStarting
    | SessionEnding
    | TurnStarting
    | TurnEnding
    | BeforeToolUse
    | AfterToolUse
    | BeforeCompact
)


class HookPayload(Value):
    """What a handler is given. Outside a turn, slot and turn are None; `turn_index` counts per
    slot along its lineage (docs/decisions.md#8).
    """

    event: HookEvent
    session_id: str
    data: HookData
    created_at: datetime
    slot_id: str | None = None
    turn_id: str | None = None
    turn_index: int | None = None
    plugin_config: dict[str, Any] = msgspec.field(default_factory=dict)


class TurnStartPatch(Value, tag="turn_start"):
    """Add sections to the turn's reference block; they are not stored."""

    append_dynamic_sections: tuple[str, ...]


class BeforeToolUsePatch(Value, tag="before_tool_use"):
    """Run the tool with these arguments instead."""

    arguments: dict[str, Any]


HookPatch = TurnStartPatch | BeforeToolUsePatch


class Continue(Value):
    """Go on."""


class ContinueWith(Value):
    """Go on with a patch; only `turn_start` and `before_tool_use` take one."""

    patch: HookPatch


class Abort(Value):
    """Stop what is about to happen, and say why."""

    reason: str


HookResult = Continue | ContinueWith | Abort
HookHandler = Callable[[HookPayload], Awaitable[HookResult | None] | HookResult | None]


class PluginDescriptor(Value):
    """What a plugin is called and which hooks it means to tap (checked at build)."""

    plugin_id: str
    display_name: str
    description: str = ""
    tapped_hooks: tuple[HookEvent, ...] = ()
