"""The list of slots as people see it, computed from the loaded session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_magics.context.projection import project
from agent_magics.context.tokens import count_message
from agent_magics.context.view import SlotHistory
from agent_magics.core.events import AssistantMessage, Imported, UserMessage
from agent_magics.core.slots import Derived, Slot, SlotMeta, Static
from agent_magics.session.state.loaded import LoadedSession

_COUNTED = (UserMessage, AssistantMessage, Imported)


class Listing:
    """Describes slots; one in which nothing happened since is not counted again."""

    def __init__(self, loaded: LoadedSession) -> None:
        self._loaded = loaded
        self._kept: dict[str, tuple[_Facts, SlotMeta]] = {}

    def metas(self, running: Mapping[str, str]) -> tuple[SlotMeta, ...]:
        """Describe every living slot; `running` maps slot uids to their running turn ids."""
        living = self._loaded.living.values()
        self._kept = {slot.uid: self._described(slot, running.get(slot.uid)) for slot in living}
        return tuple(meta for _, meta in self._kept.values())

    def _described(self, slot: Slot, running: str | None) -> tuple[_Facts, SlotMeta]:
        loaded = self._loaded
        parent = loaded.slots.get(slot.parent_uid) if slot.parent_uid else None
        now = _Facts(
            view=loaded.view(slot),
            slot=slot,
            parent=parent.slot_id if parent else None,
            running=running,
            is_current=slot.uid == loaded.current_uid,
        )
        kept = self._kept.get(slot.uid)
        # Weighing a slot of 20,000 turns takes 0.2 s, and views ask at each change.
        return kept if kept and kept[0].are(now) else (now, _meta(loaded, now))


@dataclass(frozen=True)
class _Facts:
    """What a description is made of; views and slots are never changed, only replaced."""

    view: SlotHistory
    slot: Slot
    parent: str | None
    running: str | None
    is_current: bool

    def are(self, now: _Facts) -> bool:
        return (
            self.view is now.view
            and self.slot is now.slot
            and (self.parent, self.running, self.is_current)
            == (now.parent, now.running, now.is_current)
        )


def _meta(loaded: LoadedSession, facts: _Facts) -> SlotMeta:
    slot, parent = facts.slot, facts.parent
    spans = loaded.turns(slot, facts.running)
    inherited = sum(span.last_seq <= slot.fork_seq for span in spans) if parent else 0
    return SlotMeta(
        slot_id=slot.slot_id,
        uid=slot.uid,
        mode=slot.config.mode,
        parent_id=parent or _named_parent(slot),
        forked_at_turn=inherited if parent else None,
        message_count=_message_count(slot, facts.view),
        turns=len(spans) - inherited,
        tokens=_weight(loaded, facts),
        created_at=slot.created_at,
        is_current=facts.is_current,
        is_running=facts.running is not None,
        model=slot.config.model,
    )


def _message_count(slot: Slot, view: SlotHistory) -> int:
    if isinstance(slot.config.source, Static):
        return len(slot.config.source.messages)
    return sum(
        isinstance(event.payload, _COUNTED) and _says_something(event.payload)
        for event in view.events
    )


def _says_something(payload: object) -> bool:
    # An answer without a word only tells how its turn ended.
    return not isinstance(payload, AssistantMessage) or bool(payload.content)


def _weight(loaded: LoadedSession, facts: _Facts) -> int:
    slot = facts.slot
    if isinstance(slot.config.source, Static):
        return sum(map(count_message, slot.config.source.messages))
    projection = project(
        facts.view,
        mode=slot.config.mode,
        checkpoint=loaded.checkpoint_of(slot),
        focus_seq=slot.focus_seq,
        running_turn=facts.running,
        tail_only=True,
    )
    return projection.summary_tokens + projection.history_tokens + projection.tool_result_tokens


def _named_parent(slot: Slot) -> str | None:
    source = slot.config.source
    return source.parent_id if isinstance(source, Derived) else None
