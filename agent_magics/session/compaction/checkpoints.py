"""Checkpoints of one session: made, measured by those who try them, committed once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import msgspec

from agent_magics.context.compaction import SourceRecord
from agent_magics.context.prompt import render_summary
from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import Metadata
from agent_magics.core.ports import Change, Clock, Ids
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.session.state.recorder import Recorder

Reason = Literal["manual", "auto", "overflow"]
_log = logging.getLogger("agent_magics.session")


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """Makes and commits the checkpoints that one model's requests need."""

    recorder: Recorder
    clock: Clock
    ids: Ids
    model: ModelInfo

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
        """Write the checkpoint, and a marker that says what its summary was made of.

        Raises `CompactionStale` where the slot's generation has changed meanwhile.
        """
        changed = msgspec.structs.replace(
            slot, generation=checkpoint.generation, checkpoint_id=checkpoint.checkpoint_id
        )
        # One transaction: after a crash the slot either has the checkpoint and its marker, or is
        # as it was before.
        await self.recorder.commit(
            Change(
                events=(self.recorder.event(_marker(checkpoint, source), slot_uid=slot.uid),),
                slots=(changed,),
                checkpoint=checkpoint,
                expected_generation={slot.uid: slot.generation},
            )
        )
        self._log_committed(checkpoint, slot)

    def _log_committed(self, checkpoint: Checkpoint, slot: Slot) -> None:
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


def _marker(checkpoint: Checkpoint, source: SourceRecord | None) -> Metadata:
    return Metadata(
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
