"""Automatic summaries of slots whose history grows out of sight (docs/decisions.md#39).

Opt-in by `SummaryConfig`. After a completed turn, one tool-less call may write a summary: into the
slot's `summary_override` where it is focused, and into the session's memory. A failure is told and
changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from agent_magics.context.projection import project
from agent_magics.context.prompt import SUMMARY_PROMPT
from agent_magics.context.summary_check import fault_of
from agent_magics.context.transcript import transcript
from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.config import SummaryConfig
from agent_magics.core.errors import AgentError, CompactError
from agent_magics.core.events import LedgerEvent, MemorySet, SlotChanged
from agent_magics.core.messages import Text, User
from agent_magics.core.ports import Change, Provider
from agent_magics.core.slots import Focused, Full, ModelParams, Readonly, Slot
from agent_magics.core.turns import SummaryFailed, SummaryWritten, TurnPayload
from agent_magics.session.memory.facts import MAX_VALUE_CHARACTERS, SUMMARY_KEY
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder

MAX_SUMMARY_OUTPUT_TOKENS = 1_024
_log = logging.getLogger("agent_magics.session")


def last_summary(loaded: LoadedSession, slot: Slot) -> LedgerEvent | None:
    """Find a slot's last automatic summary that is of turns in view; the ledger has it."""
    turns = {span.turn_id for span in loaded.turns(slot)}
    for event in reversed(loaded.events):
        match event.payload:
            case MemorySet(key=key, value=str()) if key.startswith(f"{SUMMARY_KEY}:"):
                if event.slot_uid == slot.uid and event.turn_id in turns:
                    return event
            case _:
                pass
    return None


@dataclass(kw_only=True)
class Summaries:
    """Writes automatic summaries of one session's slots; made where a `SummaryConfig` is set."""

    config: SummaryConfig
    recorder: Recorder
    side_request: SideRequest
    failed_at: dict[str, int] = field(default_factory=dict)

    def is_due(self, slot: Slot) -> bool:
        """Return whether the history since the last summary has reached its mark."""
        if isinstance(slot.config.mode, Readonly):
            return False
        turns = self.recorder.loaded.turns(slot)
        last = last_summary(self.recorder.loaded, slot)
        since = [span for span in turns if last is None or span.last_seq > last.seq]
        tried = self.failed_at.get(slot.uid, 0)
        waited = len(since) if not tried else min(len(since), len(turns) - tried)
        tokens = sum(span.tokens for span in since)
        mark = self.config.max_context_tokens * self.config.trigger_token_ratio
        return bool(since) and waited >= self.config.debounce_turns and tokens >= mark

    async def after_turn(
        self,
        find_slot: Callable[[], Slot],
        turn_id: str,
        find_writer: Callable[[], Awaitable[tuple[Provider, ModelInfo]]],
        emit: Callable[[TurnPayload], None],
    ) -> None:
        """Summarise the slot if it is due; a failure never fails the turn."""
        slot = find_slot()
        if not self.is_due(slot):
            return
        try:
            summary = await self._summarise(slot, turn_id, *await find_writer())
            # The slot as it is now, the generation as it was: a rewind meanwhile makes this commit
            # lose.
            await self._record(find_slot(), slot.generation, summary, turn_id)
        except AgentError as error:
            # Else a model that can't do it would be asked after every turn.
            self.failed_at[slot.uid] = len(self.recorder.loaded.turns(slot))
            _log.error("no summary of slot %s: %s", slot.slot_id, error.code)
            emit(SummaryFailed(slot_id=slot.slot_id, message=error.message))
        else:
            self.failed_at.pop(slot.uid, None)
            emit(SummaryWritten(slot_id=slot.slot_id, characters=len(summary)))

    async def _summarise(
        self, slot: Slot, turn_id: str, provider: Provider, writer: ModelInfo
    ) -> str:
        request = self._request(slot, writer)
        answer = await self.side_request.ask(
            request, provider, writer, "summary", slot_uid=slot.uid, turn_id=turn_id
        )
        summary = answer.strip()
        fault = fault_of(summary, needs_headings=False)
        if fault:
            raise CompactError(f"The automatic summary by {writer.shown} was refused: {fault}.")
        return summary

    def _request(self, slot: Slot, writer: ModelInfo) -> ChatRequest:
        """Ask for one summary of the previous one and of what came since."""
        last = last_summary(self.recorder.loaded, slot)
        view = self.recorder.loaded.view(slot)
        since = tuple(e for e in view.events if last is None or e.seq > last.seq)
        messages = project(
            msgspec.structs.replace(view, events=since), mode=Full(), checkpoint=None
        ).messages
        text = transcript(messages, max_tool_result_chars=self.config.max_tool_result_chars)
        if last is not None and isinstance(last.payload, MemorySet):
            # The chain: each summary has the one before in it, so that old facts aren't lost when
            # their turns are behind it.
            text = f"Summary of what came before: {last.payload.value}\n\n{text}"
        template = self.config.summary_prompt or SUMMARY_PROMPT
        prompt = (
            template.replace("{messages}", text)
            if "{messages}" in template
            else f"{template}\n\n{text}"
        )
        return ChatRequest(
            model=writer.name,
            messages=(User(content=(Text(text=prompt),)),),
            params=ModelParams(temperature=0.2, max_tokens=MAX_SUMMARY_OUTPUT_TOKENS),
            purpose="summary",
        )

    async def _record(self, slot: Slot, generation: int, summary: str, turn_id: str) -> None:
        """Write the summary in one transaction; a slot rewound meanwhile loses nothing."""
        kept = summary
        if len(kept) > MAX_VALUE_CHARACTERS:
            kept = kept[: MAX_VALUE_CHARACTERS - 1] + "…"
        keys: Sequence[str] = (SUMMARY_KEY, f"{SUMMARY_KEY}:{slot.slot_id}")
        events = [
            self.recorder.event(MemorySet(key=key, value=kept), slot_uid=slot.uid, turn_id=turn_id)
            for key in keys
        ]
        slots: tuple[Slot, ...] = ()
        if isinstance(slot.config.mode, Focused):
            mode = msgspec.structs.replace(slot.config.mode, summary_override=summary)
            config = msgspec.structs.replace(slot.config, mode=mode)
            slots = (msgspec.structs.replace(slot, config=config),)
            changed = SlotChanged(action="configured", slot_id=slot.slot_id, config=config)
            events.append(self.recorder.event(changed, slot_uid=slot.uid, turn_id=turn_id))
        await self.recorder.commit(
            Change(events=tuple(events), slots=slots, expected_generation={slot.uid: generation})
        )
