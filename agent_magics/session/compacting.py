"""Compaction of one slot: plan, one summary, one commit (seed 002 § 7.4).

The request goes out while the slot takes no turn; the commit compares and swaps its generation, so
a summary of a history that changed meanwhile is dropped. Manual, automatic and overflow compaction
share this one way.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

import msgspec

from agent_magics.context.compaction import (
    CompactionPlan,
    judge_summary,
    plan_compaction,
    summary_request,
)
from agent_magics.context.prompt import render_summary
from agent_magics.context.tokens import count_message
from agent_magics.core.chat import CallReady, ChatRequest, Done, ModelInfo, Retrying, TextDelta
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    CompactError,
    FixedContextExceedsBudget,
    ProviderError,
)
from agent_magics.core.events import Metadata
from agent_magics.core.messages import Value
from agent_magics.core.ports import Change, Clock, Ids, Provider
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.answer import Answer
from agent_magics.session.asking import ask
from agent_magics.session.record import Recorder
from agent_magics.session.request import RequestBuilder, digest_of

MAX_SUMMARY_TOKENS = 2_048
FIXED_PARTS = ("system", "tools", "skills", "memories")
_log = logging.getLogger("agent_magics.session")


class CompactionOutcome(Value):
    """What a compaction did, or (`checkpoint_id` None) would do; tokens of the whole request.

    `tokens_after` of a dry run is an estimate: the summary is taken as a quarter of what it
    stands for.
    """

    slot_id: str
    tokens_before: int
    tokens_after: int
    summarised_turns: int
    kept_turns: int
    first_retained_seq: int
    checkpoint_id: str | None = None


@dataclass(kw_only=True)
class Compactor:
    """Compacts one slot with the model that summarises it (D 33)."""

    recorder: Recorder
    builder: RequestBuilder
    config: AgentConfig
    clock: Clock
    ids: Ids
    override: str | None

    async def compact(
        self,
        slot: Slot,
        *,
        model: ModelInfo,
        summariser: tuple[Provider, ModelInfo],
        reason: Literal["manual", "auto", "overflow"],
        instructions: str | None,
        dry_run: bool,
    ) -> CompactionOutcome:
        """Summarise what is old and commit a checkpoint.

        Raises `NothingToCompact`, `FixedContextExceedsBudget`, `CompactError`, `CompactionStale`;
        the view before stays valid after any of them.
        """
        mirror = self.recorder.mirror
        before = self.builder.build(slot, model, override=self.override).info
        fixed = {name: before.parts[name] for name in FIXED_PARTS}
        if sum(fixed.values()) >= before.limits.threshold:
            raise FixedContextExceedsBudget(fixed, before.limits.threshold)
        plan = plan_compaction(
            mirror.view(slot),
            slot_id=slot.slot_id,
            mode=slot.config.mode,
            checkpoint=mirror.checkpoint_of(slot),
            limits=before.limits,
            provider=model.provider,
            model=model.name,
        )
        if dry_run:
            return self._foreseen(plan, before.used, before.parts["summary"])
        provider, writer = summariser
        window = writer.context_window or before.limits.window
        summary = await self._summary(plan, provider, writer, window, instructions, slot)
        checkpoint = self._candidate(plan, slot, summary, writer, before.used, reason)
        checkpoint = self._judged(checkpoint, slot, model, before.used, before.limits.threshold)
        await self._commit(checkpoint, slot)
        return self._outcome(plan, checkpoint)

    async def _summary(
        self,
        plan: CompactionPlan,
        provider: Provider,
        writer: ModelInfo,
        window: int,
        instructions: str | None,
        slot: Slot,
    ) -> str:
        request = summary_request(
            plan,
            model=writer.name,
            window=window,
            instructions=instructions,
            prompt=self.config.compact_prompt,
        )
        answer = Answer(
            began_s=self.clock.monotonic(),
            estimated_tokens=sum(map(count_message, request.messages)),
            digest=digest_of(request),
        )
        try:
            await self._collect(answer, provider, writer, request)
        except ProviderError as error:
            raise CompactError(f"The summary failed, nothing changed: {error.message}") from error
        finally:
            usage = answer.usage_event(writer, "compaction", self.clock.monotonic())
            await self.recorder.append([*answer.retries, usage], slot_uid=slot.uid)
        said = "" if answer.calls else answer.said.strip()
        limit = min(MAX_SUMMARY_TOKENS, window // 4)
        refused = judge_summary(said, plan=plan, output_limit=limit)
        if refused:
            raise CompactError(
                f"The summary by {writer.spec} was refused ({refused}); nothing changed."
                " Try again, or set compact_model to a stronger model."
            )
        return said

    async def _collect(
        self, answer: Answer, provider: Provider, writer: ModelInfo, request: ChatRequest
    ) -> None:
        async with aclosing(ask(provider, request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        answer.text.append(text)
                    case CallReady(call=call):
                        answer.calls.append(call)
                    case Retrying():
                        answer.note_retry(writer, event)
                    case Done():
                        answer.done = event
                    case _:
                        pass
        if answer.done and answer.done.finish == "length":
            raise ProviderError("the summary ran into the output limit", kind="other")

    def _candidate(
        self,
        plan: CompactionPlan,
        slot: Slot,
        summary: str,
        writer: ModelInfo,
        tokens_before: int,
        reason: Literal["manual", "auto", "overflow"],
    ) -> Checkpoint:
        return Checkpoint(
            checkpoint_id=self.ids.new("checkpoint"),
            slot_uid=slot.uid,
            generation=slot.generation + 1,
            parent_checkpoint_id=slot.checkpoint_id,
            summary=summary,
            rendered=render_summary(summary),
            first_retained_seq=plan.first_retained_seq,
            source_max_seq=plan.source_max_seq,
            reason=reason,
            provider=writer.provider,
            model=writer.name,
            tokens_before=tokens_before,
            tokens_after=0,
            degraded=False,
            created_at=self.clock.now(),
        )

    def _judged(
        self,
        checkpoint: Checkpoint,
        slot: Slot,
        model: ModelInfo,
        tokens_before: int,
        threshold: int,
    ) -> Checkpoint:
        """Measure what the candidate gives; refuse one that doesn't help (C12)."""
        after = self.builder.build(
            slot, model, checkpoint=checkpoint, override=self.override
        ).info.used
        if after >= tokens_before:
            raise CompactError(
                f"The summary would not make the context smaller ({tokens_before:,} -> {after:,}"
                " tokens); nothing changed."
            )
        if after > threshold:
            raise CompactError(
                f"Even summarised, the context would be {after:,} tokens, over the threshold of"
                f" {threshold:,}; nothing changed."
            )
        return msgspec.structs.replace(checkpoint, tokens_after=after)

    async def _commit(self, checkpoint: Checkpoint, slot: Slot) -> None:
        marker = Metadata(
            key="context_compaction",
            value={
                "checkpoint_id": checkpoint.checkpoint_id,
                "reason": checkpoint.reason,
                "first_retained_seq": checkpoint.first_retained_seq,
                "tokens_before": checkpoint.tokens_before,
                "tokens_after": checkpoint.tokens_after,
                "degraded": checkpoint.degraded,
            },
        )
        changed = msgspec.structs.replace(
            slot, generation=checkpoint.generation, checkpoint_id=checkpoint.checkpoint_id
        )
        await self.recorder.commit(
            Change(
                events=(self.recorder.event(marker, slot_uid=slot.uid),),
                slots=(changed,),
                checkpoint=checkpoint,
                expected_generation={slot.uid: slot.generation},
            )
        )
        _log.info(
            "compacted session=%s slot=%s checkpoint=%s generation=%s reason=%s before=%s after=%s"
            " first_retained_seq=%s degraded=%s",
            self.recorder.mirror.row.session_id,
            slot.slot_id,
            checkpoint.checkpoint_id,
            checkpoint.generation,
            checkpoint.reason,
            checkpoint.tokens_before,
            checkpoint.tokens_after,
            checkpoint.first_retained_seq,
            checkpoint.degraded,
        )

    def _outcome(self, plan: CompactionPlan, checkpoint: Checkpoint) -> CompactionOutcome:
        return CompactionOutcome(
            slot_id=plan.slot_id,
            tokens_before=checkpoint.tokens_before,
            tokens_after=checkpoint.tokens_after,
            summarised_turns=plan.summarised_turns,
            kept_turns=plan.kept_turns,
            first_retained_seq=plan.first_retained_seq,
            checkpoint_id=checkpoint.checkpoint_id,
        )

    def _foreseen(
        self, plan: CompactionPlan, tokens_before: int, summary_tokens: int
    ) -> CompactionOutcome:
        replaced = plan.source_tokens + summary_tokens
        after = tokens_before - replaced + min(MAX_SUMMARY_TOKENS, replaced // 4)
        return CompactionOutcome(
            slot_id=plan.slot_id,
            tokens_before=tokens_before,
            tokens_after=max(0, after),
            summarised_turns=plan.summarised_turns,
            kept_turns=plan.kept_turns,
            first_retained_seq=plan.first_retained_seq,
        )
