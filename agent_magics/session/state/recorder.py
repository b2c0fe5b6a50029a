"""The one place that writes: persist, then append, then project.

A change that the store refused leaves no trace in memory. A change that the store took is taken in
even if whoever asked for it has been cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from agent_magics.context.tokens import count_payload
from agent_magics.core.errors import SessionLocked
from agent_magics.core.events import Draft, LedgerEvent, NewEvent, Payload, Usage
from agent_magics.core.money import KnownPrices, Prices
from agent_magics.core.ports import Change, Clock, Lease, SessionStorage
from agent_magics.core.text import clean_value
from agent_magics.core.values import TokenUsage
from agent_magics.session.state.loaded import LoadedSession

_log = logging.getLogger("agent_magics.session")

Listener = Callable[[], None]


class Recorder:
    """Writes changes of one session in order and keeps what is loaded in step."""

    def __init__(
        self,
        storage: SessionStorage,
        lease: Lease,
        loaded: LoadedSession,
        clock: Clock,
        prices: Prices | None = None,
    ) -> None:
        self.lease = lease
        self.loaded = loaded
        self.is_readonly = False
        self.readonly_because = "another kernel has taken it over"
        self._storage = storage
        self._clock = clock
        self._prices = prices or KnownPrices({})
        self._unpriced: set[str] = set()
        self._order = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._pending: dict[str, asyncio.Task[None]] = {}

    def event(
        self, payload: Payload, *, slot_uid: str | None = None, turn_id: str | None = None
    ) -> NewEvent:
        """Make an event of now, its text cleaned and its tokens counted."""
        # Cleaned before it is counted: the count must be of what will be sent.
        payload = clean_value(payload)
        if isinstance(payload, Usage):
            payload = self._with_price(payload)
        return NewEvent(
            payload=payload,
            created_at=self._clock.now(),
            slot_uid=slot_uid,
            turn_id=turn_id,
            tokens=count_payload(payload),
        )

    def is_priced(self, provider: str, model: str) -> bool:
        """Return whether the price of a model is known."""
        nothing = TokenUsage(input_tokens=0, output_tokens=0)
        return self._prices.price_of(provider, model, nothing) is not None

    def is_first_of(self, unpriced: str) -> bool:
        """Return whether this is the first turn here of a model that no limit in money holds.

        Once is enough to say so; another limit opens the session anew.
        """
        is_first = unpriced not in self._unpriced
        self._unpriced.add(unpriced)
        return is_first

    def is_free(self, provider: str, model: str) -> bool:
        """Return whether a model is known to cost nothing."""
        much = TokenUsage(input_tokens=1_000_000, output_tokens=1_000_000)
        return self._prices.price_of(provider, model, much) == 0.0

    def _with_price(self, usage: Usage) -> Usage:
        # Nobody was asked, so nothing was spent.
        if usage.is_replayed or usage.attempt == 0:
            return usage
        if usage.told is not None and usage.told.is_whole:
            cost = self._prices.price_of(usage.provider, usage.model, usage.told)
            return msgspec.structs.replace(usage, cost_usd=cost)
        sent, written = usage.estimated
        taken = TokenUsage(
            input_tokens=sent + (usage.input_tokens or 0),
            output_tokens=written + (usage.output_tokens or 0),
            cached_tokens=usage.cached_tokens,
        )
        about = self._prices.price_of(usage.provider, usage.model, taken)
        return msgspec.structs.replace(usage, estimated_usd=about or 0.0)

    async def commit(self, change: Change) -> tuple[LedgerEvent, ...]:
        """Write a change and take it in; on an error nothing has changed anywhere.

        Raises `SessionLocked` (from then on the session is read-only), `CompactionStale`,
        `StorageError`.
        """
        # A cancel in mid-write would leave rows in the store that memory doesn't have. So the
        # write goes on, and the cancel waits for it.
        writing = asyncio.ensure_future(self._write(change))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])
            raise

    async def append(
        self, payloads: Iterable[Payload], *, slot_uid: str | None, turn_id: str | None = None
    ) -> tuple[LedgerEvent, ...]:
        """Write events of one slot (None: of the session) in one transaction."""
        events = tuple(
            self.event(payload, slot_uid=slot_uid, turn_id=turn_id) for payload in payloads
        )
        return await self.commit(Change(events=events))

    def save_draft(self, draft: Draft) -> None:
        """Save the text so far, behind; a failure is no fault of the turn."""
        # A slow disk gets the next draft instead of a queue of old ones.
        if draft.slot_uid in self._pending:
            return
        saving = asyncio.ensure_future(self._save_draft(draft))
        self._pending[draft.slot_uid] = saving
        saving.add_done_callback(lambda _: self._pending.pop(draft.slot_uid, None))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` on this loop after every change; return how to stop that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def notify(self) -> None:
        """Call the listeners: something to be shown has changed."""
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception as error:  # noqa: BLE001 - a view is foreign code; what is written is
                _log.warning("a listener failed: %s", type(error).__name__)

    async def release(self) -> None:
        """Release the lease once nothing is being written."""
        async with self._order:
            if self._pending:
                # A draft that is written after the lease is gone would be another owner's write.
                await asyncio.wait(set(self._pending.values()))
            await self._storage.release(self.lease)

    async def _write(self, change: Change) -> tuple[LedgerEvent, ...]:
        async with self._order:
            try:
                events = await self._storage.commit(self.lease, change)
            except SessionLocked:
                self.is_readonly = True
                raise
            # Under the same lock: two writers at once would be applied in another order than
            # stored.
            self.loaded.apply(change, events)
        self.notify()
        return events

    async def _save_draft(self, draft: Draft) -> None:
        try:
            await self._storage.save_draft(self.lease, draft)
        except Exception:  # noqa: BLE001 - the final event is what counts; the next draft may succeed
            _log.warning("a draft of turn %s was not saved", draft.turn_id)
