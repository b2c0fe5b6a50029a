"""When the context of a slot is compacted by itself, and when not again (docs/decisions.md#36)."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_magics.context.budget import ContextInfo, should_compact
from agent_magics.core.slots import Slot

REST_SHARE = 0.05


@dataclass
class Trigger:
    """The automatic trigger of one open session, and where it rests, by slot."""

    rests_at: dict[str, int] = field(default_factory=dict)

    def is_over(self, info: ContextInfo) -> bool:
        """Return whether a request is over the threshold."""
        return should_compact(info.used, info.limits)

    def wants(self, slot: Slot, info: ContextInfo) -> bool:
        """Return whether a slot is to be compacted now: over the threshold, and not resting."""
        if not self.is_over(info):
            return False
        step = round(info.limits.window * REST_SHARE)
        rests_at = self.rests_at.get(slot.uid)
        # Without a rest, a context that no summary makes smaller would be summarised before every
        # turn, at a price each time.
        if rests_at is not None and abs(info.used - rests_at) < step:
            return False
        return info.tokens_after is None or info.used >= info.tokens_after + step

    def rest(self, slot: Slot, info: ContextInfo) -> None:
        """Let the trigger rest until the window's twentieth part was added, or has gone."""
        self.rests_at[slot.uid] = info.used

    def wake(self, slot: Slot) -> None:
        """Let the trigger act again on a slot that was compacted."""
        self.rests_at.pop(slot.uid, None)
