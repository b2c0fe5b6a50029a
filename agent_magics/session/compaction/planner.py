"""What a compaction would summarise, and how long the request would be after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_magics.context.budget import ContextInfo, Limits
from agent_magics.context.compaction import CompactionPlan, output_limit_for, plan_compaction
from agent_magics.context.cuts import Cut, fewest_behind, newest_complete, recovery_cuts
from agent_magics.context.projection import bounds_of
from agent_magics.core.errors import FixedContextExceedsBudget, NothingToCompact
from agent_magics.core.slots import Slot
from agent_magics.session.compaction.checkpoints import Checkpoints
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.state.loaded import LoadedSession

FIXED_PARTS = ("system", "tools", "skills", "memories", "dynamic")


@dataclass(frozen=True, kw_only=True)
class CompactionPlanner:
    """Plans compactions by the requests that they would give; nothing is asked or written."""

    loaded: LoadedSession
    next_request: NextRequest
    checkpoints: Checkpoints

    def plan(self, slot: Slot, *, in_overflow: bool = False) -> CompactionPlan:
        """Choose what to summarise; `in_overflow`, less may stay than `keep_recent_tokens` says.

        Raises `NothingToCompact`, or `FixedContextExceedsBudget` where what can't shrink is at
        the threshold already.
        """
        info = self.next_request.build(slot).info
        fixed = {name: info.parts[name] for name in FIXED_PARTS}
        if sum(fixed.values()) >= info.limits.threshold:
            raise FixedContextExceedsBudget(fixed, info.limits.threshold, info.limits.larger)
        cut = self._recovery_cut(slot, info) if in_overflow else None
        return self._plan_at(slot, info.limits, cut)

    def tokens_after(self, slot: Slot, first_retained_seq: int, replaced_tokens: int) -> int:
        """Weigh the request with a summary, a quarter of what it replaces, before a seq.

        The request is built, so that clipped output counts as it will be sent.
        """
        blank = self.checkpoints.candidate(slot, first_retained_seq, "", 0, "manual")
        info = self.next_request.build(slot, blank).info
        summary = min(replaced_tokens // 4, output_limit_for(info.limits.window))
        return sum(info.parts.values()) + math.ceil(summary * info.factor)

    def _plan_at(self, slot: Slot, limits: Limits, cut: Cut | None) -> CompactionPlan:
        return plan_compaction(
            self.loaded.view(slot),
            slot_id=slot.slot_id,
            mode=slot.config.mode,
            checkpoint=self.loaded.checkpoint_of(slot),
            limits=limits,
            running_turn=self.next_request.running_turn,
            cut=cut,
        )

    def _recovery_cut(self, slot: Slot, info: ContextInfo) -> Cut | None:
        """Choose a later cut where what is kept by rule would not fit: a turn, an iteration, or all
        but the running turn. None where it fits.
        """
        usual_seq = self._usual_seq(slot, info.limits)
        history = self.loaded.view(slot)
        start = bounds_of(history, self.loaded.checkpoint_of(slot), slot.focus_seq).start

        def weigh(seq: int) -> int:
            behind = sum(event.tokens for event in history.events if start <= event.seq < seq)
            return self.tokens_after(slot, seq, info.parts["summary"] + behind)

        if (weigh(usual_seq) if usual_seq else info.used) <= info.limits.threshold:
            return None
        running_turn = self.next_request.running_turn
        spans = self.loaded.turns(slot, running_turn)
        cuts = recovery_cuts(history, spans, start, running_turn)
        later = [cut for cut in cuts if cut.seq > usual_seq]
        newest = newest_complete(history, spans, running_turn)
        if newest is None or not later:
            return None
        return _first_that_fits(later, newest.first_seq, weigh, info.limits)

    def _usual_seq(self, slot: Slot, limits: Limits) -> int:
        """Return where a compaction cuts by rule; 0 where it would find nothing to summarise."""
        try:
            return self._plan_at(slot, limits, None).first_retained_seq
        except NothingToCompact:
            return 0


def _first_that_fits(
    cuts: Sequence[Cut], newest_seq: int, weigh: Callable[[int], int], limits: Limits
) -> Cut:
    """Choose the first cut that fits, whole turns before iterations; the last where none does."""

    def fits(cut: Cut, most: int = limits.threshold) -> bool:
        return weigh(cut.seq) <= most

    whole = [cut for cut in cuts if not cut.is_inside and cut.seq <= newest_seq]
    # Inside a turn as much stays as would stay of turns; the latest cut is the least there can be.
    most = min(limits.threshold, weigh(cuts[-1].seq) + limits.keep)
    inside = [cut for cut in cuts if cut.is_inside]
    found = [fewest_behind(whole, fits), fewest_behind(inside, lambda cut: fits(cut, most))]
    return next((cut for cut in found if cut is not None and fits(cut)), cuts[-1])
