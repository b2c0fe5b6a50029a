"""What the ledger of a new session begins with: its settings, its namespace, its first slot."""

from __future__ import annotations

from agent_magics.core.config import SessionConfig
from agent_magics.core.events import Metadata, SlotChanged
from agent_magics.core.ports import Change
from agent_magics.core.slots import DEFAULT_SLOT, Slot, SlotConfig
from agent_magics.session.memory.remembering import bound_namespace
from agent_magics.session.parts import AgentParts
from agent_magics.session.state.recorder import Recorder


def first_change(recorder: Recorder, parts: AgentParts, wanted: SessionConfig) -> Change:
    """Make a session's first change."""
    slot = Slot(
        uid=parts.ids.new("slot"),
        slot_id=DEFAULT_SLOT,
        config=SlotConfig(),
        created_at=parts.clock.now(),
    )
    settings = Metadata(
        key="session_config",
        value={
            "model_id": wanted.model_id,
            "system_prompt_override": wanted.system_prompt_override,
        },
    )
    bound = bound_namespace(parts.config, is_kept=parts.memory.is_kept)
    namespace = Metadata(key="memory_namespace", value=bound)
    created = SlotChanged(action="created", slot_id=DEFAULT_SLOT, config=slot.config)
    return Change(
        events=(
            recorder.event(settings),
            recorder.event(namespace),
            recorder.event(created, slot_uid=slot.uid),
        ),
        slots=(slot,),
        current_slot_uid=slot.uid,
        title=wanted.title,
    )
