"""What the slot tabs do to slots: their messages carried out, and the sentence that tells."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from agent_magics.core.errors import AgentError, InternalPanic, said_by
from agent_magics.core.slots import Focused, Full, Readonly, SlotMode, mode_label
from agent_magics.core.values import Value
from agent_magics.notebook.views.shown_session import SlotActor


class Switch(Value, tag_field="kind", tag="switch"):
    slot: str


class Derive(Value, tag_field="kind", tag="derive"):
    """Make `name` from where `slot` stands now."""

    slot: str
    name: str


class Rename(Value, tag_field="kind", tag="rename"):
    slot: str
    name: str


class SetMode(Value, tag_field="kind", tag="mode"):
    """`count` is how many messages a focused slot shows."""

    slot: str
    mode: Literal["full", "focused", "readonly"]
    count: int = 10


class Delete(Value, tag_field="kind", tag="delete"):
    slot: str


class BringBack(Value, tag_field="kind", tag="undo"):
    """Bring back the slot that was deleted, by its uid."""

    uid: str


Action = Switch | Derive | Rename | SetMode | Delete | BringBack


class ActionNotice(Value):
    """One sentence about what was done or refused; `undo` is the uid of a slot that can come back.

    `number` grows, so that the same sentence is said again.
    """

    number: int = 0
    text: str = ""
    is_refused: bool = False
    undo: str | None = None


def read_action(message: object) -> Action | None:
    """Read what a page sent; None where it is no action."""
    try:
        action: Action = msgspec.convert(message, Action)
    except msgspec.ValidationError:
        return None
    return action


async def act(session: SlotActor, action: Action) -> ActionNotice:
    """Do it; what the session refuses is told, and nothing is changed then."""
    try:
        return await _done(session, action)
    except AgentError as error:
        return ActionNotice(text=error.message, is_refused=True)


def failed(error: Exception) -> ActionNotice:
    """Describe what is a fault of ours, or of a plugin."""
    return ActionNotice(text=InternalPanic(said_by(error)).message, is_refused=True)


async def _done(session: SlotActor, action: Action) -> ActionNotice:
    match action:
        case Switch(slot=slot):
            await session.switch_slot(slot)
            return ActionNotice(text=f"now in {slot}")
        case Derive(slot=slot, name=name):
            await session.derive_slot(name, slot)
            return ActionNotice(text=f"{name} is new, from {slot}")
        case Rename(slot=slot, name=name):
            await session.rename_slot(slot, name)
            return ActionNotice(text=f"{slot} is now called {name}")
        case SetMode(slot=slot):
            mode = _mode(action)
            await session.configure_slot(slot, mode=mode)
            return ActionNotice(text=f"{slot} is {mode_label(mode)}")
        case Delete(slot=slot):
            # By uid, before it is gone: the name may be used again when somebody wants it back.
            uid = next((one.uid for one in session.list_slots() if one.slot_id == slot), None)
            await session.delete_slot(slot)
            text = f"{slot} is deleted, its log is kept; now in {session.current_slot}"
            return ActionNotice(text=text, undo=uid)
        case BringBack(uid=uid):
            await session.restore_slot(uid)
            names = [one.slot_id for one in session.list_slots() if one.uid == uid]
            return ActionNotice(text=f"{names[0]} is back")
        case _:
            assert_never(action)


def _mode(action: SetMode) -> SlotMode:
    match action.mode:
        case "full":
            return Full()
        case "focused":
            return Focused(recent_messages=action.count)
        case "readonly":
            return Readonly()
