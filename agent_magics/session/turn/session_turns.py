"""The turns of one open session: checked, started, steered, stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agent_magics.core.errors import AgentError, InputValidation
from agent_magics.core.events import Origin, UserMessage
from agent_magics.core.messages import UserInput
from agent_magics.core.slots import Slot
from agent_magics.core.turns import Failed, Panicked
from agent_magics.session.open.exclusive import exclusive
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.state.running_turn import CancelToken, RunningTurn
from agent_magics.session.turn.turn_start import TurnStart

STOP_PATIENCE_S = 0.9  # twice, and the release: within 2 s


class SessionTurns:
    """Starts turns as tasks of the session's loop, and stops them all at its end."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._reservations = open_session.reservations
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def changing(self) -> asyncio.Lock:
        """What is held while slots are checked and changed."""
        return self._reservations.changing

    @exclusive
    async def start(
        self,
        given: UserInput,
        slot_id: str | None,
        *,
        cancel: CancelToken | None,
        model: str | None,
        origin: Origin | None,
    ) -> RunningTurn:
        """Start a turn and return its handle at once."""
        return self._start(given, slot_id, cancel=cancel, model=model, origin=origin)

    @exclusive
    async def start_in(
        self, given: UserInput, slot_ids: Sequence[str], *, origin: Origin | None
    ) -> Mapping[str, RunningTurn]:
        """Start the same prompt in several slots, or in none."""
        self._check_startable(slot_ids)
        return {slot_id: self._start(given, slot_id, origin=origin) for slot_id in slot_ids}

    async def stop_all(self) -> None:
        """Stop the turns and whatever else holds a slot; wait, then leave what doesn't end."""
        running, tasks = self._reservations.running, self._reservations.tasks
        for turn in tuple(running.values()):
            turn.cancel()
        for work in tasks:
            work.cancel()
        if ending := {*self._tasks, *tasks}:
            await asyncio.wait(ending, timeout=STOP_PATIENCE_S)
        for turn in tuple(running.values()):
            turn.abandon()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=STOP_PATIENCE_S)

    def _check_startable(self, slot_ids: Sequence[str]) -> None:
        """Check that one prompt can go to all of these slots, before it goes to any.

        Why: docs/decisions.md#28.
        """
        self._open_session.lifetime.check_open()
        if not slot_ids:
            raise InputValidation("No slot is named; name those that should be asked.")
        for slot_id in slot_ids:
            if list(slot_ids).count(slot_id) > 1:
                raise InputValidation(f'Slot "{slot_id}" is named twice; name each once.')
            slot = self._reservations.writable_slot(slot_id)
            self._open_session.models.check(self._open_session.models.spec_of(slot))

    def _start(
        self,
        given: UserInput,
        slot_id: str | None,
        *,
        cancel: CancelToken | None = None,
        model: str | None = None,
        origin: Origin | None = None,
    ) -> RunningTurn:
        """Check everything, keep the slot, start the turn's task.

        No await: two callers could both find the slot idle.
        """
        open_session = self._open_session
        open_session.lifetime.check_open()
        skills = open_session.parts.skills.called_by(given)
        slot = open_session.loaded.slot(slot_id)
        self._reservations.check_writable(slot.uid)
        self._reservations.idle_slot(slot.slot_id)
        spec = model or open_session.models.spec_of(slot)
        open_session.models.check(spec)
        turn = self._handle(slot)
        self._reservations.begin_turn(turn)
        starting = TurnStart(
            open_session=open_session,
            turn=turn,
            slot=slot,
            given=given,
            skills=skills,
            spec=spec,
            origin=origin,
        )
        self._run_as_task(starting, cancel)
        return turn

    def _run_as_task(self, starting: TurnStart, cancel: CancelToken | None) -> None:
        forget = cancel.on_cancel(starting.turn.cancel) if cancel is not None else None
        task = asyncio.ensure_future(self._run_to_end(starting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if forget is not None:
            task.add_done_callback(lambda _: forget())

    def _handle(self, slot: Slot) -> RunningTurn:
        open_session = self._open_session
        return RunningTurn(
            session_id=open_session.loaded.row.session_id,
            slot_id=slot.slot_id,
            slot_uid=slot.uid,
            turn_id=open_session.parts.ids.new("turn"),
            clock=open_session.parts.clock,
            steer=self._steer,
            on_event=open_session.recorder.notify,
        )

    async def _run_to_end(self, starting: TurnStart) -> None:
        turn = starting.turn
        try:
            outcome = await starting.outcome()
        except AgentError as error:
            outcome = Failed(error=error, reply=starting.empty_reply())
        except BaseException as error:
            outcome = Panicked(error=error, reply=starting.empty_reply())
            # A cancel or exit of the loop itself goes on, once those who wait for the turn have
            # their answer.
            if not isinstance(error, Exception):
                raise
        finally:
            self._reservations.end_turn(turn)
            self._open_session.requests.references.forget(turn.turn_id)
            turn.end(outcome)

    async def _steer(self, turn: RunningTurn, text: str) -> None:
        content = UserInput.of(text).content
        await turn.has_begun.wait()  # what steers a turn stands behind its prompt
        await turn.between_requests.wait()  # and behind the answer that doesn't know of it
        # Looked at after the waits: the turn may have ended meanwhile, and another one begun.
        if self._reservations.running.get(turn.slot_uid) is not turn:
            raise InputValidation("The turn has ended; ask in a new one.")
        message = UserMessage(content=content, is_steering=True)
        (event,) = await self._open_session.recorder.append(
            [message], slot_uid=turn.slot_uid, turn_id=turn.turn_id
        )
        turn.last_steer_seq = event.seq
