"""The next request of a slot, as one model would get it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_magics.core.chat import ModelInfo
from agent_magics.core.ports import Tool
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.request.request_builder import PreparedRequest, RequestBuilder


@dataclass(frozen=True, kw_only=True)
class NextRequest:
    """Builds requests for one model, inside a turn or outside.

    `running_turn` and `tools` are those of the turn that asks, None outside of one.
    """

    builder: RequestBuilder
    model: ModelInfo
    running_turn: str | None = None
    tools: Sequence[Tool] | None = None

    def build(self, slot: Slot, checkpoint: Checkpoint | None = None) -> PreparedRequest:
        """Build the slot's next request, with another checkpoint in place of the active one."""
        return self.builder.build(
            slot,
            self.model,
            running_turn=self.running_turn,
            checkpoint=checkpoint,
            tools=self.tools,
        )
