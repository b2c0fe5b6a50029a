"""Compaction of one slot: plan, one summary, one commit.

The request goes out while the slot takes no turn; the commit compares and swaps its generation, so
a summary of a history that changed meanwhile is dropped. Manual, automatic and overflow compaction
share this one way.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from agent_magics.context.budget import ContextInfo, Limits
from agent_magics.context.compaction import (
    MAX_SUMMARY_TOKENS,
    CompactionPlan,
    SourceRecord,
    SummaryRequest,
    judge_summary,
    output_limit_for,
    plan_compaction,
    replaced_tokens,
    summary_request,
)
from agent_magics.context.cuts import Cut, fewest_behind, newest_complete, recovery_cuts
from agent_magics.context.projection import bounds_of
from agent_magics.context.prompt import render_summary
from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import (
    AgentError,
    CompactError,
    FixedContextExceedsBudget,
    NothingToCompact,
    ProviderError,
    SpendingLimitReached,
)
from agent_magics.core.events import Metadata
from agent_magics.core.hooks import BeforeCompact
from agent_magics.core.messages import Value
from agent_magics.core.ports import Change, Clock, Ids, Provider, Tool
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.request.request_builder import PreparedRequest, RequestBuilder
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.recorder import Recorder

LEAST_PROGRESS = 0.1
LEAST_SUMMARY_TOKENS = 200  # the nine headings alone have about 40
FIXED_PARTS = ("system", "tools", "skills", "memories", "dynamic")
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


Reason = Literal["manual", "auto", "overflow"]


@dataclass(kw_only=True)
class Compactor:
    """Compacts one slot for one model, inside a turn or outside; one way for all who ask.

    `running_turn` and `tools` are those of the turn that asks, None outside of one. `has_leave`:
    plugins have agreed to what is being compacted now.
    """

    recorder: Recorder
    builder: RequestBuilder
    config: AgentConfig
    clock: Clock
    ids: Ids
    model: ModelInfo
    hooks: HookScope
    running_turn: str | None = None
    tools: Sequence[Tool] | None = None
    has_leave: bool = False

    def prepared(self, slot: Slot, checkpoint: Checkpoint | None = None) -> PreparedRequest:
        """Build the slot's next request, with another checkpoint in place of the active one."""
        return self.builder.build(
            slot,
            self.model,
            running_turn=self.running_turn,
            checkpoint=checkpoint,
            tools=self.tools,
        )

    def plan(self, slot: Slot, *, in_overflow: bool = False) -> CompactionPlan:
        """Choose what to summarise; `in_overflow`, less may stay than `keep_recent_tokens` says.

        Raises `NothingToCompact`, or `FixedContextExceedsBudget` where what can't shrink is at
        the threshold already.
        """
        info = self.prepared(slot).info
        fixed = {name: info.parts[name] for name in FIXED_PARTS}
        if sum(fixed.values()) >= info.limits.threshold:
            raise FixedContextExceedsBudget(fixed, info.limits.threshold, info.limits.larger)
        cut = self._recovery_cut(slot, info) if in_overflow else None
        return self._planned(slot, info.limits, cut)

    def foresee(self, slot: Slot) -> CompactionOutcome:
        """Return what a compaction would do; no model is asked and nothing changes."""
        plan = self.plan(slot)
        return CompactionOutcome(
            slot_id=plan.slot_id,
            tokens_before=self.prepared(slot).info.used,
            tokens_after=self._foreseen(slot, plan.first_retained_seq, replaced_tokens(plan)),
            summarised_turns=plan.summarised_turns,
            kept_turns=plan.kept_turns,
            first_retained_seq=plan.first_retained_seq,
        )

    async def ask_leave(self, slot: Slot) -> None:
        """Let plugins see that a slot is about to be compacted; raises `PluginAborted`."""
        prepared = self.prepared(slot)
        await self.hooks.fire(
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
            return await self._compacted(slot, summariser, reason, instructions)
        except AgentError as error:
            self._log_failed(slot, reason, error)
            raise

    async def _compacted(
        self,
        slot: Slot,
        summariser: tuple[Provider, ModelInfo],
        reason: Reason,
        instructions: str | None,
    ) -> CompactionOutcome:
        before = self.prepared(slot).info
        plan = self.plan(slot, in_overflow=reason == "overflow")
        # After the plan, so that plugins aren't asked about what would do nothing; before the call,
        # so that a no costs none.
        await self.ask_leave(slot)
        provider, writer = summariser
        request = summary_request(
            plan,
            model=writer.name,
            window=self._window_of(writer, before.limits),
            most_tokens=self._room(slot, plan, before, reason),
            instructions=instructions,
            prompt=self.config.compact_prompt,
        )
        summary = await self._summary(plan, request, provider, writer, slot)
        # Measured before it is committed: nobody may see a view that is taken back a moment later.
        made = self.candidate(slot, plan.first_retained_seq, summary, before.used, reason)
        made = msgspec.structs.replace(
            made,
            source_max_seq=plan.source_max_seq,
            provider=writer.provider,
            model=writer.name,
        )
        checkpoint = self._judged(made, slot, before.limits.threshold)
        await self.commit(checkpoint, slot, request.source)
        return self._outcome(plan, checkpoint)

    def candidate(
        self, slot: Slot, first_retained_seq: int, text: str, tokens_before: int, reason: Reason
    ) -> Checkpoint:
        """Make a checkpoint that nobody has seen yet, of the slot's own model."""
        return Checkpoint(
            checkpoint_id=self.ids.new("checkpoint"),
            slot_uid=slot.uid,
            # The generation the slot had when the request was made: whoever rewound or cleared
            # meanwhile has gone past it, and this commit loses.
            generation=slot.generation + 1,
            parent_checkpoint_id=slot.checkpoint_id,
            summary=text,
            rendered=render_summary(text),
            first_retained_seq=first_retained_seq,
            source_max_seq=first_retained_seq,
            reason=reason,
            provider=self.model.provider,
            model=self.model.name,
            tokens_before=tokens_before,
            tokens_after=0,
            degraded=False,
            created_at=self.clock.now(),
        )

    async def commit(
        self, checkpoint: Checkpoint, slot: Slot, source: SourceRecord | None = None
    ) -> None:
        """Write the checkpoint, and a marker that tells what its summary was made of."""
        marker = Metadata(
            key="context_compaction",
            value={
                "checkpoint_id": checkpoint.checkpoint_id,
                "reason": checkpoint.reason,
                "first_retained_seq": checkpoint.first_retained_seq,
                "tokens_before": checkpoint.tokens_before,
                "tokens_after": checkpoint.tokens_after,
                "degraded": checkpoint.degraded,
                "source": msgspec.to_builtins(source),
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
        self._log_done(checkpoint, slot)

    def _log_done(self, checkpoint: Checkpoint, slot: Slot) -> None:
        _log.info(
            "compacted session=%s slot=%s checkpoint=%s generation=%s reason=%s before=%s after=%s"
            " first_retained_seq=%s degraded=%s",
            self.recorder.loaded.row.session_id,
            slot.slot_id,
            checkpoint.checkpoint_id,
            checkpoint.generation,
            checkpoint.reason,
            checkpoint.tokens_before,
            checkpoint.tokens_after,
            checkpoint.first_retained_seq,
            checkpoint.degraded,
        )

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

    def _window_of(self, writer: ModelInfo, limits: Limits) -> int:
        """Return the summarising model's window, as small as any limit of it."""
        if writer.spec == self.model.spec:
            return limits.window
        told = (writer.context_window, self.builder.learnt_windows.get(writer.spec))
        # A window that nobody knows is taken as the slot's own: its limits were set with care,
        # 128,000 were not.
        return min((tokens for tokens in told if tokens), default=limits.window)

    async def _summary(
        self,
        plan: CompactionPlan,
        request: SummaryRequest,
        provider: Provider,
        writer: ModelInfo,
        slot: Slot,
    ) -> str:
        side_request = SideRequest(recorder=self.recorder, clock=self.clock, config=self.config)
        try:
            answer = await side_request.ask(
                request, provider, writer, "compaction", slot_uid=slot.uid
            )
        except (ProviderError, SpendingLimitReached) as error:
            raise CompactError(f"The summary failed, nothing changed: {error.message}") from error
        said = answer.strip()
        limit = request.params.max_tokens or MAX_SUMMARY_TOKENS
        refused = judge_summary(said, plan=plan, output_limit=limit)
        if refused:
            raise CompactError(
                f"The summary by {writer.shown} was refused ({refused}); nothing changed."
                " Try again, or set compact_model to a stronger model."
            )
        return said

    def _judged(self, checkpoint: Checkpoint, slot: Slot, threshold: int) -> Checkpoint:
        """Measure what the candidate gives; refuse one that doesn't help."""
        before = checkpoint.tokens_before
        after = self.prepared(slot, checkpoint).info.used
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

    def _room(self, slot: Slot, plan: CompactionPlan, before: ContextInfo, reason: Reason) -> int:
        """Return how many tokens a summary may have; in overflow recovery, so many that it fits.

        A short one is better there than none. Elsewhere the context may grow on, and a tail that
        is long for a while presses no facts out of the summary for good.
        """
        if reason != "overflow":
            return MAX_SUMMARY_TOKENS
        without = self._foreseen(slot, plan.first_retained_seq, 0)
        room = math.floor((before.limits.threshold - without) / before.factor)
        # `factor` maps our estimate to the server's count; what a summary may have is told in ours.
        return max(LEAST_SUMMARY_TOKENS, room)

    def _outcome(self, plan: CompactionPlan, checkpoint: Checkpoint) -> CompactionOutcome:
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

    def _planned(self, slot: Slot, limits: Limits, cut: Cut | None) -> CompactionPlan:
        return plan_compaction(
            self.recorder.loaded.view(slot),
            slot_id=slot.slot_id,
            mode=slot.config.mode,
            checkpoint=self.recorder.loaded.checkpoint_of(slot),
            limits=limits,
            running_turn=self.running_turn,
            cut=cut,
        )

    def _recovery_cut(self, slot: Slot, info: ContextInfo) -> Cut | None:
        """Choose a later cut where what is kept by rule would not fit: a turn, an iteration, or all
        but the running turn. None where it fits.
        """
        limits, loaded = info.limits, self.recorder.loaded
        try:
            usual = self._planned(slot, limits, None).first_retained_seq
        except NothingToCompact:
            usual = 0
        view, spans = loaded.view(slot), loaded.turns(slot, self.running_turn)
        start = bounds_of(view, loaded.checkpoint_of(slot), slot.focus_seq).start

        def weigh(seq: int) -> int:
            behind = sum(event.tokens for event in view.events if start <= event.seq < seq)
            return self._foreseen(slot, seq, info.parts["summary"] + behind)

        def fits(cut: Cut, most: int = limits.threshold) -> bool:
            return weigh(cut.seq) <= most

        if (weigh(usual) if usual else info.used) <= limits.threshold:
            return None
        cuts = recovery_cuts(view, spans, start, self.running_turn)
        later = [cut for cut in cuts if cut.seq > usual]
        newest = newest_complete(view, spans, self.running_turn)
        if newest is None or not later:
            return None
        whole = [cut for cut in later if not cut.is_inside and cut.seq <= newest.first_seq]
        # Inside a turn as much stays as would stay of turns; the latest cut is the least there can
        # be.
        most = min(limits.threshold, weigh(later[-1].seq) + limits.keep)
        inside = [cut for cut in later if cut.is_inside]
        found = [fewest_behind(whole, fits), fewest_behind(inside, lambda cut: fits(cut, most))]
        return next((cut for cut in found if cut is not None and fits(cut)), later[-1])

    def _foreseen(self, slot: Slot, first_retained_seq: int, replaced_tokens: int) -> int:
        """Weigh the request with a summary, a quarter of what it replaces, before a seq.

        The request is built, so that clipped output counts as it will be sent.
        """
        blank = self.candidate(slot, first_retained_seq, "", 0, "manual")
        info = self.prepared(slot, blank).info
        summary = min(replaced_tokens // 4, output_limit_for(info.limits.window))
        return sum(info.parts.values()) + math.ceil(summary * info.factor)
