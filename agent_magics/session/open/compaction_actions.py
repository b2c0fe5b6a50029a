"""What people do about the length of slots: compact them, undo that, carry a summary over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import CompactionError, InputValidation, NothingToCompact
from agent_magics.core.slots import Slot
from agent_magics.session.compaction.compactor import CompactionOutcome, Compactor
from agent_magics.session.compaction.slot_bridge import BridgeOutcome
from agent_magics.session.open.exclusive import exclusive
from agent_magics.session.open.open_session import OpenSession


class CompactionActions:
    """Compacts and bridges the slots of one open session; `Session` says what each raises.

    The lock is held only until the slot is reserved: a summary takes its time, and other slots
    may change meanwhile.
    """

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._reservations = open_session.reservations
        self._models = open_session.models

    @property
    def changing(self) -> asyncio.Lock:
        """What is held while slots are checked and changed."""
        return self._reservations.changing

    async def compact(
        self, slot_id: str | None, *, instructions: str | None, dry_run: bool
    ) -> CompactionOutcome:
        """Put a summary in place of a slot's older turns, or say what that would do."""
        with ExitStack() as reserved:
            async with self.changing:
                slot = self._reservations.writable_slot(slot_id)
                reserved.enter_context(self._reservations.reserve(slot, "a compaction"))
            _, model = await self._models.find(slot)
            compactor = self._compactor(slot, model)
            if dry_run:
                return compactor.foresee(slot)
            return await compactor.compact(
                slot,
                summariser=await self._models.summariser(slot),
                reason="manual",
                instructions=instructions,
            )

    def foresee(self, slot_id: str | None) -> CompactionOutcome | None:
        """Return what a compaction would do now; None where there is nothing it could."""
        slot = self._open_session.loaded.slot(slot_id)
        try:
            return self._compactor(slot, self._models.known(slot)).foresee(slot)
        except CompactionError:
            return None

    @exclusive
    async def undo(self, slot_id: str | None) -> str | None:
        """Go back to the checkpoint before the active one, and return its id."""
        slot = self._reservations.writable_slot(slot_id)
        checkpoint = self._open_session.loaded.checkpoint_of(slot)
        if checkpoint is None:
            raise NothingToCompact(slot.slot_id, "no compaction is active that could be undone")
        change = self._open_session.slot_changes.undo_checkpoint(slot, checkpoint)
        await self._open_session.commit(change)
        return checkpoint.parent_checkpoint_id

    async def bridge(
        self,
        from_slot: str,
        to_slot: str,
        *,
        keys: Sequence[str] | None,
        include_summary: bool,
    ) -> BridgeOutcome:
        """Carry facts and a summary of one slot into another."""
        with ExitStack() as reserved:
            async with self.changing:
                source = self._open_session.loaded.slot(from_slot)
                target = self._reservations.writable_slot(to_slot)
                if source.uid == target.uid:
                    raise InputValidation(f'Slot "{from_slot}" can\'t be bridged to itself.')
                reserved.enter_context(self._reservations.reserve(target, "a bridge"))
            return await self._open_session.compaction.bridges.carry(
                source,
                target,
                keys=keys,
                writer=await self._models.find(source) if include_summary else None,
            )

    def _compactor(self, slot: Slot, model: ModelInfo) -> Compactor:
        hooks = self._open_session.hooks(slot.slot_id)
        return self._open_session.compaction.compactor(model, hooks)
