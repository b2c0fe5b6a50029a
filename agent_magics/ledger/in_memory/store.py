"""Sessions in memory, for agents without a store: gone with the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs

from agent_magics.core.catalog import NEWEST_NAMED, NOTEBOOK_KEY, SessionOverview, name_of
from agent_magics.core.errors import (
    CompactionStale,
    SessionLocked,
    SessionNotFound,
    StorageError,
)
from agent_magics.core.events import (
    Draft,
    LedgerEvent,
    Metadata,
    UserMessage,
    encode_payload,
)
from agent_magics.core.ports import (
    Change,
    Lease,
    Owner,
    SessionPage,
    SessionRow,
    SessionState,
    SessionSummary,
)
from agent_magics.core.slots import DEFAULT_SLOT, Checkpoint, Slot
from agent_magics.core.text import clean_text
from agent_magics.ledger import listing, records
from agent_magics.ledger.records import is_this_process


class _Session:
    """One session: what `SqlStore` has of it in rows."""

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

    @property
    def size_bytes(self) -> int:
        return sum(len(encode_payload(event.payload)) for event in self.events)

    def overview(self, name: str) -> SessionOverview:
        turns = (each.turn_id for each in self.events if isinstance(each.payload, UserMessage))
        current = self.slots.get(self.row.current_slot_uid)
        owner = self.owner
        return SessionOverview(
            session_id=self.row.session_id,
            title=self.row.title,
            slots=sum(not slot.deleted for slot in self.slots.values()),
            turns=len({turn for turn in turns if turn is not None}),
            current_slot=current.slot_id if current else DEFAULT_SLOT,
            model=self._model(),
            name=name,
            is_held=owner is not None and not is_this_process(owner.pid, owner.host),
        )

    def _model(self) -> str | None:
        for event in reversed(self.events):
            match event.payload:
                case Metadata(key="session_config", value=value):
                    model = value.get("model_id")
                    return str(model) if model else None
                case _:
                    pass
        return None

    def append(self, change: Change) -> tuple[LedgerEvent, ...]:
        # Everything that can fail comes before the first change.
        payloads = [records.storable(event.payload)[0] for event in change.events]
        head = self.events[-1].seq if self.events else 0
        written = tuple(
            records.numbered(event, payload, seq)
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
            message_count=row.message_count + records.messages_in(change.events),
            epoch=row.epoch,
        )


class InMemoryStore:
    """`SessionStorage` and `SessionCatalog` in memory: the same rules, nothing durable."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
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
        session = self._sessions.get(session_id)
        if session is None:
            if not create:
                raise SessionNotFound(session_id, tuple(self._sessions))
            session = self._sessions[session_id] = _Session(session_id, owner)
        elif session.owner is not None and not take:
            raise SessionLocked(session_id, records.holder_of(session.owner, owner))
        self._epochs += 1  # across all sessions: an id made again never meets an old lease
        session.owner = owner
        session.row = structs.replace(session.row, epoch=self._epochs)
        return Lease(session_id=session_id, epoch=self._epochs)

    async def release(self, lease: Lease) -> None:
        session = self._sessions.get(lease.session_id)
        if session is not None and session.row.epoch == lease.epoch:
            session.owner = None

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        session = self._checked(lease)
        for uid, generation in change.expected_generation.items():
            slot = session.slots.get(uid)
            if slot is None or slot.generation != generation:
                raise CompactionStale(uid if slot is None else slot.slot_id)
        return session.append(change)

    async def save_draft(self, lease: Lease, draft: Draft) -> None:
        session = self._checked(lease)
        session.drafts[draft.slot_uid, draft.turn_id] = Draft(
            slot_uid=draft.slot_uid, turn_id=draft.turn_id, text=clean_text(draft.text)
        )

    async def load(self, session_id: str) -> SessionState | None:
        session = self._sessions.get(session_id)
        return None if session is None else session.state

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
        session = self._sessions.get(session_id)
        if session is None:
            return
        if session.owner is not None:
            raise SessionLocked(session_id, records.holder_of(session.owner, None))
        del self._sessions[session_id]
        bound = self._bindings.items()
        self._bindings = {key: name for key, name in bound if name != session_id}

    async def restore(self, state: SessionState) -> None:
        """Store a whole session with the seqs it has; see `SqlStore.restore`."""
        row = state.row
        listing.check_session_id(row.session_id)
        if row.session_id in self._sessions:
            raise listing.taken(row.session_id)
        events = [
            structs.replace(event, payload=records.storable(event.payload)[0])
            for event in state.events
        ]
        session = _Session(row.session_id, Owner(pid=0, host="", since=row.created_at))
        self._epochs += 1
        session.owner = None
        session.row = structs.replace(
            row, message_count=records.messages_in(events), epoch=self._epochs
        )
        session.slots = {slot.uid: slot for slot in state.slots}
        session.checkpoints = list(state.checkpoints)
        session.events = events
        session.drafts = {(draft.slot_uid, draft.turn_id): draft for draft in state.drafts}
        self._sessions[row.session_id] = session

    async def held_sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that are open."""
        held = (name for name, session in self._sessions.items() if session.owner is not None)
        return frozenset(held)

    async def bind(self, key: str, session_id: str) -> None:
        """Record the session that a kernel or notebook uses."""
        self._bindings[key] = session_id

    async def bound(self, key: str) -> str | None:
        """Return the session last bound to `key`; None where none is, or it was deleted."""
        session_id = self._bindings.get(key)
        return session_id if session_id in self._sessions else None

    def overview(
        self, keys: Sequence[str], *, session_id: str | None = None
    ) -> SessionOverview | None:
        ids = [session_id] if session_id else [self._bindings.get(key) for key in keys]
        found = next((name for name in ids if name in self._sessions), None)
        if found is None:
            return None
        session = self._sessions[found]
        title = session.row.title
        same_title = sum(each.row.title == title for each in self._sessions.values())
        return session.overview(name_of(found, title, same_title=same_title))

    def names(self) -> tuple[str, ...]:
        newest = self._summaries()[:NEWEST_NAMED]
        titles = Counter(session.row.title for session in self._sessions.values())
        return tuple(
            name_of(each.session_id, each.title, same_title=titles[each.title]) for each in newest
        )

    def notebooks(self) -> dict[str, str]:
        bound = self._bindings.items()
        return {
            session_id: key.removeprefix(NOTEBOOK_KEY)
            for key, session_id in bound
            if key.startswith(NOTEBOOK_KEY)
        }

    def sizes(self) -> dict[str, int]:
        return {
            name: session.size_bytes for name, session in self._sessions.items() if session.events
        }

    async def aclose(self) -> None:
        for session in self._sessions.values():
            session.owner = None

    def _summaries(self) -> list[SessionSummary]:
        return sorted(
            (session.summary for session in self._sessions.values()), key=listing.sort_key
        )

    def _checked(self, lease: Lease) -> _Session:
        session = self._sessions.get(lease.session_id)
        if session is None:
            raise StorageError(f'Session "{lease.session_id}" was deleted; open a new one.')
        if session.row.epoch != lease.epoch:
            raise SessionLocked(lease.session_id, records.holder_of(session.owner, None))
        if session.owner is None:
            raise StorageError(f'Session "{lease.session_id}" is closed here; open it again.')
        return session
