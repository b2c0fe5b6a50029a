"""What a turn starts with and keeps to its end: slot, model, tools, skills, hooks (decision 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import Origin, Payload
from agent_magics.core.messages import UserInput, text_of
from agent_magics.core.ports import Provider, Tool
from agent_magics.core.skills import Skill
from agent_magics.core.slots import Slot
from agent_magics.core.turns import Completed, Reply, TurnOutcome, TurnWarning
from agent_magics.session.compaction.request_fitter import Fitter
from agent_magics.session.compaction.summaries import Summaries
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.memory.remembering import Moment, TurnMemories
from agent_magics.session.state.running_turn import RunningTurn, Stopped
from agent_magics.session.turn.tool_approval import Gate
from agent_magics.session.turn.turn_run import TurnRun
from agent_magics.tools.dispatch import Dispatcher

if TYPE_CHECKING:  # the desk starts turns
    from agent_magics.session.turn.desk import Desk

TITLE_CHARACTERS = 60


@dataclass(kw_only=True)
class TurnStart:
    """One turn that was accepted: what was asked, of which slot and model."""

    desk: Desk
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
        outcome = await self._run(provider, model).run(self.given)
        if self.desk.summaries is not None and isinstance(outcome, Completed):
            await self._summarise(self.desk.summaries)
        if isinstance(outcome, Completed):  # what came after its last answer is told, too
            return msgspec.structs.replace(outcome, warnings=tuple(self.warnings))
        return outcome

    def empty_reply(self) -> Reply:
        """Give the reply of a turn that failed before it ran."""
        return Reply(
            text="",
            seq=None,
            slot_id=self.turn.slot_id,
            turn_id=self.turn.turn_id,
            model=self.spec,
        )

    async def _model(self) -> tuple[Provider, ModelInfo]:
        try:
            return await self.turn.unless_stopped(self.desk.models.find(self.spec))
        except Stopped:  # the turn records its prompt, and that
            return self.desk.models.at_hand(self.spec)

    async def _connect_tools(self) -> None:
        try:
            for live in self.desk.parts.live:
                for line in await self.turn.unless_stopped(live.ready(self.slot.config.tools)):
                    self._warn(line)
        except Stopped:  # the turn records its prompt, and that
            return

    def _run(self, provider: Provider, model: ModelInfo) -> TurnRun:
        desk, turn = self.desk, self.turn
        tools = desk.builder.tools_of(self.slot) if model.has_tools else ()
        turn_index = len(desk.mirror.turns(self.slot)) + 1
        hooks = desk.hooks(turn.slot_id, turn.turn_id, turn_index)
        gate = self._gate(hooks)
        return TurnRun(
            turn=turn,
            slot=self.slot,
            recorder=desk.recorder,
            fitter=self._fitter(model, tools, hooks),
            hooks=hooks,
            skills=self.skills,
            references=desk.references,
            memories=self._memories(),
            warnings=self.warnings,
            dispatcher=Dispatcher(tools, desk.parts.config, desk.parts.on_main, gate),
            provider=provider,
            model=model,
            config=desk.parts.config,
            clock=desk.parts.clock,
            turn_index=turn_index,
            origin=self.origin,
            title=self._title(),
        )

    def _gate(self, hooks: HookScope) -> Gate:
        def record(payloads: Sequence[Payload]) -> Awaitable[object]:
            return self.desk.recorder.append(
                payloads, slot_uid=self.slot.uid, turn_id=self.turn.turn_id
            )

        return Gate(
            turn=self.turn,
            slot=self.slot,
            config=self.desk.parts.config,
            hooks=hooks,
            approvals=self.desk.approvals,
            record=record,
        )

    def _fitter(self, model: ModelInfo, tools: tuple[Tool, ...], hooks: HookScope) -> Fitter:
        return Fitter(
            compactor=self.desk.compactor(
                model, hooks, running_turn=self.turn.turn_id, tools=tools
            ),
            trigger=self.desk.trigger,
            find_slot=self._slot_now,
            find_summariser=lambda: self.desk.summariser(self.slot),
            emit=self.turn.emit,
            warn=self._warn,
        )

    def _memories(self) -> TurnMemories:
        desk, uid = self.desk, self.slot.uid
        moment = Moment(
            slot_uid=uid,
            turn_id=self.turn.turn_id,
            others=lambda: {u: turn for u, turn in desk.running_ids().items() if u != uid},
            find_writer=lambda: desk.memory_writer(self._slot_now()),
            emit=self.turn.emit,
            warn=self._warn,
        )
        return TurnMemories(turn=self.turn, remembering=desk.remembering, moment=moment)

    async def _summarise(self, summaries: Summaries) -> None:
        spec = summaries.config.summary_model or self.desk.spec_of(self.slot)
        writing = summaries.after_turn(
            self._slot_now, self.turn.turn_id, lambda: self.desk.models.find(spec), self.turn.emit
        )
        try:
            await self.turn.unless_stopped(writing)
        except Stopped:  # the turn is complete; only its summary was stopped
            return

    def _title(self) -> str | None:
        """Title an untitled session by its first prompt (E4)."""
        if self.desk.mirror.row.title is not None:
            return None
        return " ".join(text_of(self.given.content).split())[:TITLE_CHARACTERS] or None

    def _slot_now(self) -> Slot:
        return self.desk.mirror.slots[self.slot.uid]

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self.turn.emit(TurnWarning(text=text))
