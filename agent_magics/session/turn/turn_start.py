"""What a turn starts with and keeps to its end: slot, model, tools, skills, hooks.

Why: docs/decisions.md#7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import Origin, Payload
from agent_magics.core.messages import UserInput
from agent_magics.core.ports import Provider, Tool
from agent_magics.core.skills import Skill
from agent_magics.core.slots import Slot
from agent_magics.core.turns import Completed, Reply, TurnOutcome, TurnWarning
from agent_magics.session.compaction.request_fitter import RequestFitter
from agent_magics.session.compaction.summaries import Summaries
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.memory.remembering import TurnMemories, TurnMoment
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.state.running_turn import RunningTurn, Stopped
from agent_magics.session.state.title import title_of_prompt
from agent_magics.session.turn.tool_approval import ToolApproval
from agent_magics.session.turn.turn_parts import TurnParts
from agent_magics.session.turn.turn_run import TurnRun
from agent_magics.tools.dispatch import Dispatcher


@dataclass(kw_only=True)
class TurnStart:
    """One turn that was accepted: what was asked, of which slot and model."""

    open_session: OpenSession
    turn: RunningTurn
    slot: Slot
    given: UserInput
    skills: tuple[Skill, ...]
    spec: str
    origin: Origin | None
    warnings: list[str] = field(default_factory=list)

    async def outcome(self) -> TurnOutcome:
        """Find the model and the tools, run the turn, summarise its slot where that is due."""
        provider, model = await self._model()
        if model.has_tools:
            await self._connect_tools()
        outcome = await self._turn_run(provider, model).run(self.given)
        if not isinstance(outcome, Completed):
            return outcome
        if self.open_session.compaction.summaries is not None:
            await self._summarise(self.open_session.compaction.summaries)
        # What came after its last answer is told, too.
        return msgspec.structs.replace(outcome, warnings=tuple(self.warnings))

    def empty_reply(self) -> Reply:
        """Return the reply of a turn that failed before it ran."""
        return Reply(
            text="",
            seq=None,
            slot_id=self.turn.slot_id,
            turn_id=self.turn.turn_id,
            model=self.spec,
        )

    async def _model(self) -> tuple[Provider, ModelInfo]:
        try:
            return await self.turn.unless_stopped(self.open_session.models.lookup.find(self.spec))
        except Stopped:  # the turn records its prompt, and that
            return self.open_session.models.lookup.resolve(self.spec)

    async def _connect_tools(self) -> None:
        try:
            for live in self.open_session.parts.live:
                for line in await self.turn.unless_stopped(live.ready(self.slot.config.tools)):
                    self._warn(line)
        except Stopped:  # the turn records its prompt, and that
            return

    def _turn_run(self, provider: Provider, model: ModelInfo) -> TurnRun:
        open_session, turn = self.open_session, self.turn
        # Once, here: a tool that is registered while the turn runs must not appear between two of
        # its requests.
        tools = open_session.requests.builder.tools_of(self.slot) if model.has_tools else ()
        # The prompt isn't recorded yet, so the turns are those before this one.
        turn_index = len(open_session.loaded.turns(self.slot)) + 1
        hooks = open_session.hooks(turn.slot_id, turn.turn_id, turn_index)
        tool_approval = self._tool_approval(hooks)
        parts = TurnParts(
            turn=turn,
            turn_index=turn_index,
            provider=provider,
            model=model,
            config=open_session.parts.config,
            clock=open_session.parts.clock,
            recorder=open_session.recorder,
            request_fitter=self._request_fitter(model, tools, hooks),
            dispatcher=Dispatcher(
                tools, open_session.parts.config, open_session.parts.on_main, tool_approval
            ),
            hooks=hooks,
            skills=self.skills,
            references=open_session.requests.references,
            memories=self._memories(),
            warn=self._warn,
            origin=self.origin,
            title=self._title(),
        )
        return TurnRun(parts)

    def _tool_approval(self, hooks: HookScope) -> ToolApproval:
        def record(payloads: Sequence[Payload]) -> Awaitable[object]:
            return self.open_session.recorder.append(
                payloads, slot_uid=self.slot.uid, turn_id=self.turn.turn_id
            )

        return ToolApproval(
            turn=self.turn,
            slot=self.slot,
            config=self.open_session.parts.config,
            hooks=hooks,
            approvals=self.open_session.approvals,
            record=record,
        )

    def _request_fitter(
        self, model: ModelInfo, tools: tuple[Tool, ...], hooks: HookScope
    ) -> RequestFitter:
        compaction = self.open_session.compaction
        return RequestFitter(
            compactor=compaction.compactor(
                model, hooks, running_turn=self.turn.turn_id, tools=tools
            ),
            trigger=compaction.trigger,
            find_slot=self._slot_now,
            find_summariser=lambda: self.open_session.models.summariser(self.slot),
            emit=self.turn.emit,
            warn=self._warn,
        )

    def _memories(self) -> TurnMemories:
        open_session, uid = self.open_session, self.slot.uid
        moment = TurnMoment(
            slot_uid=uid,
            turn_id=self.turn.turn_id,
            others=lambda: {
                other: turn_id
                for other, turn_id in open_session.reservations.running_ids().items()
                if other != uid
            },
            find_writer=lambda: open_session.models.memory_writer(self._slot_now()),
            emit=self.turn.emit,
            warn=self._warn,
        )
        return TurnMemories(turn=self.turn, remembering=open_session.remembering, moment=moment)

    async def _summarise(self, summaries: Summaries) -> None:
        writing = summaries.after_turn(
            self._slot_now,
            self.turn.turn_id,
            lambda: self.open_session.models.summary_writer(self.slot),
            self.turn.emit,
        )
        try:
            await self.turn.unless_stopped(writing)
        except Stopped:  # the turn is complete; only its summary was stopped
            return

    def _title(self) -> str | None:
        """Title an untitled session by its first prompt."""
        if self.open_session.loaded.row.title is not None:
            return None
        return title_of_prompt(self.given)

    def _slot_now(self) -> Slot:
        return self.open_session.loaded.slots[self.slot.uid]

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self.turn.emit(TurnWarning(text=text))
