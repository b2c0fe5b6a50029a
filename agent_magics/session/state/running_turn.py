"""A turn that runs, as its caller holds it: events, stop, outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextvars import ContextVar
from typing import Any, TypeVar

from agent_magics.core.errors import InternalPanic, RequestCancelled, StreamInterrupted, said_by
from agent_magics.core.messages import Message
from agent_magics.core.ports import Clock
from agent_magics.core.redact import redact
from agent_magics.core.turns import (
    AgentEvent,
    Cancelled,
    Completed,
    Failed,
    Panicked,
    Reply,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnOutcome,
    TurnPayload,
)
from agent_magics.threads.loop import hop_iter, on_session_loop

T = TypeVar("T")
_CLOSE_PATIENCE_S = 0.5
Steer = Callable[["RunningTurn", str], Awaitable[None]]
ANSWERING: ContextVar[str] = ContextVar("answering", default="")  # the slot whose turn this is


class Stopped(Exception):
    """The person stopped the turn."""


class CancelToken:
    """A switch that stops turns; may be thrown from any thread, once and for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """Stop every turn that was given this token."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        # Outside the lock: a callback may forget another one, which takes the lock.
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the switch is thrown, at once if it has been.

        Returns how to forget it.
        """

        def forget() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(callback)
                return forget
        callback()
        return forget


class RunningTurn:
    """A handle on a running turn; usable from any thread and any loop.

    Iterate over it for `AgentEvent`s (one reader, who may leave and go on); `events()` gives them
    to any number of readers, from the first on. `join()` gives the outcome whether or not anybody
    reads. Nothing is lost when the handle is dropped: the turn runs on and is recorded.
    """

    def __init__(
        self,
        *,
        session_id: str,
        slot_id: str,
        slot_uid: str,
        turn_id: str,
        clock: Clock,
        steer: Steer,
        on_event: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.slot_id = slot_id
        self.slot_uid = slot_uid
        self.turn_id = turn_id
        self.said: list[str] = []
        self.stop_wanted = asyncio.Event()
        self.abandon_wanted = asyncio.Event()
        self.has_begun = asyncio.Event()  # its prompt is recorded
        self.between_requests = asyncio.Event()
        self.between_requests.set()
        self.last_steer_seq: int | None = None
        self._steering = 0
        self._is_settled = asyncio.Event()
        self._is_settled.set()
        self._clock = clock
        self._steer = steer
        self._on_event = on_event
        self._events: list[AgentEvent] = []
        self._read = 0
        self._arrived = asyncio.Event()
        self._outcome: asyncio.Future[TurnOutcome] = self._loop.create_future()

    def cancel(self) -> None:
        """Stop the turn: nothing new starts, what was said stays, tools that run are awaited."""
        self._loop.call_soon_threadsafe(self.stop_wanted.set)

    def abandon(self) -> None:
        """Stop the turn and don't wait for its running tools (docs/decisions.md#11)."""
        self.cancel()
        self._loop.call_soon_threadsafe(self.abandon_wanted.set)

    @property
    def text_so_far(self) -> str:
        """The answer that streams now, as far as it has come."""
        return "".join(self.said)

    @property
    def is_done(self) -> bool:
        return self._outcome.done()

    @on_session_loop
    async def join(self) -> TurnOutcome:
        """Wait for the end; a cancelled wait doesn't stop the turn."""
        return await asyncio.shield(self._outcome)

    @on_session_loop
    async def steer(self, text: str) -> None:
        """Add a message to the running turn; it goes with the turn's next request."""
        self._steering += 1
        self._is_settled.clear()
        try:
            await self._steer(self, text)
        finally:
            self._steering -= 1
            if not self._steering:
                self._is_settled.set()

    async def __aiter__(self) -> AsyncIterator[AgentEvent]:
        async for event in hop_iter(lambda: self._events_from(self._read)):
            self._read = event.sequence + 1
            yield event

    def events(self) -> AsyncIterator[AgentEvent]:
        """Read all events from the first on, to the turn's end; each reader has its own."""
        return hop_iter(lambda: self._events_from(0))

    async def _events_from(self, start: int) -> AsyncIterator[AgentEvent]:
        at = start
        while True:
            while at < len(self._events):
                yield self._events[at]
                at += 1
            if self._outcome.done():
                return
            self._arrived.clear()
            await self._arrived.wait()

    # For the engine, on the session's loop.

    async def unheard(self, sent: Iterable[Message]) -> bool:
        """Return whether what steers the turn isn't in a request; each such message is told once.

        One that is on its way is waited for.
        """
        # Its caller may be between the check and the record; ending the turn now would lose the
        # message.
        await self._is_settled.wait()
        seq, self.last_steer_seq = self.last_steer_seq, None
        return seq is not None and all(message.seq != seq for message in sent)

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`; where the turn is stopped first, end it and raise `Stopped`."""
        return await _before(self.stop_wanted, work)

    async def unless_left(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work` of a turn that has its outcome; in a stopped one until it is abandoned.

        Raises `Stopped`.
        """
        # In a stopped turn the stop is no news: what still has to be done for it is left only by
        # the second interrupt.
        wanted = self.abandon_wanted if self.stop_wanted.is_set() else self.stop_wanted
        return await _before(wanted, work)

    def emit(self, payload: TurnPayload) -> None:
        """Show something."""
        self._events.append(
            AgentEvent(
                session_id=self.session_id,
                slot_id=self.slot_id,
                turn_id=self.turn_id,
                sequence=len(self._events),
                created_at=self._clock.now(),
                payload=payload,
            )
        )
        self._arrived.set()
        self._on_event()

    def end(self, outcome: TurnOutcome) -> None:
        """Emit the last event and set the outcome."""
        match outcome:
            case Completed():
                self.emit(TurnCompleted())
            case Cancelled():
                self.emit(TurnCancelled())
            case Failed(error=error) | Panicked(error=InternalPanic() as error):
                self.emit(TurnFailed(code=error.code, message=error.message))
            case Panicked(error=error):
                self.emit(TurnFailed(code=InternalPanic.code, message=redact(said_by(error))))
        # Those who wait for something that this turn will never do now are let go, and see the
        # outcome.
        self._outcome.set_result(outcome)
        self.has_begun.set()
        self.between_requests.set()
        self._arrived.set()


async def _before(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Wait for `work`; where `event` comes first, end it and raise `Stopped`."""
    working = asyncio.ensure_future(work)
    working.add_done_callback(_look_at)
    stopping = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        # We didn't cancel it, so the provider did; without a word of it the turn would look stopped
        # by the person.
        if working.cancelled():
            raise StreamInterrupted("The model's answer was broken off by its provider.")
        if working.done():
            return working.result()
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
            # A provider that ignores its cancel must not hold the turn.
            await asyncio.wait({working}, timeout=_CLOSE_PATIENCE_S)
    raise Stopped


def _look_at(task: asyncio.Task[Any]) -> None:
    """Take note of an error that comes after the stop, or asyncio would print it."""
    if not task.cancelled():
        task.exception()


def reply_or_raise(outcome: TurnOutcome) -> Reply:
    """Return a completed turn's reply, or raise what ended it.

    Raises `RequestCancelled`, the turn's own error, or `InternalPanic` from what panicked
    (`PluginFailed` where a plugin did).
    """
    match outcome:
        case Completed(reply=reply):
            return reply
        case Cancelled():
            raise RequestCancelled
        case Failed(error=error) | Panicked(error=InternalPanic() as error):
            raise error
        case Panicked(error=error):
            raise InternalPanic(redact(said_by(error))) from error
