"""A session: slots, turns and compaction over one ledger, usable from any thread and any loop.

Async methods hop to the session's loop (decision 60); sync ones read there and answer at once. All
state belongs to that loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from agent_magics.context.budget import ContextInfo
from agent_magics.context.view import TurnSpan
from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import InputValidation, NothingToCompact
from agent_magics.core.events import LedgerEvent, Metadata, Origin
from agent_magics.core.messages import ContentBlock, Message, System, UserInput
from agent_magics.core.ports import Change
from agent_magics.core.slots import DeriveStrategy, Slot, SlotConfig, SlotMeta
from agent_magics.core.turns import Reply
from agent_magics.frames import Frames
from agent_magics.session.cells import CellTurn, find_cell_turn
from agent_magics.session.compacting import CompactionOutcome
from agent_magics.session.desk import Desk
from agent_magics.session.listing import list_metas
from agent_magics.session.loop import background_loop, hops
from agent_magics.session.memory import SessionMemory
from agent_magics.session.mirror import is_static
from agent_magics.session.request import Draught
from agent_magics.session.running import CancelToken, RunningTurn, reply_or_raise
from agent_magics.session.slot_changes import static_config

T = TypeVar("T")
P = ParamSpec("P")
Input = str | UserInput | Sequence[ContentBlock]


def one_by_one(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a method that checks slots and then changes them: no other comes between."""

    @functools.wraps(method)
    async def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        session = args[0]
        assert isinstance(session, Session)
        async with session._desk.changing:  # noqa: SLF001 - it decorates methods of that class
            return await method(*args, **kwargs)

    return waiting


class Session:
    """One conversation with its slots. Made by `Agent.new_session` and `Agent.resume_session`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.session_id: str = desk.mirror.row.session_id
        self.memory = SessionMemory(desk.recorder)
        self.frames = Frames(lambda: (self._read(desk.snapshot),))

    def __repr__(self) -> str:
        return f'<session "{self.title or self.session_id}">'

    # What is

    @property
    def title(self) -> str | None:
        return self._desk.mirror.row.title

    @property
    def current_slot(self) -> str:
        """The id of the slot that turns go to."""
        return self._read(lambda: self._desk.mirror.slot(None).slot_id)

    @property
    def model(self) -> str:
        """The session's model, `provider:model`; slots may have their own."""
        return self._read(lambda: self._desk.session_model)

    @property
    def is_readonly(self) -> bool:
        """True where another kernel writes this session."""
        return self._desk.recorder.is_readonly

    @property
    def is_closed(self) -> bool:
        return self._desk.is_closed

    def list_slots(self) -> tuple[SlotMeta, ...]:
        """Describe the slots, oldest first (S8)."""
        return self._read(lambda: list_metas(self._desk.mirror, self._desk.running_ids()))

    def slot_config(self, slot: str | None = None) -> SlotConfig:
        """Give a slot's settings (None: the current slot). Raises `SlotNotFound`."""
        return self._read(lambda: self._desk.mirror.slot(slot).config)

    def turns(self, slot: str | None = None) -> tuple[TurnSpan, ...]:
        """Give the turns in a slot's view, inherited ones included."""
        return self._read(lambda: self._desk.turns(self._desk.mirror.slot(slot)))

    def history(self, slot: str | None = None) -> tuple[LedgerEvent, ...]:
        """Give the events in a slot's view, the raw log: no compaction or focus changes it (C1)."""
        return self._read(lambda: self._desk.mirror.view(self._desk.mirror.slot(slot)).events)

    def messages(self, slot: str | None = None) -> tuple[Message, ...]:
        """Give what the model would see of a slot's history, without the system part."""
        messages = self._draught(slot).request.messages
        return tuple(message for message in messages if not isinstance(message, System))

    def context_info(self, slot: str | None = None) -> ContextInfo:
        """Weigh a slot's next request by part, in tokens (C18)."""
        return self._draught(slot).info

    def next_request(self, slot: str | None = None) -> Draught:
        """Give the request that would be sent now, before the next user message."""
        return self._draught(slot)

    def fates(self, slot: str | None = None) -> dict[int, str]:
        """Tell of every spoken seq of a slot's lineage whether the model sees it.

        "summarised", "retained" or "excluded: <reason>": exactly one each (invariant 1).
        """
        return self._read(lambda: self._desk.builder.fates(self._desk.mirror.slot(slot)))

    def turn_of(self, origin: Origin) -> CellTurn | None:
        """Find the turn in view that a notebook cell made (decision 51)."""
        return self._read(lambda: find_cell_turn(self._desk.mirror, origin))

    def running(self) -> Mapping[str, RunningTurn]:
        """Give the running turns by slot id."""
        return self._read(lambda: {turn.slot_id: turn for turn in self._desk.running.values()})

    def get_conversation_summary(self, slot: str | None = None) -> str | None:
        """Read the newest automatic summary: the session's, or a slot's own (Y3)."""
        key = "conversation_summary" + (f":{slot}" if slot else "")
        return self._read(lambda: self._desk.mirror.memory.get(key))

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on the session's loop after each change; give back how to stop that."""
        return self._desk.recorder.subscribe(listener)

    # Turns

    @hops
    @one_by_one
    async def send_message(
        self,
        message: Input,
        *,
        slot: str | None = None,
        cancel: CancelToken | None = None,
        model: str | None = None,
        origin: Origin | None = None,
    ) -> RunningTurn:
        """Start a turn in a slot (None: the current one) and give its handle at once.

        Raises, before anything starts: `InputValidation` (blank), `SlotNotFound`, `SlotReadonly`,
        `TurnBusy`, `ModelNotSupported`, `SessionLocked`, `SessionNotFound` (closed).
        """
        return await self._desk.start(
            UserInput.of(message), slot_id=slot, cancel=cancel, model=model, origin=origin
        )

    async def submit_turn(self, message: Input, *, slot: str | None = None) -> Reply:
        """Run a turn to its end and give the reply; raises what made it fail or stopped it.

        A cancel stops the turn and waits until that is recorded (D 11).
        """
        turn = await self.send_message(message, slot=slot)
        try:
            return reply_or_raise(await turn.join())
        except asyncio.CancelledError:
            turn.cancel()
            await turn.join()
            raise

    @asynccontextmanager
    async def submit_turn_stream(
        self, message: Input, *, slot: str | None = None
    ) -> AsyncIterator[RunningTurn]:
        """Run a turn whose events the body reads; leaving before its end stops it (S13)."""
        turn = await self.send_message(message, slot=slot)
        try:
            yield turn
        finally:
            if not turn.is_done:
                turn.cancel()
            await turn.join()

    async def finalize_turn(self, turn: RunningTurn) -> Reply:
        """Wait for a streamed turn's end and give its reply, as often as asked.

        Raises what made it fail; `SlotReadonly` where its slot has become read-only (S11).
        """
        outcome = await turn.join()
        self._read(lambda: self._desk.check_writable(turn.slot_uid))
        return reply_or_raise(outcome)

    # Slots

    @hops
    @one_by_one
    async def create_slot(
        self,
        slot_id: str,
        config: SlotConfig | None = None,
        *,
        replace: bool = False,
        origin: Origin | None = None,
    ) -> None:
        """Make an empty slot; it does not become current.

        `replace`: a slot of that name is deleted (its events stay) and the name used again.
        Raises `SlotAlreadyExists`, `InputValidation` (the name), `SlotProtected`.
        """
        settings = static_config(config or SlotConfig())
        self._desk.check_model(settings.model)
        self._desk.check_free(slot_id, replace=replace)
        change = self._desk.slot_changes.create(slot_id, settings, replace=replace, origin=origin)
        await self._desk.commit(change)

    @hops
    @one_by_one
    async def derive_slot(
        self,
        slot_id: str,
        parent_id: str,
        strategy: DeriveStrategy | None = None,
        *,
        at_seq: int | None = None,
        config: SlotConfig | None = None,
        replace: bool = False,
        origin: Origin | None = None,
    ) -> None:
        """Make a slot that sees its parent's history up to a point, in constant time (S6).

        `at_seq` is the last seq of a turn (None: the end of the last finished turn). Raises
        `SlotNotFound`, `SlotAlreadyExists`, `InputValidation` (the name, or an `at_seq` in the
        middle of a turn: it names the two nearest ends).
        """
        parent = self._desk.mirror.slot(parent_id)
        self._desk.check_free(slot_id, replace=replace)
        if config is not None:
            self._desk.check_model(config.model)
        change = self._desk.slot_changes.derive(
            slot_id,
            parent,
            strategy or DeriveStrategy.full(),
            fork_seq=self._desk.fork_seq(parent, at_seq),
            config=config,
            replace=replace,
            origin=origin,
        )
        if is_static(parent):
            change = self._desk.with_imports(change, parent)
        await self._desk.commit(change)

    @hops
    @one_by_one
    async def switch_slot(self, slot_id: str) -> None:
        """Make a slot the current one; turns that run go on where they began (D 7)."""
        await self._desk.commit(self._desk.slot_changes.switch(self._desk.mirror.slot(slot_id)))

    @hops
    @one_by_one
    async def delete_slot(self, slot_id: str) -> None:
        """Take a slot out of every list; what children inherited from it stays (D 17).

        Raises `SlotNotFound`, `SlotProtected`, `TurnBusy`.
        """
        slot = self._desk.idle_slot(slot_id)
        await self._desk.commit(self._desk.slot_changes.delete(slot))

    @hops
    @one_by_one
    async def configure_slot(self, slot_id: str, **settings: Any) -> None:
        """Change settings of a slot by their names in `SlotConfig` (`mode=Readonly()`, ...).

        Raises `SlotNotFound`, `TurnBusy`, `InputValidation`, `ModelNotSupported`.
        """
        slot = self._desk.idle_slot(slot_id)
        self._desk.check_model(settings.get("model"))
        await self._desk.commit(self._desk.slot_changes.configure(slot, settings))

    @hops
    @one_by_one
    async def rename_slot(self, slot_id: str, new_id: str) -> None:
        """Give a slot another name. Raises as `create_slot` and `delete_slot` do."""
        slot = self._desk.idle_slot(slot_id)
        await self._desk.commit(self._desk.slot_changes.rename(slot, new_id))

    @hops
    @one_by_one
    async def rewind(
        self, slot: str | None = None, *, to_seq: int, undoes: int | None = None
    ) -> int:
        """Take everything after `to_seq` (the end of a turn, or 0) out of a slot's view.

        Nothing leaves the ledger. Gives the seq of the rewind, which `undoes` of a later call
        takes back. Raises `InputValidation`, `SlotReadonly`, `TurnBusy`.
        """
        found = self._writable(slot)
        if undoes is None:
            self._desk.check_turn_end(found, to_seq)
        elif self._desk.mirror.undoable(found, undoes) is None:
            raise InputValidation(
                f'seq {undoes} is no rewind or clear of slot "{found.slot_id}"; nothing to undo.'
            )
        events = await self._desk.commit(self._desk.slot_changes.rewind(found, to_seq, undoes))
        return events[0].seq

    @hops
    @one_by_one
    async def clear(self, slot: str | None = None) -> int:
        """Take everything out of a slot's view; gives the seq, which a rewind may undo."""
        found = self._writable(slot)
        events = await self._desk.commit(self._desk.slot_changes.clear(found))
        return events[0].seq

    # Compaction, model, end

    @hops
    async def compact(
        self,
        slot: str | None = None,
        *,
        instructions: str | None = None,
        dry_run: bool = False,
    ) -> CompactionOutcome:
        """Put a summary in place of a slot's older turns; the raw log stays as it is (C14).

        `instructions`: what the summary should keep. `dry_run`: only tell what would be done.
        Raises `NothingToCompact`, `CompactError` (the summary failed or was refused),
        `FixedContextExceedsBudget`, `CompactionStale`, `TurnBusy`, `SlotReadonly`.
        """
        with ExitStack() as kept:
            async with self._desk.changing:
                found = self._writable(slot)
                kept.enter_context(self._desk.doing(found, "a compaction"))
            _, model = await self._desk.model_of(found)
            compactor = self._desk.compactor(model)
            if dry_run:
                return compactor.foresee(found)
            return await compactor.compact(
                found,
                summariser=await self._desk.summariser(found),
                reason="manual",
                instructions=instructions,
            )

    @hops
    @one_by_one
    async def undo_compaction(self, slot: str | None = None) -> str | None:
        """Go back to the checkpoint before the active one (None: to the raw history).

        A new generation; nothing is deleted, and the automatic trigger is held until the slot's
        next turn fits or overflows (D 37). Gives the checkpoint that is active now. Raises
        `NothingToCompact` where there is none to undo, `TurnBusy`, `SlotReadonly`.
        """
        found = self._writable(slot)
        checkpoint = self._desk.mirror.checkpoint_of(found)
        if checkpoint is None:
            raise NothingToCompact(found.slot_id, "no compaction is active that could be undone")
        await self._desk.commit(self._desk.slot_changes.undo_checkpoint(found, checkpoint))
        self._desk.trigger.held.add(found.uid)
        return checkpoint.parent_checkpoint_id

    @hops
    async def set_model(self, spec: str) -> None:
        """Choose the session's model; slots with their own keep it (D 27)."""
        self._desk.check_open()
        self._desk.models.check(spec)
        value = {"model_id": spec, "system_prompt_override": self._desk.prompt_override}
        await self._desk.recorder.append(
            [Metadata(key="session_config", value=value)], slot_uid=None
        )

    @hops
    async def set_title(self, title: str) -> None:
        """Give the session a title. Raises `InputValidation` on a blank one."""
        if not title.strip():
            raise InputValidation("The title is blank; write one.")
        await self._desk.commit(Change(title=title.strip()))

    @hops
    async def describe_model(self, slot: str | None = None) -> ModelInfo:
        """Ask the server about a slot's model, once; what it doesn't tell is None."""
        _, info = await self._desk.model_of(self._desk.mirror.slot(slot))
        return info

    @hops
    async def close(self) -> None:
        """Stop what runs, record it, give the session back. Closing twice does nothing."""
        await self._desk.close()

    def _writable(self, slot_id: str | None) -> Slot:
        slot = self._desk.idle_slot(slot_id)
        self._desk.check_writable(slot.uid)
        return slot

    def _draught(self, slot_id: str | None) -> Draught:
        async def build() -> Draught:
            slot = self._desk.mirror.slot(slot_id)
            _, model = await self._desk.model_of(slot)
            return self._desk.draught(slot, model)

        loop = background_loop()
        if loop.is_here():
            slot = self._desk.mirror.slot(slot_id)
            return self._desk.draught(slot, self._desk.models.known(self._desk.spec_of(slot)))
        return loop.post(build()).result()

    def _read(self, read: Callable[[], T]) -> T:
        loop = background_loop()
        if loop.is_here():
            return read()

        async def reading() -> T:
            return read()

        return loop.post(reading()).result()
