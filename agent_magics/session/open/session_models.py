"""Which models a session asks: for its slots, for summaries, for memories."""

from __future__ import annotations

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.events import Metadata
from agent_magics.core.ports import Provider
from agent_magics.core.slots import Slot
from agent_magics.session.request.models import ModelLookup
from agent_magics.session.state.recorder import Recorder


class SessionModels:
    """The choice of models in one session; `lookup` finds the models themselves."""

    def __init__(self, recorder: Recorder, config: AgentConfig, lookup: ModelLookup) -> None:
        self._recorder = recorder
        self._config = config
        self.lookup = lookup

    @property
    def default(self) -> str:
        """The model of slots that have none of their own."""
        return self._recorder.loaded.chosen_model or self._config.default_model

    async def choose(self, spec: str) -> None:
        """Record another model as the session's."""
        self.lookup.check(spec)
        override = self._recorder.loaded.prompt_override
        value = {"model_id": spec, "system_prompt_override": override}
        await self._recorder.append([Metadata(key="session_config", value=value)], slot_uid=None)

    def spec_of(self, slot: Slot) -> str:
        """Name a slot's model, `provider:model`."""
        return slot.config.model or self.default

    def check(self, spec: str | None) -> None:
        """Raise `ModelNotSupported` where a spec is given that nobody answers to."""
        if spec is not None:
            self.lookup.check(spec)

    def known(self, slot: Slot) -> ModelInfo:
        """Return what is known of a slot's model without asking its server."""
        return self.lookup.known(self.spec_of(slot))

    async def find(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model that answers in a slot."""
        return await self.lookup.find(self.spec_of(slot))

    async def summariser(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model that compacts a slot."""
        return await self.lookup.find(self._config.compact_model or self.spec_of(slot))

    async def memory_writer(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model that reads what was said for memories."""
        return await self.lookup.find(self._config.memory_model or self.spec_of(slot))

    async def summary_writer(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model of automatic summaries."""
        config = self._config.summary_config
        chosen = config.summary_model if config else None
        return await self.lookup.find(chosen or self.spec_of(slot))
