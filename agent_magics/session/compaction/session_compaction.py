"""What shortens the histories of one session: compactors, automatic summaries, bridges."""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.ports import Clock, Ids, Tool
from agent_magics.session.compaction.compactor import Compactor
from agent_magics.session.compaction.slot_bridge import SlotBridge
from agent_magics.session.compaction.summaries import Summaries
from agent_magics.session.compaction.trigger import Trigger
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.request.request_builder import RequestBuilder
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.recorder import Recorder


class SessionCompaction:
    """Keeps what lasts from one compaction to the next. `summaries`: None where they are off."""

    def __init__(
        self,
        recorder: Recorder,
        builder: RequestBuilder,
        *,
        config: AgentConfig,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._recorder = recorder
        self._builder = builder
        self._config = config
        self._clock = clock
        self._ids = ids
        self.trigger = Trigger()
        side_request = SideRequest(recorder=recorder, clock=clock, config=config)
        self.bridges = SlotBridge(recorder=recorder, side_request=side_request)
        summaries = config.summary_config
        self.summaries = (
            Summaries(config=summaries, recorder=recorder, side_request=side_request)
            if summaries
            else None
        )

    def compactor(
        self,
        model: ModelInfo,
        hooks: HookScope,
        *,
        running_turn: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> Compactor:
        """Make what compacts for one model, in a turn (with its tools) or outside."""
        return Compactor(
            recorder=self._recorder,
            next_request=NextRequest(
                builder=self._builder, model=model, running_turn=running_turn, tools=tools
            ),
            config=self._config,
            clock=self._clock,
            ids=self._ids,
            hooks=hooks,
        )
