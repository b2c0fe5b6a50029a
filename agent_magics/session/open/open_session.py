"""What one open session is made of. Everything here runs on the session's loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from agent_magics.context.view import TurnSpan
from agent_magics.core.events import LedgerEvent
from agent_magics.core.ports import Change, SessionState
from agent_magics.core.slots import Slot
from agent_magics.session.compaction.session_compaction import SessionCompaction
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.session.memory.remembering import Remembering
from agent_magics.session.open.lifetime import Lifetime
from agent_magics.session.open.session_models import SessionModels
from agent_magics.session.open.session_requests import SessionRequests
from agent_magics.session.open.slot_reservations import SlotReservations
from agent_magics.session.parts import AgentParts
from agent_magics.session.request.models import ModelLookup
from agent_magics.session.slots.changes import SlotChanges
from agent_magics.session.slots.commits import commit_change
from agent_magics.session.slots.listing import Listing
from agent_magics.session.state.approvals import Approvals
from agent_magics.session.state.followers import Followers
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder


@dataclass(kw_only=True)
class OpenSession:
    """The parts of an open session, each with what it alone changes.

    `remembering`: None where no memories are kept. `switches` counts how often somebody went to
    a slot.
    """

    parts: AgentParts
    recorder: Recorder
    lifetime: Lifetime
    reservations: SlotReservations
    models: SessionModels
    facts: SessionMemory
    remembering: Remembering | None
    requests: SessionRequests
    compaction: SessionCompaction
    slot_changes: SlotChanges
    listing: Listing
    following: Followers
    approvals: Approvals
    switches: int = 0

    @classmethod
    def of(cls, parts: AgentParts, recorder: Recorder) -> Self:
        """Put a session together around what writes it."""
        loaded, clock, ids = recorder.loaded, parts.clock, parts.ids
        lifetime = Lifetime(recorder)
        reservations = SlotReservations(recorder, lifetime)
        facts = SessionMemory(recorder, lifetime.check_open)
        remembering = parts.memory.attach(recorder)
        requests = SessionRequests(
            parts, loaded, reservations=reservations, facts=facts, remembering=remembering
        )
        following = Followers(reservations.running)
        recorder.subscribe(following.changed)
        return cls(
            parts=parts,
            recorder=recorder,
            lifetime=lifetime,
            reservations=reservations,
            models=SessionModels(
                recorder, parts.config, ModelLookup(parts.registry, parts.config.models)
            ),
            facts=facts,
            remembering=remembering,
            requests=requests,
            compaction=SessionCompaction(
                recorder, requests.builder, config=parts.config, clock=clock, ids=ids
            ),
            slot_changes=SlotChanges(loaded, recorder.event, clock, ids),
            listing=Listing(loaded),
            following=following,
            approvals=Approvals(parts.approver),
        )

    @property
    def loaded(self) -> LoadedSession:
        """The session as it is in memory and in the store."""
        return self.recorder.loaded

    def snapshot(self) -> SessionState:
        """Return the whole session, as the store would load it."""
        return self.loaded.snapshot(tuple(self.reservations.running_ids().values()))

    def turns(self, slot: Slot) -> tuple[TurnSpan, ...]:
        """Return the turns of a slot's view."""
        return self.loaded.turns(slot, self.reservations.running_id(slot))

    def hooks(
        self,
        slot_id: str | None = None,
        turn_id: str | None = None,
        turn_index: int | None = None,
    ) -> HookScope:
        """Return where hooks are fired: the session, or one of its turns."""
        return HookScope(
            registry=self.parts.plugins.hooks,
            clock=self.parts.clock,
            session_id=self.loaded.row.session_id,
            slot_id=slot_id,
            turn_id=turn_id,
            turn_index=turn_index,
        )

    async def commit(self, change: Change) -> tuple[LedgerEvent, ...]:
        """Write a change of the session, while it is open."""
        self.lifetime.check_open()
        return await commit_change(self.recorder, change)
