"""What an operation on slots writes, as one change each; nothing here writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_magics.context.projection import project
from agent_magics.context.view import SlotHistory
from agent_magics.core.errors import (
    InputValidation,
    SlotAlreadyExists,
    SlotProtected,
    SlotReadonly,
)
from agent_magics.core.events import (
    Clear,
    Imported,
    Metadata,
    NewEvent,
    Origin,
    Payload,
    Rewind,
    SlotChanged,
)
from agent_magics.core.ports import Change, Clock, Ids
from agent_magics.core.slots import (
    DEFAULT_SLOT,
    Checkpoint,
    Derived,
    DeriveStrategy,
    Full,
    New,
    Readonly,
    Slot,
    SlotConfig,
    Static,
    check_slot_config,
    check_slot_id,
)
from agent_magics.session.slots.checkpoint_choice import CheckpointChoice
from agent_magics.session.slots.summary_overrides import override_after
from agent_magics.session.state.loaded import LoadedSession, is_static

MakeEvent = Callable[..., NewEvent]


class SlotChanges:
    """Makes changes from the loaded session as it stands; the recorder commits them."""

    def __init__(
        self, loaded: LoadedSession, make_event: MakeEvent, clock: Clock, ids: Ids
    ) -> None:
        self._loaded = loaded
        self._make_event = make_event
        self._clock = clock
        self._ids = ids
        self._choice = CheckpointChoice(loaded)

    def create(
        self, slot_id: str, config: SlotConfig, *, replace: bool, origin: Origin | None
    ) -> Change:
        """Make an empty slot (source `New`, or `Static` ones kept out of the store)."""
        removed, events = self._make_room(slot_id, replace=replace, origin=origin)
        slot = self._new_slot(slot_id, config)
        created = SlotChanged(action="created", slot_id=slot_id, config=config, origin=origin)
        events.append(self._make_event(created, slot_uid=slot.uid))
        return Change(events=tuple(events), slots=(*removed, slot), **self._current(removed, slot))

    def derive(
        self,
        slot_id: str,
        parent: Slot,
        strategy: DeriveStrategy,
        *,
        fork_seq: int,
        config: SlotConfig | None,
        replace: bool,
        origin: Origin | None,
    ) -> Change:
        """Make a child that sees its parent's lineage up to `fork_seq` (constant time)."""
        if replace and slot_id == parent.slot_id:
            raise InputValidation(f'Slot "{slot_id}" can\'t be derived from itself.')
        removed, events = self._make_room(slot_id, replace=replace, origin=origin)
        made = check_slot_config(self._child_config(parent, strategy, config))
        assert isinstance(made.source, Derived)
        strategy = made.source.strategy
        child = msgspec.structs.replace(
            self._new_slot(slot_id, made),
            # A static parent isn't stored: the child has its messages as events of its own.
            parent_uid=None if is_static(parent) else parent.uid,
            fork_seq=fork_seq,
            focus_seq=self._focus_seq(parent, strategy, fork_seq),
        )
        # The parent's row, not a copy: a checkpoint is never changed, and names what it sums up by
        # seq.
        slot = msgspec.structs.replace(child, checkpoint_id=self._choice.for_child(parent, child))
        derived = SlotChanged(
            action="derived",
            slot_id=slot_id,
            config=made,
            parent_id=parent.slot_id,
            fork_seq=fork_seq,
            origin=origin,
        )
        events.append(self._make_event(derived, slot_uid=slot.uid))
        events += self._imports(parent, slot)
        return Change(events=tuple(events), slots=(*removed, slot), **self._current(removed, slot))

    def _imports(self, parent: Slot, child: Slot) -> list[NewEvent]:
        """Write a static slot's messages into its child: the only copy there is."""
        if not isinstance(parent.config.source, Static):
            return []
        return [
            self._make_event(Imported(message=message), slot_uid=child.uid)
            for message in parent.config.source.messages
        ]

    def switch(self, slot: Slot) -> Change:
        """Make `slot` the current one."""
        event = SlotChanged(action="switched", slot_id=slot.slot_id)
        return Change(
            events=(self._make_event(event, slot_uid=slot.uid),), current_slot_uid=slot.uid
        )

    def delete(self, slot: Slot) -> Change:
        """Mark a slot deleted; where it is the current one, `default` becomes current."""
        if slot.slot_id == DEFAULT_SLOT:
            raise SlotProtected(slot.slot_id, "it is the session's anchor")
        if len(self._loaded.living) <= 1:
            raise SlotProtected(slot.slot_id, "it is the last one")
        gone = msgspec.structs.replace(slot, deleted=True)
        event = self._make_event(
            SlotChanged(action="deleted", slot_id=slot.slot_id), slot_uid=slot.uid
        )
        is_current = slot.uid == self._loaded.current_uid
        # `default` can't be deleted, so there is always one to fall back on.
        anchor = self._loaded.living[DEFAULT_SLOT].uid
        return Change(
            events=(event,), slots=(gone,), current_slot_uid=anchor if is_current else None
        )

    def restore(self, slot_uid: str) -> Change:
        """Take a delete back: the slot is there as it was, under its name if that is free."""
        slot = self._loaded.slots.get(slot_uid)
        if slot is None or not slot.deleted:
            raise InputValidation(f"{slot_uid!r} is no deleted slot of this session.")
        if slot.slot_id in self._loaded.living:
            raise SlotAlreadyExists(slot.slot_id)
        restored = msgspec.structs.replace(slot, deleted=False)
        event = SlotChanged(action="restored", slot_id=slot.slot_id, config=slot.config)
        return Change(events=(self._make_event(event, slot_uid=slot.uid),), slots=(restored,))

    def configure(self, slot: Slot, settings: dict[str, Any]) -> Change:
        """Change some settings of a slot; raises `InputValidation` on an unknown one."""
        settable = [name for name in SlotConfig.__struct_fields__ if name != "source"]
        unknown = sorted(set(settings).difference(settable))
        if unknown:
            raise InputValidation(
                f"A slot has no setting {unknown[0]!r}; it has {', '.join(settable)}."
            )
        if is_static(slot) and not isinstance(settings.get("mode", Readonly()), Readonly):
            raise SlotReadonly(slot.slot_id)
        config = check_slot_config(msgspec.structs.replace(slot.config, **settings))
        changed = msgspec.structs.replace(slot, config=config)
        event = SlotChanged(action="configured", slot_id=slot.slot_id, config=config)
        return Change(events=(self._make_event(event, slot_uid=slot.uid),), slots=(changed,))

    def rename(self, slot: Slot, new_id: str) -> Change:
        """Change a slot's name."""
        if slot.slot_id == DEFAULT_SLOT:
            raise SlotProtected(slot.slot_id, "it is the session's anchor", deed="renamed")
        check_slot_id(new_id)
        if new_id in self._loaded.living:
            raise SlotAlreadyExists(new_id)
        renamed = msgspec.structs.replace(slot, slot_id=new_id)
        event = SlotChanged(action="renamed", slot_id=new_id, previous_id=slot.slot_id)
        return Change(events=(self._make_event(event, slot_uid=slot.uid),), slots=(renamed,))

    def rewind(self, slot: Slot, to_seq: int, undoes: int | None) -> Change:
        """Take everything after `to_seq` out of the slot's view."""
        rewind = Rewind(to_seq=to_seq, undoes=undoes, left_checkpoint_id=slot.checkpoint_id)
        undone = self._loaded.undoable(slot, undoes)
        view = self._choice.view_after(slot, rewind)
        if undone is None:
            kept = self._choice.after_rewind(slot, to_seq)
        else:
            kept = self._choice.after_undo(undone, view)
        return self._view_change(slot, rewind, kept, view)

    def clear(self, slot: Slot) -> Change:
        """Take everything out of the slot's view."""
        nothing = SlotHistory(slot_uid=slot.uid, events=())
        cleared = Clear(left_checkpoint_id=slot.checkpoint_id)
        return self._view_change(slot, cleared, None, nothing)

    def undo_checkpoint(self, slot: Slot, checkpoint: Checkpoint) -> Change:
        """Make the checkpoint before the active one active again."""
        parent = checkpoint.parent_checkpoint_id
        undone = {"undone": checkpoint.checkpoint_id, "checkpoint_id": parent}
        return self._view_change(slot, Metadata(key="context_compaction", value=undone), parent)

    def _view_change(
        self,
        slot: Slot,
        payload: Payload,
        checkpoint_id: str | None,
        view: SlotHistory | None = None,
    ) -> Change:
        """Write what changes a view; `view` is what it becomes where events come or go."""
        events = [self._make_event(payload, slot_uid=slot.uid)]
        turn_id = None
        if view is not None:
            slot, turn_id = override_after(self._loaded, slot, view)
        if turn_id is not None:
            told = SlotChanged(action="configured", slot_id=slot.slot_id, config=slot.config)
            events.append(self._make_event(told, slot_uid=slot.uid, turn_id=turn_id))
        changed = msgspec.structs.replace(
            slot, generation=slot.generation + 1, checkpoint_id=checkpoint_id
        )
        return Change(
            events=tuple(events),
            slots=(changed,),
            expected_generation={slot.uid: slot.generation},
        )

    def _make_room(
        self, slot_id: str, *, replace: bool, origin: Origin | None
    ) -> tuple[tuple[Slot, ...], list[NewEvent]]:
        check_slot_id(slot_id)
        existing = self._loaded.living.get(slot_id)
        if existing is None:
            return (), []
        if not replace:
            raise SlotAlreadyExists(slot_id)
        if slot_id == DEFAULT_SLOT:
            raise SlotProtected(slot_id, "it is the session's anchor")
        gone = SlotChanged(action="deleted", slot_id=slot_id, origin=origin)
        event = self._make_event(gone, slot_uid=existing.uid)
        return (msgspec.structs.replace(existing, deleted=True),), [event]

    def _current(self, removed: tuple[Slot, ...], slot: Slot) -> dict[str, Any]:
        """A slot that takes the place of the current one is current."""
        if any(gone.uid == self._loaded.current_uid for gone in removed):
            return {"current_slot_uid": slot.uid}
        return {}

    def _new_slot(self, slot_id: str, config: SlotConfig) -> Slot:
        return Slot(
            uid=self._ids.new("slot"),
            slot_id=slot_id,
            config=config,
            created_at=self._clock.now(),
        )

    def _child_config(
        self, parent: Slot, strategy: DeriveStrategy, config: SlotConfig | None
    ) -> SlotConfig:
        base = config or parent.config
        return msgspec.structs.replace(
            base,
            mode=strategy.kept or Full(),
            source=Derived(parent_id=parent.slot_id, strategy=strategy),
        )

    def _focus_seq(self, parent: Slot, strategy: DeriveStrategy, fork_seq: int) -> int | None:
        """Find the first inherited seq of a focused derive; nothing before it is ever seen."""
        if strategy.kept is None:
            return parent.focus_seq
        view = self._loaded.view(parent)
        events = tuple(event for event in view.events if event.seq <= fork_seq)
        inherited = msgspec.structs.replace(view, events=events)
        spoken_only = msgspec.structs.replace(strategy.kept, keep_system=False)
        kept = project(
            inherited,
            mode=spoken_only,
            checkpoint=self._loaded.checkpoint_of(parent),
            focus_seq=parent.focus_seq,
        )
        seqs = [message.seq for message in kept.messages if message.seq is not None]
        return min(seqs, default=fork_seq + 1)


def static_config(config: SlotConfig) -> SlotConfig:
    """Check settings; a slot of given messages is always read-only."""
    config = check_slot_config(config)
    if isinstance(config.source, Static):
        return msgspec.structs.replace(config, mode=Readonly())
    if isinstance(config.source, Derived):
        raise InputValidation("A derived slot is made with derive_slot, not with create_slot.")
    return msgspec.structs.replace(config, source=New())
