"""Bridges: chosen facts and a summary of one slot, carried into another (docs/decisions.md#48)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_magics.context.projection import project, repair
from agent_magics.context.prompt import SUMMARY_PROMPT
from agent_magics.context.summary_check import fault_of
from agent_magics.context.transcript import transcript
from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import AgentError, CompactError, InputValidation
from agent_magics.core.events import MemorySet, SystemMessage
from agent_magics.core.messages import Message, Text, User
from agent_magics.core.ports import Provider
from agent_magics.core.slots import Focused, Full, ModelParams, Slot, Static
from agent_magics.core.values import Value
from agent_magics.core.wording import listed, near
from agent_magics.session.compaction.summaries import MAX_SUMMARY_OUTPUT_TOKENS, last_summary
from agent_magics.session.memory.facts import SUMMARY_KEY
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.recorder import Recorder

_log = logging.getLogger("agent_magics.session")


class BridgeOutcome(Value):
    """What a bridge carried: `keys` of facts, and whether a summary.

    `seq` is the recorded message's. `warning`: why there is no summary, where one was wanted.
    """

    from_slot: str
    to_slot: str
    keys: tuple[str, ...]
    has_summary: bool
    seq: int
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class SlotBridge:
    """Makes bridges between the slots of one session."""

    recorder: Recorder
    side_request: SideRequest

    def newest_summary(self, slot: Slot) -> str | None:
        """Find the newest summary that there is of a slot: a checkpoint's or an automatic one."""
        found: list[tuple[datetime, str]] = []
        checkpoint = self.recorder.loaded.checkpoint_of(slot)
        if checkpoint is not None and not checkpoint.degraded:
            found.append((checkpoint.created_at, checkpoint.summary))
        automatic = last_summary(self.recorder.loaded, slot)
        if automatic is not None and isinstance(automatic.payload, MemorySet):
            found.append((automatic.created_at, automatic.payload.value or ""))
        if found:
            return max(found)[1]
        mode = slot.config.mode
        return mode.summary_override if isinstance(mode, Focused) else None

    def facts(self, slot: Slot, keys: Sequence[str] | None) -> dict[str, str]:
        """Choose facts by key; None: those that were last written from the slot.

        Raises `InputValidation` on a key that there is no fact of.
        """
        memory = self.recorder.loaded.memory
        if keys is None:
            chosen = self._keys_written_in(slot)
            return {key: memory[key] for key in sorted(memory) if key in chosen}
        for key in keys:
            if key not in memory:
                known = sorted(memory)
                raise InputValidation(
                    f'There is no fact "{key}" to carry over.{near(key, known)} Facts:'
                    f" {listed(known)}."
                )
        return {key: memory[key] for key in dict.fromkeys(keys)}

    async def carry(
        self,
        source: Slot,
        target: Slot,
        *,
        keys: Sequence[str] | None,
        writer: tuple[Provider, ModelInfo] | None,
    ) -> BridgeOutcome:
        """Record one reference message in `target`.

        `writer` summarises the source where there is no summary yet; None: no summary is wanted.
        A summary that fails leaves the facts, with a warning. Raises `InputValidation` where
        nothing is left to carry.
        """
        facts = self.facts(source, keys)
        summary, warning = None, None
        if writer is not None:
            try:
                summary = self.newest_summary(source) or await self._summarise(source, *writer)
            except AgentError as error:
                _log.error("no summary of slot %s for a bridge: %s", source.slot_id, error.code)
                warning = f"no summary was carried over: {error.message}"
        # An empty note would only tell the model that something is missing.
        if not summary and not facts:
            because = f" ({warning})" if warning else ""
            raise InputValidation(
                f'Slot "{source.slot_id}" has nothing to carry over{because}: set facts with'
                " session_memory_set or session.memory.set, or ask something in it first."
            )
        text = _text_of(source.slot_id, summary, facts)
        events = await self.recorder.append(
            [SystemMessage(text=text, note="bridge")], slot_uid=target.uid
        )
        return BridgeOutcome(
            from_slot=source.slot_id,
            to_slot=target.slot_id,
            keys=tuple(facts),
            has_summary=bool(summary),
            seq=events[0].seq,
            warning=warning,
        )

    def _keys_written_in(self, slot: Slot) -> set[str]:
        writers: dict[str, str | None] = {}
        for event in self.recorder.loaded.events:
            if isinstance(event.payload, MemorySet):
                # The last writer has it: a fact that another slot has corrected is no longer this
                # one's.
                writers[event.payload.key] = event.slot_uid
        return {
            key
            for key, uid in writers.items()
            if uid == slot.uid and not key.startswith(SUMMARY_KEY)
        }

    def _messages(self, slot: Slot) -> Sequence[Message]:
        if isinstance(slot.config.source, Static):
            return repair(slot.config.source.messages)
        return project(self.recorder.loaded.view(slot), mode=Full(), checkpoint=None).messages

    async def _summarise(self, slot: Slot, provider: Provider, writer: ModelInfo) -> str | None:
        """Ask for a summary with one call; None without one where the slot is empty."""
        said = transcript(self._messages(slot))
        if not said:
            return None
        prompt = SUMMARY_PROMPT.replace("{messages}", said)
        request = ChatRequest(
            model=writer.name,
            messages=(User(content=(Text(text=prompt),)),),
            params=ModelParams(temperature=0.2, max_tokens=MAX_SUMMARY_OUTPUT_TOKENS),
            purpose="bridge",
        )
        answer = await self.side_request.ask(request, provider, writer, "bridge", slot_uid=slot.uid)
        summary = answer.strip()
        fault = fault_of(summary, needs_headings=False)
        if fault:
            raise CompactError(f"the summary by {writer.shown} was refused: {fault}.")
        return summary


def _text_of(source: str, summary: str | None, facts: dict[str, str]) -> str:
    parts = [f'From slot "{source}".']
    if summary:
        parts.append(f"Summary:\n{summary}")
    if facts:
        lines = "\n".join(f"- {key}: {value}" for key, value in facts.items())
        parts.append(f"Facts:\n{lines}")
    return "\n\n".join(parts)
