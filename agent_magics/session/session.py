"""A session: slots, turns and compaction over one ledger, usable from any thread and any loop.

Async methods hop to the session's loop (docs/decisions.md#60); sync ones read there and answer at
once. All state belongs to that loop, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from agent_magics.core.chat import ModelInfo
from agent_magics.core.events import Origin
from agent_magics.core.messages import ContentBlock, UserInput
from agent_magics.core.ports import Change
from agent_magics.core.slots import DeriveStrategy, SlotConfig
from agent_magics.core.turns import Reply, TurnOutcome
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.compaction.slot_bridge import BridgeOutcome
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.open.slot_actions import SlotActions
from agent_magics.session.session_view import SessionView
from agent_magics.session.state.running_turn import CancelToken, RunningTurn, reply_or_raise
from agent_magics.session.state.title import checked_title
from agent_magics.session.turn.session_end import SessionEnd
from agent_magics.session.turn.session_turns import SessionTurns
from agent_magics.threads.loop import on_session_loop, on_session_loop_undoing

Input = str | UserInput | Sequence[ContentBlock]


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

    def __init__(self, open_session: OpenSession) -> None:
        super().__init__(open_session)
        self._slots = SlotActions(open_session)
        self._turns = SessionTurns(open_session)
        self._end = SessionEnd(open_session, self._turns)

    # Turns

    @on_session_loop_undoing(stop)
    async def send_message(
        self,
        message: Input,
        *,
        slot: str | None = None,
        cancel: CancelToken | None = None,
        model: str | None = None,
        origin: Origin | None = None,
    ) -> RunningTurn:
        """Start a turn in a slot (None: the current one) and return its handle at once.

        A cancel that comes too late to keep it from starting stops it.
        Raises, before anything starts: `InputValidation` (blank), `SlotNotFound`, `SlotReadonly`,
        `TurnBusy`, `ModelNotSupported`, `SessionLocked`, `SessionNotFound` (closed).
        """
        return await self._turns.start(
            UserInput.of(message), slot, cancel=cancel, model=model, origin=origin
        )

    @on_session_loop_undoing(stop_all)
    async def send_to(
        self, message: Input, slots: Sequence[str], *, origin: Origin | None = None
    ) -> Mapping[str, RunningTurn]:
        """Start the same prompt in several slots at once; return the handles by slot id.

        Everything is checked before anything is sent: raises as `send_message`, and
        `InputValidation` where no slot is named or one is named twice.
        """
        return await self._turns.start_in(UserInput.of(message), slots, origin=origin)

    @on_session_loop  # whole, so that a cancel finds the turns that were started
    async def fan_out(self, message: Input, slots: Sequence[str]) -> Mapping[str, TurnOutcome]:
        """Run one prompt in several slots at once; return each outcome by slot id.

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
        """Run a turn to its end and return the reply; raises what made it fail or stopped it.

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
        """Wait for a streamed turn's end and return its reply, as often as asked.

        Raises what made it fail; `SlotReadonly` where its slot has become read-only.
        """
        outcome = await turn.join()
        self._read(lambda: self._open_session.reservations.check_writable(turn.slot_uid))
        return reply_or_raise(outcome)

    # Slots

    @on_session_loop
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
        await self._slots.create(slot_id, config or SlotConfig(), replace=replace, origin=origin)

    @on_session_loop
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
        await self._slots.derive(
            slot_id,
            parent_id,
            strategy or DeriveStrategy.full(),
            at_seq=at_seq,
            config=config,
            replace=replace,
            origin=origin,
        )

    @on_session_loop
    async def switch_slot(self, slot_id: str) -> None:
        """Make a slot the current one; turns that run go on where they began."""
        await self._slots.switch(slot_id)

    @on_session_loop
    async def delete_slot(self, slot_id: str) -> None:
        """Take a slot out of every list; what children inherited from it stays.

        Raises `SlotNotFound`, `SlotProtected`, `TurnBusy`.
        """
        await self._slots.delete(slot_id)

    @on_session_loop
    async def restore_slot(self, slot_uid: str) -> None:
        """Take a delete back; `slot_uid` is the deleted slot's uid, whose name must be free.

        It doesn't become current. Raises `SlotAlreadyExists`, `InputValidation`.
        """
        await self._slots.restore(slot_uid)

    @on_session_loop
    async def configure_slot(self, slot_id: str, **settings: Any) -> None:
        """Change settings of a slot by their names in `SlotConfig` (`mode=Readonly()`, ...).

        A tool that `approval` names asks again, also where "always" was answered before.
        Raises `SlotNotFound`, `TurnBusy`, `InputValidation`, `ModelNotSupported`.
        """
        await self._slots.configure(slot_id, settings)

    @on_session_loop
    async def rename_slot(self, slot_id: str, new_id: str) -> None:
        """Change a slot's name. Raises as `create_slot` and `delete_slot` do."""
        await self._slots.rename(slot_id, new_id)

    @on_session_loop
    async def rewind(
        self, slot: str | None = None, *, to_seq: int, undoes: int | None = None
    ) -> int:
        """Take everything after `to_seq` (the end of a turn, or 0) out of a slot's view.

        Nothing leaves the ledger. Returns the seq of the rewind, which `undoes` of a later call
        takes back. Raises `InputValidation`, `SlotReadonly`, `TurnBusy`.
        """
        return await self._slots.rewind(slot, to_seq, undoes)

    @on_session_loop
    async def clear(self, slot: str | None = None) -> int:
        """Take everything out of a slot's view; return the seq, which a rewind may undo."""
        return await self._slots.clear(slot)

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
        return await self._compactions.bridge(
            from_slot, to_slot, keys=keys, include_summary=include_summary
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
        return await self._compactions.compact(slot, instructions=instructions, dry_run=dry_run)

    @on_session_loop
    async def undo_compaction(self, slot: str | None = None) -> str | None:
        """Go back to the checkpoint before the active one (None: to the raw history).

        A new generation; nothing is deleted, and the automatic trigger is held until the slot's
        next turn fits or overflows. Returns the checkpoint that is active now. Raises
        `NothingToCompact` where there is none to undo, `TurnBusy`, `SlotReadonly`.
        """
        return await self._compactions.undo(slot)

    @on_session_loop
    async def set_model(self, spec: str) -> None:
        """Choose the session's model; slots with their own keep it."""
        self._open_session.lifetime.check_open()
        await self._open_session.models.choose(spec)

    @on_session_loop
    async def set_title(self, title: str) -> None:
        """Change the session's title. Raises `InputValidation` on a blank one."""
        await self._open_session.commit(Change(title=checked_title(title)))

    @on_session_loop
    async def describe_model(self, slot: str | None = None) -> ModelInfo:
        """Ask the server about a slot's model, once; what it doesn't tell is None."""
        _, info = await self._open_session.models.find(self._loaded.slot(slot))
        return info

    @on_session_loop
    async def close(self, *, force: bool = False, ends_agent: bool = False) -> None:
        """Stop what runs, record it, give the session back. Closing twice does nothing.

        Raises `PluginAborted` where a plugin keeps it open; it may be closed later. With `force`
        no plugin can. `ends_agent`: it is the agent that is shut down, and the handle
        answers so afterwards (by force a notebook ends one to begin another). Raises
        `InputValidation` where a hook of its own calls this.
        """
        await self._end.close(force=force)
        self._open_session.lifetime.agent_has_ended = ends_agent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
