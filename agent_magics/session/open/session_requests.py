"""The requests of an open session: what they are made of, and the next one of a slot."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.chat import ModelInfo
from agent_magics.core.ports import Tool
from agent_magics.core.slots import Slot
from agent_magics.session.memory.fact_tools import memory_tools
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.session.memory.remembering import Remembering
from agent_magics.session.open.slot_reservations import SlotReservations
from agent_magics.session.parts import AgentParts
from agent_magics.session.request.request_builder import PreparedRequest, RequestBuilder
from agent_magics.session.state.loaded import LoadedSession, is_static
from agent_magics.session.state.references import References


class SessionRequests:
    """Makes requests from a session as it stands, and builders of those of its past."""

    def __init__(
        self,
        parts: AgentParts,
        loaded: LoadedSession,
        *,
        reservations: SlotReservations,
        facts: SessionMemory,
        remembering: Remembering | None,
    ) -> None:
        self._parts = parts
        self._reservations = reservations
        self._facts = facts
        self._remembering = remembering
        self.references = References(parts.references)
        self.builder = self.builder_for(loaded, self.references)

    def builder_for(
        self, loaded: LoadedSession, references: References | None = None
    ) -> RequestBuilder:
        """Make what makes requests from a loaded session, this one or one of its past."""
        return RequestBuilder(
            loaded,
            self._parts.config,
            self._parts.tools,
            self._fact_tools,
            references=references,
            memories=self._shown_memories,
            skills=[(skill.name, skill.description) for skill in self._parts.skills.implicit],
            plugins=[
                (plugin.display_name, plugin.description)
                for plugin in self._parts.plugins.descriptors
                if plugin.description.strip()
            ],
        )

    def prepared(self, slot: Slot, model: ModelInfo) -> PreparedRequest:
        """Make a slot's next request."""
        running_turn = self._reservations.running_id(slot)
        return self.builder.build(slot, model, running_turn=running_turn)

    def _fact_tools(self, slot: Slot) -> Sequence[Tool]:
        if not self._parts.config.session_memory_tools or is_static(slot):
            return ()
        return memory_tools(self._facts, slot.uid)

    def _shown_memories(self) -> tuple[str, ...]:
        return self._remembering.recall.shown if self._remembering else ()
