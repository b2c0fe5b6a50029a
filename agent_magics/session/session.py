"""A session: slots, turns and compaction over one ledger, usable from any thread and any loop.

Async methods hop to the session's loop (docs/decisions.md#60); sync ones read there and answer at
once. All state belongs to that loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import InputValidation, NothingToCompact
from agent_magics.core.events import Metadata, Origin
from agent_magics.core.messages import ContentBlock, UserInput
from agent_magics.core.ports import Change
from agent_magics.core.slots import DeriveStrategy, Slot, SlotConfig
from agent_magics.core.turns import Reply, TurnOutcome
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.compaction.slot_bridge import BridgeOutcome
from agent_magics.session.session_view import SessionView
from agent_magics.session.slots.changes import static_config
from agent_magics.session.state.loaded import is_static
from agent_magics.session.state.running_turn import CancelToken, RunningTurn, reply_or_raise
from agent_magics.threads.loop import on_session_loop, on_session_loop_undoing

T = TypeVar("T")
P = ParamSpec("P")
Input = str | UserInput | Sequence[ContentBlock]


def exclusive(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a method that checks slots and then changes them: no other comes between."""

    @functools.wraps(method)
    async def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        session = args[0]
        assert isinstance(session, Session)
        async with session._open_session.changing:  # noqa: SLF001 - it decorates methods of that class
            return await method(*args, **kwargs)

    return waiting


def checked_title(title: str) -> str:
    """Return a title as it is kept; raise `InputValidation` on a blank one."""
    if not title.strip():
        raise InputValidation("The title is blank; write one.")
    return title.strip()


async def stop(turn: RunningTurn) -> None:
    """Stop a turn and wait until that is recorded."""
    await stop_all({turn.slot_id: turn})


async def stop_all(turns: Mapping[str, RunningTurn]) -> None:
    """Stop turns, by slot id, and wait until that is recorded."""
    for turn in turns.values():
        turn.cancel()
    await asyncio.gather(*(turn.join() for turn in turns.values()))


class Session(SessionView):
    """One conversation with its slots. Made by `Agent.new_session` and `Agent.resume_session`."""

    # Turns

    @on_session_loop_undoing(stop)
    @exclusive
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

        A cancel that comes too late to keep it from starting stops it.
        Raises, before anything starts: `InputValidation` (blank), `SlotNotFound`, `SlotReadonly`,
        `TurnBusy`, `ModelNotSupported`, `SessionLocked`, `SessionNotFound` (closed).
        """
        return await self._open_session.start(
            UserInput.of(message), slot_id=slot, cancel=cancel, model=model, origin=origin
        )

    @on_session_loop_undoing(stop_all)
    @exclusive
    async def send_to(
        self, message: Input, slots: Sequence[str], *, origin: Origin | None = None
    ) -> Mapping[str, RunningTurn]:
        """Start the same prompt in several slots at once; give the handles by slot id.

        Everything is checked before anything is sent: raises as `send_message`, and
        `InputValidation` where no slot is named or one is named twice.
        """
        given = UserInput.of(message)
        # All of them first: a request that was sent can't be taken back because the next slot is
        # busy.
        self._open_session.check_startable(slots)
        return {
            slot: await self._open_session.start(given, slot_id=slot, origin=origin)
            for slot in slots
        }

    @on_session_loop  # whole, so that a cancel finds the turns that were started
    async def fan_out(self, message: Input, slots: Sequence[str]) -> Mapping[str, TurnOutcome]:
        """Run one prompt in several slots at once; give each outcome by slot id.

        A failure in one slot is its outcome and stops no other. A cancel stops them all and waits
        until that is recorded. Raises as `send_to`.
        """
        turns = await self.send_to(message, slots)
        waiting = asyncio.gather(*(turn.join() for turn in turns.values()))
        try:
            # Unshielded, a cancel would cancel the waits, and nobody would know when the turns have
            # stopped.
            outcomes = await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await stop_all(turns)
            raise
        return dict(zip(turns, outcomes, strict=True))

    @on_session_loop  # whole, so that a cancel finds the turn that was started
    async def submit_turn(self, message: Input, *, slot: str | None = None) -> Reply:
        """Run a turn to its end and give the reply; raises what made it fail or stopped it.

        A cancel stops the turn and waits until that is recorded.
        """
        turn = await self.send_message(message, slot=slot)
        try:
            return reply_or_raise(await turn.join())
        except asyncio.CancelledError:
            await stop(turn)
            raise

    @asynccontextmanager
    async def submit_turn_stream(
        self, message: Input, *, slot: str | None = None
    ) -> AsyncIterator[RunningTurn]:
        """Run a turn whose events the body reads; leaving before its end stops it."""
        turn = await self.send_message(message, slot=slot)
        try:
            yield turn
        finally:
            if not turn.is_done:
                turn.cancel()
            await turn.join()

    async def finalize_turn(self, turn: RunningTurn) -> Reply:
        """Wait for a streamed turn's end and give its reply, as often as asked.

        Raises what made it fail; `SlotReadonly` where its slot has become read-only.
        """
        outcome = await turn.join()
        self._read(lambda: self._open_session.check_writable(turn.slot_uid))
        return reply_or_raise(outcome)

    # Slots

    @on_session_loop
    @exclusive
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
        self._open_session.check_model(settings.model)
        self._open_session.check_free(slot_id, replace=replace)
        change = self._open_session.slot_changes.create(
            slot_id, settings, replace=replace, origin=origin
        )
        await self._open_session.commit(change)

    @on_session_loop
    @exclusive
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
        """Make a slot that sees its parent's history up to a point, in constant time.

        `at_seq` is the last seq of a turn (None: the end of the last finished turn). Raises
        `SlotNotFound`, `SlotAlreadyExists`, `InputValidation` (the name, or an `at_seq` in the
        middle of a turn: it names the two nearest ends).
        """
        parent = self._open_session.loaded.slot(parent_id)
        self._open_session.check_free(slot_id, replace=replace)
        if config is not None:
            self._open_session.check_model(config.model)
        change = self._open_session.slot_changes.derive(
            slot_id,
            parent,
            strategy or DeriveStrategy.full(),
            fork_seq=self._open_session.fork_seq(parent, at_seq),
            config=config,
            replace=replace,
            origin=origin,
        )
        if is_static(parent):
            change = self._open_session.with_imports(change, parent)
        await self._open_session.commit(change)

    @on_session_loop
    @exclusive
    async def switch_slot(self, slot_id: str) -> None:
        """Make a slot the current one; turns that run go on where they began."""
        await self._open_session.commit(
            self._open_session.slot_changes.switch(self._open_session.loaded.slot(slot_id))
        )
        # Counted: a notebook tells by it whether a person chose the slot or a resume did.
        self._open_session.switches += 1

    @on_session_loop
    @exclusive
    async def delete_slot(self, slot_id: str) -> None:
        """Take a slot out of every list; what children inherited from it stays.

        Raises `SlotNotFound`, `SlotProtected`, `TurnBusy`.
        """
        slot = self._open_session.idle_slot(slot_id)
        await self._open_session.commit(self._open_session.slot_changes.delete(slot))

    @on_session_loop
    @exclusive
    async def restore_slot(self, slot_uid: str) -> None:
        """Take a delete back; `slot_uid` is the deleted slot's uid, whose name must be free.

        It doesn't become current. Raises `SlotAlreadyExists`, `InputValidation`.
        """
        await self._open_session.commit(self._open_session.slot_changes.restore(slot_uid))

    @on_session_loop
    @exclusive
    async def configure_slot(self, slot_id: str, **settings: Any) -> None:
        """Change settings of a slot by their names in `SlotConfig` (`mode=Readonly()`, ...).

        A tool that `approval` names asks again, also where "always" was answered before.
        Raises `SlotNotFound`, `TurnBusy`, `InputValidation`, `ModelNotSupported`.
        """
        slot = self._open_session.idle_slot(slot_id)
        self._open_session.check_model(settings.get("model"))
        await self._open_session.commit(self._open_session.slot_changes.configure(slot, settings))
        self._open_session.approvals.forget(settings.get("approval", ()))

    @on_session_loop
    @exclusive
    async def rename_slot(self, slot_id: str, new_id: str) -> None:
        """Give a slot another name. Raises as `create_slot` and `delete_slot` do."""
        slot = self._open_session.idle_slot(slot_id)
        await self._open_session.commit(self._open_session.slot_changes.rename(slot, new_id))

    @on_session_loop
    @exclusive
    async def rewind(
        self, slot: str | None = None, *, to_seq: int, undoes: int | None = None
    ) -> int:
        """Take everything after `to_seq` (the end of a turn, or 0) out of a slot's view.

        Nothing leaves the ledger. Gives the seq of the rewind, which `undoes` of a later call
        takes back. Raises `InputValidation`, `SlotReadonly`, `TurnBusy`.
        """
        found = self._writable(slot)
        if undoes is None:
            self._open_session.check_turn_end(found, to_seq)
        elif self._open_session.loaded.undoable(found, undoes) is None:
            raise InputValidation(
                f'seq {undoes} is no rewind or clear of slot "{found.slot_id}"; nothing to undo.'
            )
        events = await self._open_session.commit(
            self._open_session.slot_changes.rewind(found, to_seq, undoes)
        )
        return events[0].seq

    @on_session_loop
    @exclusive
    async def clear(self, slot: str | None = None) -> int:
        """Take everything out of a slot's view; gives the seq, which a rewind may undo."""
        found = self._writable(slot)
        events = await self._open_session.commit(self._open_session.slot_changes.clear(found))
        return events[0].seq

    @on_session_loop
    async def bridge(
        self,
        from_slot: str,
        to_slot: str,
        *,
        keys: Sequence[str] | None = None,
        include_summary: bool = True,
    ) -> BridgeOutcome:
        """Carry facts and a summary of one slot into another as one reference message.

        `keys` None: the facts that were last written from the source. The summary is the newest
        there is, else one call asks for it. Raises `InputValidation` (the same slot, an unknown
        key, nothing to carry), `SlotNotFound`, `SlotReadonly` and `TurnBusy` of the target.
        """
        with ExitStack() as kept:
            async with self._open_session.changing:
                source = self._open_session.loaded.slot(from_slot)
                target = self._writable(to_slot)
                if source.uid == target.uid:
                    raise InputValidation(f'Slot "{from_slot}" can\'t be bridged to itself.')
                kept.enter_context(self._open_session.doing(target, "a bridge"))
            return await self._open_session.bridges.carry(
                source,
                target,
                keys=keys,
                writer=await self._open_session.model_of(source) if include_summary else None,
            )

    # Compaction, model, end

    @on_session_loop
    async def compact(
        self,
        slot: str | None = None,
        *,
        instructions: str | None = None,
        dry_run: bool = False,
    ) -> CompactionOutcome:
        """Put a summary in place of a slot's older turns; the raw log stays as it is.

        `instructions`: what the summary should keep. `dry_run`: only tell what would be done.
        Raises `NothingToCompact`, `CompactError` (the summary failed or was refused),
        `FixedContextExceedsBudget`, `CompactionStale`, `PluginAborted`, `TurnBusy`,
        `SlotReadonly`.
        """
        with ExitStack() as kept:
            async with self._open_session.changing:
                found = self._writable(slot)
                kept.enter_context(self._open_session.doing(found, "a compaction"))
            _, model = await self._open_session.model_of(found)
            compactor = self._open_session.compactor(model, self._open_session.hooks(found.slot_id))
            if dry_run:
                return compactor.foresee(found)
            return await compactor.compact(
                found,
                summariser=await self._open_session.summariser(found),
                reason="manual",
                instructions=instructions,
            )

    @on_session_loop
    @exclusive
    async def undo_compaction(self, slot: str | None = None) -> str | None:
        """Go back to the checkpoint before the active one (None: to the raw history).

        A new generation; nothing is deleted, and the automatic trigger is held until the slot's
        next turn fits or overflows. Gives the checkpoint that is active now. Raises
        `NothingToCompact` where there is none to undo, `TurnBusy`, `SlotReadonly`.
        """
        found = self._writable(slot)
        checkpoint = self._open_session.loaded.checkpoint_of(found)
        if checkpoint is None:
            raise NothingToCompact(found.slot_id, "no compaction is active that could be undone")
        await self._open_session.commit(
            self._open_session.slot_changes.undo_checkpoint(found, checkpoint)
        )
        return checkpoint.parent_checkpoint_id

    @on_session_loop
    async def set_model(self, spec: str) -> None:
        """Choose the session's model; slots with their own keep it."""
        self._open_session.check_open()
        self._open_session.models.check(spec)
        value = {"model_id": spec, "system_prompt_override": self._open_session.prompt_override}
        await self._open_session.recorder.append(
            [Metadata(key="session_config", value=value)], slot_uid=None
        )

    @on_session_loop
    async def set_title(self, title: str) -> None:
        """Give the session a title. Raises `InputValidation` on a blank one."""
        await self._open_session.commit(Change(title=checked_title(title)))

    @on_session_loop
    async def describe_model(self, slot: str | None = None) -> ModelInfo:
        """Ask the server about a slot's model, once; what it doesn't tell is None."""
        _, info = await self._open_session.model_of(self._open_session.loaded.slot(slot))
        return info

    @on_session_loop
    async def close(self, *, force: bool = False, ends_agent: bool = False) -> None:
        """Stop what runs, record it, give the session back. Closing twice does nothing.

        Raises `PluginAborted` where a plugin keeps it open; it may be closed later. With `force`
        no plugin can. `ends_agent`: it is the agent that is shut down, and the handle
        answers so afterwards (by force a notebook ends one to begin another). Raises
        `InputValidation` where a hook of its own calls this.
        """
        await self._open_session.close(force=force)
        self._open_session.agent_has_ended = ends_agent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _writable(self, slot_id: str | None) -> Slot:
        slot = self._open_session.idle_slot(slot_id)
        self._open_session.check_writable(slot.uid)
        return slot
