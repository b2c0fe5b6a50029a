"""Requests made shorter without a summary: the last resort of overflow recovery.

Whole turns go first, the oldest before the others, then iterations. What the user said in the
running turn and its newest iteration always stay.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from agent_magics.context.cuts import Cut, fewest_behind, recovery_cuts, running_cuts
from agent_magics.context.degrade import degraded_text
from agent_magics.context.projection import Bounds, bounds_of
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.compaction.checkpoints import Checkpoints
from agent_magics.session.compaction.compactor import Compactor
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.state.loaded import LoadedSession


@dataclass(frozen=True, kw_only=True)
class Shortener:
    """Makes checkpoints that leave out the fewest tokens so that a request fits.

    What it makes gives requests of at most `limit_tokens`, or of the fewest that there can be.
    """

    compactor: Compactor
    loaded: LoadedSession
    next_request: NextRequest
    checkpoints: Checkpoints

    async def degrade(
        self, slot: Slot, limit_tokens: int, admit: Callable[[PreparedRequest], None]
    ) -> Checkpoint | None:
        """Commit a checkpoint without a summary, at a turn or at an iteration of the newest one.

        None where nothing can be left out. Raises what `admit` raises for the request that it is
        made for, and `PluginAborted` where plugins, not yet asked about this recovery, say no.
        """
        made = self._fewest(slot, self._cuts(slot), limit_tokens)
        if made is None:
            return None
        # First the spending limit: giving up turns for a request that may not be sent would lose
        # them for nothing.
        admit(self.next_request.build(slot, made))
        # A failed summary of this recovery has asked them already; a second question could get
        # another answer.
        if not self.compactor.has_leave:
            await self.compactor.ask_leave(slot)
        after = self.next_request.build(slot, made).info.used
        committed = msgspec.structs.replace(made, tokens_after=after)
        await self.checkpoints.commit(committed, slot)
        return committed

    def without_turns(self, slot: Slot, limit_tokens: int) -> Checkpoint | None:
        """Make, uncommitted, a checkpoint that leaves out whole turns only."""
        cuts = [cut for cut in self._cuts(slot) if not cut.is_inside]
        return self._fewest(slot, cuts, limit_tokens)

    def without_iterations(
        self, slot: Slot, limit_tokens: int, *, since: int = 0
    ) -> Checkpoint | None:
        """Make, uncommitted, a checkpoint that leaves out the running turn's oldest iterations too.

        It begins at seq `since` or behind it. None where the turn has only one iteration.
        """
        running = self.next_request.running_turn
        if running is None:
            return None
        start = self._bounds(slot).start
        cuts = running_cuts(self.loaded.view(slot), running, start)
        return self._fewest(slot, [cut for cut in cuts if cut.seq >= since], limit_tokens)

    def _cuts(self, slot: Slot) -> list[Cut]:
        running = self.next_request.running_turn
        spans = self.loaded.turns(slot, running)
        return recovery_cuts(self.loaded.view(slot), spans, self._bounds(slot).start, running)

    def _fewest(self, slot: Slot, cuts: Sequence[Cut], limit_tokens: int) -> Checkpoint | None:
        before = self.next_request.build(slot).info

        def fits(cut: Cut) -> bool:
            made = self._omitting(slot, cut, before.used)
            return self.next_request.build(slot, made).info.used <= limit_tokens

        cut = fewest_behind(cuts, fits)
        if cut is None:
            return None
        made = self._omitting(slot, cut, before.used)
        after = self.next_request.build(slot, made).info
        # Only now the old summary goes, as it may be the largest part that is left.
        if after.used > before.limits.window:
            made = self._omitting(slot, cut, before.used, keeps_summary=False)
            after = self.next_request.build(slot, made).info
        # The notice has a weight of its own; where little is left out the request gets longer.
        return made if after.estimate < before.estimate else None

    def _omitting(
        self, slot: Slot, cut: Cut, tokens_before: int, *, keeps_summary: bool = True
    ) -> Checkpoint:
        """Make the checkpoint of a cut; where not even that fits, the summary before goes too."""
        bounds = self._bounds(slot)
        earlier = bounds.checkpoint if keeps_summary else None
        spans = self.loaded.turns(slot)
        behind = bisect_left(spans, cut.seq, key=lambda span: span.last_seq)
        known = bisect_left(spans, bounds.start, key=lambda span: span.last_seq) if earlier else 0
        is_running = cut.is_inside and spans[behind].turn_id == self.next_request.running_turn
        text = degraded_text(
            behind - known,
            earlier.summary if earlier else "",
            inside=("this turn" if is_running else "an older turn") if cut.is_inside else None,
            iterations=cut.iterations,
        )
        made = self.checkpoints.candidate(slot, cut.seq, text, tokens_before, "overflow")
        return msgspec.structs.replace(made, degraded=True)

    def _bounds(self, slot: Slot) -> Bounds:
        checkpoint = self.loaded.checkpoint_of(slot)
        return bounds_of(self.loaded.view(slot), checkpoint, slot.focus_seq)
