"""The same store in memory, for agents without one: gone with the process."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from agent_magics.core.errors import (
    CompactionStale,
    SessionLocked,
    SessionNotFound,
    StorageError,
)
from agent_magics.core.events import Draft, LedgerEvent
from agent_magics.core.ports import (
    Change,
    Lease,
    Owner,
    SessionPage,
    SessionRow,
    SessionState,
    SessionSummary,
)
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.text import clean_text
from agent_magics.ledger import listing, rows


class _Kept:
    """One session, as long as the store lives."""

    def __init__(self, session_id: str, owner: Owner) -> None:
        self.row = SessionRow(session_id=session_id, created_at=owner.since, updated_at=owner.since)
        self.owner: Owner | None = None
        self.slots: dict[str, Slot] = {}
        self.checkpoints: list[Checkpoint] = []
        self.events: list[LedgerEvent] = []
        self.drafts: dict[tuple[str, str], Draft] = {}

    @property
    def summary(self) -> SessionSummary:
        return SessionSummary(
            session_id=self.row.session_id,
            title=self.row.title,
            created_at=self.row.created_at,
            updated_at=self.row.updated_at,
            message_count=self.row.message_count,
        )

    @property
    def state(self) -> SessionState:
        return SessionState(
            row=self.row,
            slots=tuple(self.slots.values()),
            checkpoints=tuple(self.checkpoints),
            events=tuple(self.events),
            drafts=tuple(self.drafts.values()),
        )

    def append(self, change: Change) -> tuple[LedgerEvent, ...]:
        # Everything that can fail comes before the first change.
        payloads = [rows.storable(event.payload)[0] for event in change.events]
        head = self.events[-1].seq if self.events else 0
        written = tuple(
            rows.numbered(event, payload, seq)
            for seq, (event, payload) in enumerate(
                zip(change.events, payloads, strict=True), start=head + 1
            )
        )
        self.row = self._row_after(change)
        self.events.extend(written)
        self.slots.update({slot.uid: slot for slot in change.slots})
        if change.checkpoint is not None:
            self.checkpoints.append(change.checkpoint)
        if change.ends_draft is not None:
            self.drafts.pop(change.ends_draft, None)
        return written

    def _row_after(self, change: Change) -> SessionRow:
        row = self.row
        title, current = change.title, change.current_slot_uid
        return SessionRow(
            session_id=row.session_id,
            created_at=row.created_at,
            updated_at=max([row.updated_at, *(event.created_at for event in change.events)]),
            title=row.title if title is None else clean_text(title),
            current_slot_uid=row.current_slot_uid if current is None else current,
            message_count=row.message_count + rows.messages_in(change.events),
            epoch=row.epoch,
        )


class TransientStore:
    """`core.ports.SessionStorage` in memory: the same rules, nothing durable."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Kept] = {}
        self._bindings: dict[str, str] = {}
        self._epochs = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of this store: nothing."""
        return ()

    async def acquire(
        self, session_id: str, owner: Owner, *, create: bool = False, take: bool = False
    ) -> Lease:
        listing.check_session_id(session_id)
        kept = self._sessions.get(session_id)
        if kept is None:
            if not create:
                raise SessionNotFound(session_id, tuple(self._sessions))
            kept = self._sessions[session_id] = _Kept(session_id, owner)
        elif kept.owner is not None and not take:
            raise SessionLocked(session_id, rows.holder_of(kept.owner, owner))
        self._epochs += 1  # across all sessions: an id made again never meets an old lease
        kept.owner = owner
        kept.row = rows.with_epoch(kept.row, self._epochs)
        return Lease(session_id=session_id, epoch=self._epochs)

    async def release(self, lease: Lease) -> None:
        kept = self._sessions.get(lease.session_id)
        if kept is not None and kept.row.epoch == lease.epoch:
            kept.owner = None

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        kept = self._checked(lease)
        for uid, generation in change.expected_generation.items():
            slot = kept.slots.get(uid)
            if slot is None or slot.generation != generation:
                raise CompactionStale(uid if slot is None else slot.slot_id)
        return kept.append(change)

    async def save_draft(self, lease: Lease, draft: Draft) -> None:
        kept = self._checked(lease)
        kept.drafts[draft.slot_uid, draft.turn_id] = Draft(
            slot_uid=draft.slot_uid, turn_id=draft.turn_id, text=clean_text(draft.text)
        )

    async def load(self, session_id: str) -> SessionState | None:
        kept = self._sessions.get(session_id)
        return None if kept is None else kept.state

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        listing.check_limit(limit)
        found = self._summaries()
        if cursor is not None:
            updated, last = listing.read_cursor(cursor)
            found = [one for one in found if listing.sort_key(one) > (-updated, last)]
        return listing.page_of(found, limit)

    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        return tuple(one for one in self._summaries() if listing.matches(one, query))

    async def delete_session(self, session_id: str) -> None:
        kept = self._sessions.get(session_id)
        if kept is None:
            return
        if kept.owner is not None:
            raise SessionLocked(session_id, rows.holder_of(kept.owner, None))
        del self._sessions[session_id]

    async def restore(self, state: SessionState) -> None:
        """Take in a whole session with the seqs it has; see `SqlStore.restore`."""
        row = state.row
        listing.check_session_id(row.session_id)
        if row.session_id in self._sessions:
            raise listing.taken(row.session_id)
        events = [
            structs.replace(event, payload=rows.storable(event.payload)[0])
            for event in state.events
        ]
        kept = _Kept(row.session_id, Owner(pid=0, host="", since=row.created_at))
        self._epochs += 1
        kept.owner = None
        kept.row = structs.replace(row, message_count=rows.messages_in(events), epoch=self._epochs)
        kept.slots = {slot.uid: slot for slot in state.slots}
        kept.checkpoints = list(state.checkpoints)
        kept.events = events
        kept.drafts = {(draft.slot_uid, draft.turn_id): draft for draft in state.drafts}
        self._sessions[row.session_id] = kept

    async def held_sessions(self) -> frozenset[str]:
        """Name the sessions that are open."""
        held = (name for name, kept in self._sessions.items() if kept.owner is not None)
        return frozenset(held)

    async def bind(self, key: str, session_id: str) -> None:
        """Remember which session a kernel or notebook uses."""
        self._bindings[key] = session_id

    async def bound(self, key: str) -> str | None:
        """Tell which session was last bound to `key`; None where none is, or it was deleted."""
        session_id = self._bindings.get(key)
        return session_id if session_id in self._sessions else None

    async def aclose(self) -> None:
        for kept in self._sessions.values():
            kept.owner = None

    def _summaries(self) -> list[SessionSummary]:
        return sorted((kept.summary for kept in self._sessions.values()), key=listing.sort_key)

    def _checked(self, lease: Lease) -> _Kept:
        kept = self._sessions.get(lease.session_id)
        if kept is None:
            raise StorageError(f'Session "{lease.session_id}" was deleted; open a new one.')
        if kept.row.epoch != lease.epoch:
            raise SessionLocked(lease.session_id, rows.holder_of(kept.owner, None))
        if kept.owner is None:
            raise StorageError(f'Session "{lease.session_id}" is closed here; open it again.')
        return kept
