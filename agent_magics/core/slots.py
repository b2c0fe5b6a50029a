"""Slots: isolated contexts of one session, their settings, their lineage, their checkpoints."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from agent_magics.core.approval import ApprovalPolicy
from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import Message
from agent_magics.core.text import clean_value
from agent_magics.core.values import Value

DEFAULT_SLOT = "default"
MAX_SLOT_ID_CHARACTERS = 128
MAX_RECENT_MESSAGES = 10_000


class Full(Value, tag="full"):
    """The model sees the slot's whole history."""


class Focused(Value, tag="focused"):
    """The model sees a filtered history; the log keeps all of it (docs/decisions.md#22).

    `recent_messages` counts messages as sent: an assistant message with its calls is one, each
    result one. `summary_override` stands after them as `[Context summary] …`.
    """

    keep_system: bool = True
    recent_messages: int = 10
    summary_override: str | None = None


class Readonly(Value, tag="readonly"):
    """The slot is a reference: nothing may be added to it."""


SlotMode = Full | Focused | Readonly


class DeriveStrategy(Value):
    """How a child sees its parent: all of it, or only what `kept` lets through."""

    kept: Focused | None = None

    @classmethod
    def full(cls) -> DeriveStrategy:
        """Let the child see everything the parent saw."""
        return cls()

    @classmethod
    def focused(cls, config: Focused | None = None) -> DeriveStrategy:
        """Let the child see what `config` keeps (`Focused()` by default)."""
        return cls(kept=config or Focused())


class New(Value, tag="new"):
    """The slot began empty."""


class Derived(Value, tag="derived"):
    """The slot began as a view of its parent."""

    parent_id: str
    strategy: DeriveStrategy = DeriveStrategy()


class Static(Value, tag="static"):
    """The slot holds given messages; it lives as long as this process (docs/decisions.md#23)."""

    messages: tuple[Message, ...]


SlotSource = New | Derived | Static


class ContextBudget(Value):
    """Shares of the window in tokens; `reserve` None: the session's default."""

    system: int = 8_000
    history: int = 80_000
    tools: int = 10_000
    tool_results: int = 20_000
    reserve: int | None = 10_000

    @classmethod
    def auto(cls, context_window: int) -> ContextBudget:
        """Share out a window of tokens in the proportions of the defaults (together 128,000)."""
        if context_window < 1:
            raise InputValidation(f"context_window is {context_window}; give a positive number.")

        def share(tokens: int) -> int:
            return tokens * context_window // 128_000

        return cls(
            system=share(8_000),
            history=share(80_000),
            tools=share(10_000),
            tool_results=share(20_000),
            reserve=share(10_000),
        )


class ModelParams(Value):
    """Sampling settings; None leaves a value to the server."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Literal["low", "medium", "high"] | None = None


class SlotConfig(Value):
    """Settings of one slot. `tools` None: all registered; empty: none.

    `approval`: whether mutating tools ask here, by tool name or "*".
    """

    mode: SlotMode = Full()
    source: SlotSource = New()
    budget: ContextBudget | None = None
    compact: bool = True
    system_prompt: str | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    params: ModelParams = ModelParams()
    context_limit: int | None = None
    approval: dict[str, ApprovalPolicy] = msgspec.field(default_factory=dict)


class Checkpoint(Value):
    """A cumulative summary of a slot's history before `first_retained_seq`.

    `rendered` is the text that goes to the model, made once and replayed verbatim.
    """

    checkpoint_id: str
    slot_uid: str
    generation: int
    parent_checkpoint_id: str | None
    summary: str
    rendered: str
    first_retained_seq: int
    source_max_seq: int
    reason: Literal["manual", "auto", "overflow"]
    provider: str
    model: str
    tokens_before: int
    tokens_after: int
    degraded: bool
    created_at: datetime


class Slot(Value):
    """One row of the store: a slot's identity, lineage and settings.

    `uid` is for ever, `slot_id` is a name that may be used again once the slot is deleted
    (docs/decisions.md#17). A derived slot's history is its parent's up to `fork_seq`, then its own.
    `focus_seq` is the first inherited seq of a focused derive: nothing before it is ever seen.
    `generation` is compared and swapped by every checkpoint, rewind and clear.
    """

    uid: str
    slot_id: str
    config: SlotConfig
    created_at: datetime
    parent_uid: str | None = None
    fork_seq: int = 0
    focus_seq: int | None = None
    generation: int = 0
    checkpoint_id: str | None = None
    deleted: bool = False


class SlotMeta(Value):
    """What a list of slots shows. `tokens`: its history in the next request.

    `uid` stays the slot's when it is renamed, and is another's when its name is used again.
    """

    slot_id: str
    uid: str
    mode: SlotMode
    parent_id: str | None
    forked_at_turn: int | None
    message_count: int
    turns: int
    tokens: int
    created_at: datetime
    is_current: bool
    is_running: bool = False
    model: str | None = None


_PUNCTUATION = re.compile(r"[-_.]")


def check_slot_id(slot_id: str) -> str:
    """Return `slot_id`, or raise `InputValidation` naming the wrong character."""
    if not slot_id:
        raise InputValidation("A slot needs a name; write one with letters, digits, - _ or dots.")
    if len(slot_id) > MAX_SLOT_ID_CHARACTERS:
        raise InputValidation(
            f"The slot name has {len(slot_id)} characters; {MAX_SLOT_ID_CHARACTERS} are allowed."
        )
    for character in slot_id:
        if not _is_allowed(character):
            raise InputValidation(
                f"The slot name {slot_id!r} has the character {character!r};"
                " letters, digits, - _ and . are allowed."
            )
    return slot_id


def check_slot_config(config: SlotConfig) -> SlotConfig:
    """Return `config` as it is stored, its text cleaned; `InputValidation` names what can't be.

    Settings of a wrong type would break every list of the session's slots.
    """
    if isinstance(config, SlotConfig) and isinstance(config.mode, Focused):
        _check_count(config.mode.recent_messages)  # before it is encoded, which takes less
    try:
        data = msgspec.msgpack.encode(clean_value(config))
        made = msgspec.msgpack.decode(data, type=SlotConfig)
    except (msgspec.MsgspecError, TypeError, OverflowError, RecursionError) as error:
        raise InputValidation(f"The slot's settings can't be used: {error}.") from error
    if isinstance(made.mode, Focused):
        _check_count(made.mode.recent_messages)  # it may have been given as a mapping
    if made.params.temperature is not None and not math.isfinite(made.params.temperature):
        raise InputValidation(f"temperature is {made.params.temperature}; give a number.")
    if made.context_limit is not None and made.context_limit < 1:
        raise InputValidation(f"context_limit is {made.context_limit}; give a positive number.")
    if made.budget is not None and (made.budget.reserve or 0) < 0:
        raise InputValidation(f"budget.reserve is {made.budget.reserve}; give 0 or more.")
    return made


def clamped(slot: Slot) -> Slot:
    """Return a stored slot as it can be used: once, more messages were allowed than now."""
    mode = slot.config.mode
    if not isinstance(mode, Focused) or mode.recent_messages <= MAX_RECENT_MESSAGES:
        return slot
    mode = msgspec.structs.replace(mode, recent_messages=MAX_RECENT_MESSAGES)
    config = msgspec.structs.replace(slot.config, mode=mode)
    return msgspec.structs.replace(slot, config=config)


def _check_count(recent_messages: object) -> None:
    if isinstance(recent_messages, int) and not 0 <= recent_messages <= MAX_RECENT_MESSAGES:
        is_short = abs(recent_messages) < 10**12  # Python writes no number of 5,000 digits
        wanted = f"{recent_messages:,}" if is_short else "so many"
        raise InputValidation(
            f"A focused slot can't show its last {wanted} messages: it takes 0 to"
            f" {MAX_RECENT_MESSAGES:,}; a full one shows them all."
        )


def _is_allowed(character: str) -> bool:
    if _PUNCTUATION.match(character):
        return True
    category = unicodedata.category(character)
    return category[0] == "L" or category in ("Nd", "Mn", "Mc")


def mode_label(mode: SlotMode) -> str:
    """Name a mode as people read it: `full`, `focused 6`, `readonly`."""
    match mode:
        case Full():
            return "full"
        case Focused(recent_messages=count):
            return f"focused {count}"
        case Readonly():
            return "readonly"


def lineage(uid: str, slots: Mapping[str, Slot]) -> list[tuple[str, int | None]]:
    """List a slot and those above it, the oldest first, each with its last inherited seq.

    The slot itself has None: all of its own events are its.
    """
    chain: dict[str, int | None] = {}
    bound: int | None = None
    at: str | None = uid
    while at is not None and at not in chain:
        chain[at] = bound
        slot = slots.get(at)
        if slot is None or slot.parent_uid is None:
            break
        bound = slot.fork_seq if bound is None else min(bound, slot.fork_seq)
        at = slot.parent_uid
    return list(chain.items())[::-1]
