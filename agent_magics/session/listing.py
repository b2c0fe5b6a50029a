"""The list of slots as people see it, computed from the mirror (S8, decision 26)."""

from __future__ import annotations

from collections.abc import Mapping

from agent_magics.context.projection import project
from agent_magics.context.tokens import count_message
from agent_magics.core.events import AssistantMessage, Imported, UserMessage
from agent_magics.core.slots import Derived, Slot, SlotMeta, Static
from agent_magics.session.mirror import Mirror

_COUNTED = (UserMessage, AssistantMessage, Imported)


def list_metas(mirror: Mirror, running: Mapping[str, str]) -> tuple[SlotMeta, ...]:
    """Describe every living slot; `running` maps slot uids to their running turn ids."""
    return tuple(_meta(mirror, slot, running.get(slot.uid)) for slot in mirror.living.values())


def _meta(mirror: Mirror, slot: Slot, running: str | None) -> SlotMeta:
    parent = mirror.slots.get(slot.parent_uid) if slot.parent_uid else None
    spans = mirror.turns(slot, running)
    inherited = sum(span.last_seq <= slot.fork_seq for span in spans) if parent else 0
    return SlotMeta(
        slot_id=slot.slot_id,
        uid=slot.uid,
        mode=slot.config.mode,
        parent_id=parent.slot_id if parent else _named_parent(slot),
        forked_at_turn=inherited if parent else None,
        message_count=_message_count(mirror, slot),
        turns=len(spans) - inherited,
        tokens=_weight(mirror, slot, running),
        created_at=slot.created_at,
        is_current=slot.uid == mirror.current_uid,
        is_running=running is not None,
        model=slot.config.model,
    )


def _message_count(mirror: Mirror, slot: Slot) -> int:
    if isinstance(slot.config.source, Static):
        return len(slot.config.source.messages)
    return sum(
        isinstance(event.payload, _COUNTED) and _says_something(event.payload)
        for event in mirror.view(slot).events
    )


def _says_something(payload: object) -> bool:
    return not isinstance(payload, AssistantMessage) or bool(payload.content)


def _weight(mirror: Mirror, slot: Slot, running: str | None) -> int:
    if isinstance(slot.config.source, Static):
        return sum(map(count_message, slot.config.source.messages))
    projection = project(
        mirror.view(slot),
        mode=slot.config.mode,
        checkpoint=mirror.checkpoint_of(slot),
        focus_seq=slot.focus_seq,
        running_turn=running,
        tail_only=True,
    )
    return projection.summary_tokens + projection.history_tokens + projection.tool_result_tokens


def _named_parent(slot: Slot) -> str | None:
    source = slot.config.source
    return source.parent_id if isinstance(source, Derived) else None
