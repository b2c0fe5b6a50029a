"""What people do with slots: each action checks, then commits one change."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import Origin
from agent_magics.core.slots import DeriveStrategy, SlotConfig
from agent_magics.session.open.exclusive import exclusive
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.slots.changes import static_config
from agent_magics.session.slots.turn_ends import check_turn_end, fork_seq


class SlotActions:
    """Makes, changes and ends the slots of one open session; `Session` says what each raises."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._loaded = open_session.loaded
        self._reservations = open_session.reservations
        self._models = open_session.models
        self._changes = open_session.slot_changes

    @property
    def changing(self) -> asyncio.Lock:
        """What is held while slots are checked and changed."""
        return self._reservations.changing

    @exclusive
    async def create(
        self, slot_id: str, config: SlotConfig, *, replace: bool, origin: Origin | None
    ) -> None:
        """Make an empty slot."""
        settings = static_config(config)
        self._models.check(settings.model)
        self._reservations.check_free(slot_id, replace=replace)
        change = self._changes.create(slot_id, settings, replace=replace, origin=origin)
        await self._open_session.commit(change)

    @exclusive
    async def derive(
        self,
        slot_id: str,
        parent_id: str,
        strategy: DeriveStrategy,
        *,
        at_seq: int | None,
        config: SlotConfig | None,
        replace: bool,
        origin: Origin | None,
    ) -> None:
        """Make a slot that sees its parent's history up to `at_seq`."""
        parent = self._loaded.slot(parent_id)
        self._reservations.check_free(slot_id, replace=replace)
        if config is not None:
            self._models.check(config.model)
        running_turn = self._reservations.running_id(parent)
        change = self._changes.derive(
            slot_id,
            parent,
            strategy,
            fork_seq=fork_seq(self._loaded, parent, at_seq, running_turn),
            config=config,
            replace=replace,
            origin=origin,
        )
        await self._open_session.commit(change)

    @exclusive
    async def switch(self, slot_id: str) -> None:
        """Make a slot the current one."""
        await self._open_session.commit(self._changes.switch(self._loaded.slot(slot_id)))
        self._open_session.switches += 1

    @exclusive
    async def delete(self, slot_id: str) -> None:
        """Take a slot out of every list."""
        slot = self._reservations.idle_slot(slot_id)
        await self._open_session.commit(self._changes.delete(slot))

    @exclusive
    async def restore(self, slot_uid: str) -> None:
        """Take a delete back."""
        await self._open_session.commit(self._changes.restore(slot_uid))

    @exclusive
    async def configure(self, slot_id: str, settings: dict[str, Any]) -> None:
        """Change settings by their names; tools whose approval is settled anew ask again."""
        slot = self._reservations.idle_slot(slot_id)
        self._models.check(settings.get("model"))
        await self._open_session.commit(self._changes.configure(slot, settings))
        self._open_session.approvals.forget(settings.get("approval", ()))

    @exclusive
    async def rename(self, slot_id: str, new_id: str) -> None:
        """Change a slot's name."""
        slot = self._reservations.idle_slot(slot_id)
        await self._open_session.commit(self._changes.rename(slot, new_id))

    @exclusive
    async def rewind(self, slot_id: str | None, to_seq: int, undoes: int | None) -> int:
        """Take everything after `to_seq` out of a slot's view; return the seq of the rewind."""
        slot = self._reservations.writable_slot(slot_id)
        if undoes is None:
            check_turn_end(self._loaded, slot, to_seq, self._reservations.running_id(slot))
        elif self._loaded.undoable(slot, undoes) is None:
            raise InputValidation(
                f'seq {undoes} is no rewind or clear of slot "{slot.slot_id}"; nothing to undo.'
            )
        events = await self._open_session.commit(self._changes.rewind(slot, to_seq, undoes))
        return events[0].seq

    @exclusive
    async def clear(self, slot_id: str | None) -> int:
        """Take everything out of a slot's view; return the seq of that."""
        slot = self._reservations.writable_slot(slot_id)
        events = await self._open_session.commit(self._changes.clear(slot))
        return events[0].seq
