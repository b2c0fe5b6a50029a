"""Compaction of one slot: plan, one summary, one commit.

The request goes out while the slot takes no turn; the commit compares and swaps its generation, so
a summary of a history that changed meanwhile is dropped. Manual, automatic and overflow compaction
share this one way.
"""

from __future__ import annotations

import logging
import math

import msgspec

from agent_magics.context.budget import ContextInfo, Limits
from agent_magics.context.compaction import (
    MAX_SUMMARY_TOKENS,
    CompactionPlan,
    SummaryRequest,
    judge_summary,
    replaced_tokens,
    summary_request,
)
from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    AgentError,
    CompactError,
    NothingToCompact,
    ProviderError,
    SpendingLimitReached,
)
from agent_magics.core.hooks import BeforeCompact
from agent_magics.core.ports import Clock, Ids, Provider
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.values import Value
from agent_magics.session.compaction.checkpoints import Checkpoints, Reason
from agent_magics.session.compaction.planner import CompactionPlanner
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.recorder import Recorder

LEAST_PROGRESS = 0.1
LEAST_SUMMARY_TOKENS = 200  # the nine headings alone have about 40
_log = logging.getLogger("agent_magics.session")


class CompactionOutcome(Value):
    """What a compaction did, or (`checkpoint_id` None) would do; tokens of the whole request.

    `tokens_after` of a dry run is an estimate: the summary is taken as a quarter of what it
    stands for. `is_turn_cut`: the first of the kept turns stays from one of its iterations on,
    which only overflow recovery does.
    """

    slot_id: str
    tokens_before: int
    tokens_after: int
    summarised_turns: int
    kept_turns: int
    first_retained_seq: int
    checkpoint_id: str | None = None
    is_turn_cut: bool = False


class Compactor:
    """Compacts one slot for one model, inside a turn or outside; one way for all who ask.

    `has_leave`: plugins have agreed to what is being compacted now.
    """

    def __init__(
        self,
        *,
        recorder: Recorder,
        next_request: NextRequest,
        config: AgentConfig,
        clock: Clock,
        ids: Ids,
        hooks: HookScope,
    ) -> None:
        self.recorder = recorder
        self.next_request = next_request
        self.checkpoints = Checkpoints(
            recorder=recorder, clock=clock, ids=ids, model=next_request.model
        )
        self.planner = CompactionPlanner(
            loaded=recorder.loaded, next_request=next_request, checkpoints=self.checkpoints
        )
        self.has_leave = False
        self.config = config
        self._side_request = SideRequest(recorder=recorder, clock=clock, config=config)
        self._hooks = hooks

    def foresee(self, slot: Slot) -> CompactionOutcome:
        """Return what a compaction would do; no model is asked and nothing changes."""
        plan = self.planner.plan(slot)
        return CompactionOutcome(
            slot_id=plan.slot_id,
            tokens_before=self.next_request.build(slot).info.used,
            tokens_after=self.planner.tokens_after(
                slot, plan.first_retained_seq, replaced_tokens(plan)
            ),
            summarised_turns=plan.summarised_turns,
            kept_turns=plan.kept_turns,
            first_retained_seq=plan.first_retained_seq,
        )

    async def ask_leave(self, slot: Slot) -> None:
        """Let plugins see that a slot is about to be compacted; raises `PluginAborted`."""
        prepared = self.next_request.build(slot)
        await self._hooks.fire(
            BeforeCompact(
                message_count=len(prepared.projection.messages),
                estimated_tokens=prepared.info.used,
            )
        )
        self.has_leave = True

    async def compact(
        self,
        slot: Slot,
        *,
        summariser: tuple[Provider, ModelInfo],
        reason: Reason,
        instructions: str | None = None,
    ) -> CompactionOutcome:
        """Summarise what is old with one call and commit a checkpoint (docs/decisions.md#33).

        Raises `NothingToCompact`, `FixedContextExceedsBudget`, `PluginAborted`, `CompactError`,
        `CompactionStale`; the view before stays valid after any of them.
        """
        try:
            return await self._compact(slot, summariser, reason, instructions)
        except AgentError as error:
            self._log_failed(slot, reason, error)
            raise

    async def _compact(
        self,
        slot: Slot,
        summariser: tuple[Provider, ModelInfo],
        reason: Reason,
        instructions: str | None,
    ) -> CompactionOutcome:
        before = self.next_request.build(slot).info
        plan = self.planner.plan(slot, in_overflow=reason == "overflow")
        # After the plan, so that plugins aren't asked about what would do nothing; before the call,
        # so that a no costs none.
        await self.ask_leave(slot)
        writer = summariser[1]
        request = summary_request(
            plan,
            model=writer.name,
            window=self._window_of(writer, before.limits),
            most_tokens=self._summary_room(slot, plan, before, reason),
            instructions=instructions,
            prompt=self.config.compact_prompt,
        )
        summary = await self._summary(plan, request, summariser, slot)
        # Measured before it is committed: nobody may see a view that is taken back a moment later.
        made = self.checkpoints.candidate(
            slot, plan.first_retained_seq, summary, before.used, reason
        )
        made = msgspec.structs.replace(
            made,
            source_max_seq=plan.source_max_seq,
            provider=writer.provider,
            model=writer.name,
        )
        checkpoint = self._measured(made, slot, before.limits.threshold)
        await self.checkpoints.commit(checkpoint, slot, request.source)
        return _outcome(plan, checkpoint)

    def _window_of(self, writer: ModelInfo, limits: Limits) -> int:
        """Return the summarising model's window, as small as any limit of it."""
        if writer.spec == self.next_request.model.spec:
            return limits.window
        learnt = self.next_request.builder.learnt_windows.get(writer.spec)
        # A window that nobody knows is taken as the slot's own: its limits were set with care,
        # 128,000 were not.
        known = (writer.context_window, learnt)
        return min((tokens for tokens in known if tokens), default=limits.window)

    def _summary_room(
        self, slot: Slot, plan: CompactionPlan, before: ContextInfo, reason: Reason
    ) -> int:
        """Return how many tokens a summary may have; in overflow recovery, so many that it fits.

        A short one is better there than none. Elsewhere the context may grow on, and a tail that
        is long for a while presses no facts out of the summary for good.
        """
        if reason != "overflow":
            return MAX_SUMMARY_TOKENS
        without = self.planner.tokens_after(slot, plan.first_retained_seq, 0)
        # `factor` maps our estimate to the server's count; what a summary may have is told in ours.
        room = math.floor((before.limits.threshold - without) / before.factor)
        return max(LEAST_SUMMARY_TOKENS, room)

    async def _summary(
        self,
        plan: CompactionPlan,
        request: SummaryRequest,
        summariser: tuple[Provider, ModelInfo],
        slot: Slot,
    ) -> str:
        """Ask for the summary; raises `CompactError` where there is none that may be used."""
        provider, writer = summariser
        try:
            answer = await self._side_request.ask(
                request, provider, writer, "compaction", slot_uid=slot.uid
            )
        except (ProviderError, SpendingLimitReached) as error:
            raise CompactError(f"The summary failed, nothing changed: {error.message}") from error
        summary = answer.strip()
        limit = request.params.max_tokens or MAX_SUMMARY_TOKENS
        fault = judge_summary(summary, plan=plan, output_limit=limit)
        if fault:
            raise CompactError(
                f"The summary by {writer.shown} was refused ({fault}); nothing changed."
                " Try again, or set compact_model to a stronger model."
            )
        return summary

    def _measured(self, checkpoint: Checkpoint, slot: Slot, threshold: int) -> Checkpoint:
        """Measure what the candidate gives; refuse one that doesn't help."""
        before = checkpoint.tokens_before
        after = self.next_request.build(slot, checkpoint).info.used
        # Someone who asked for it by hand, or a request that doesn't fit, takes any progress.
        least = LEAST_PROGRESS if checkpoint.reason == "auto" else 0.0
        if after >= before or after > before * (1 - least):
            raise CompactError(
                f"The summary would hardly make the context smaller ({before:,} -> {after:,}"
                " tokens); nothing changed."
            )
        if after > threshold:
            raise CompactError(
                f"Even summarised, the context would be {after:,} tokens, over the threshold of"
                f" {threshold:,}; nothing changed."
            )
        return msgspec.structs.replace(checkpoint, tokens_after=after)

    def _log_failed(self, slot: Slot, reason: Reason, error: AgentError) -> None:
        """Log what became of it without a word of the error: it may hold what was said."""
        level = logging.INFO if isinstance(error, NothingToCompact) else logging.WARNING
        _log.log(
            level,
            "not compacted session=%s slot=%s generation=%s reason=%s error=%s",
            self.recorder.loaded.row.session_id,
            slot.slot_id,
            slot.generation,
            reason,
            type(error).__name__,
        )


def _outcome(plan: CompactionPlan, checkpoint: Checkpoint) -> CompactionOutcome:
    return CompactionOutcome(
        slot_id=plan.slot_id,
        tokens_before=checkpoint.tokens_before,
        tokens_after=checkpoint.tokens_after,
        summarised_turns=plan.summarised_turns,
        kept_turns=plan.kept_turns,
        first_retained_seq=plan.first_retained_seq,
        checkpoint_id=checkpoint.checkpoint_id,
        is_turn_cut=plan.is_turn_cut,
    )
