"""A request that was sent, made again from the ledger, and whether it is the very same.

Nothing of a request is stored but a digest of it. The ledger has what was said, the slot's
settings and its checkpoints as they were; what was told without being stored, the
tools, the prompt and what is remembered are those of now. Where the digest of what was made is the
stored one, it is what was sent, byte for byte; elsewhere it is only like it, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from agent_magics.core.chat import ChatRequest, ModelInfo
from agent_magics.core.errors import ModelNotSupported
from agent_magics.core.events import (
    AssistantMessage,
    LedgerEvent,
    MemorySet,
    Metadata,
    SlotChanged,
    ToolCalled,
    Usage,
)
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Slot, lineage
from agent_magics.core.values import Value
from agent_magics.session.request.models import ModelLookup
from agent_magics.session.request.request_builder import RequestBuilder, digest_of
from agent_magics.session.state.loaded import LoadedSession

MAX_CHECKPOINTS = 4


class Rebuilt(Value):
    """A request made again. `is_exact`: its digest is that of the one that was sent.

    `seq` is the usage event of that request.
    """

    seq: int
    request: ChatRequest
    is_exact: bool


class PastSession:
    """A session as it was when its requests were sent."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._slots = {slot.uid: slot for slot in state.slots}

    def usage_of(self, seq: int) -> LedgerEvent | None:
        """Find the request that an event of a turn belongs to: the first that ended from there on.

        None for an event of no turn, and for what came after the turn's last request.
        """
        events = self._state.events
        at = next((at for at, event in enumerate(events) if event.seq == seq), len(events))
        turn_id = events[at].turn_id if at < len(events) else None
        if turn_id is None:
            return None
        return next(
            (
                event
                for event in events[at:]
                if event.turn_id == turn_id
                and isinstance(event.payload, Usage)
                and event.payload.purpose == "turn"
            ),
            None,
        )

    def _moments(self, usage: LedgerEvent) -> Sequence[int]:
        """Return the seqs before which a request may have been sent.

        Its answer is recorded when it is whole; what other slots did meanwhile may stand between.
        """
        own = [e for e in self._state.events if e.turn_id == usage.turn_id and e.seq < usage.seq]
        answered = usage.seq
        asked = 0
        for event in reversed(own):
            if not isinstance(event.payload, AssistantMessage | ToolCalled):
                asked = event.seq
                break
            answered = event.seq
        # Which of the two is the right one can't be told from the ledger; the digest decides.
        return tuple(dict.fromkeys((asked + 1, answered)))

    def moments_of(self, usage: LedgerEvent) -> Iterator[tuple[LoadedSession, Slot]]:
        """Yield the session as it may have been when a request was sent, the likeliest first."""
        slot = self._slots.get(usage.slot_uid or "")
        if slot is None:
            return
        for moment in self._moments(usage):
            chain = [uid for uid, _ in lineage(slot.uid, self._slots)]
            slots = {uid: self._slot_at(uid, moment) for uid in chain}
            events = tuple(
                event
                for event in self._state.events
                if event.seq < moment
                and (event.slot_uid in slots or isinstance(event.payload, MemorySet | Metadata))
            )
            made = msgspec.structs.replace(
                self._state, events=events, slots=tuple(slots.values()), drafts=()
            )
            loaded = LoadedSession(made)
            for checkpoint_id in self._checkpoints_at(chain, moment):
                # The row has only today's checkpoint, so the likely ones are tried against the
                # digest.
                then = msgspec.structs.replace(slots[slot.uid], checkpoint_id=checkpoint_id)
                loaded.slots[slot.uid] = then
                yield loaded, then

    def _slot_at(self, uid: str, moment: int) -> Slot:
        """Return a slot with the settings it had, as the ledger tells them."""
        slot = self._slots[uid]
        config = slot.config
        for event in self._state.events:
            if event.seq >= moment:
                break
            match event.payload:
                case SlotChanged(config=told) if event.slot_uid == uid and told is not None:
                    config = told
                case _:
                    pass
        return msgspec.structs.replace(slot, config=config, deleted=False)

    def _checkpoints_at(self, chain: Sequence[str], moment: int) -> list[str | None]:
        """Name the checkpoints that may have held, the newest first, and none at all."""
        made = sorted(
            (each for each in self._state.checkpoints if each.source_max_seq < moment),
            key=lambda each: (each.slot_uid == chain[-1], each.source_max_seq),
            reverse=True,
        )
        ours = [each.checkpoint_id for each in made if each.slot_uid in chain]
        return [*ours[:MAX_CHECKPOINTS], None]


def rebuild(
    state: SessionState,
    seq: int,
    *,
    models: ModelLookup,
    builder_for: Callable[[LoadedSession], RequestBuilder],
) -> Rebuilt | None:
    """Make the request again that the event with a seq belongs to; None where it has none.

    Callable from any thread; `state` is the session's, `builder_for` makes requests of its past.
    """
    past = PastSession(state)
    usage = past.usage_of(seq)
    if usage is None:
        return None
    assert isinstance(usage.payload, Usage)
    spent, likeliest = usage.payload, None
    try:
        model = models.known(f"{spent.provider}:{spent.model}")
    except ModelNotSupported:  # its provider isn't there any more
        model = ModelInfo(name=spent.model, provider=spent.provider)
    for loaded, slot in past.moments_of(usage):
        request = builder_for(loaded).build(slot, model, running_turn=usage.turn_id).request
        # What was sent and not stored (memories, changed variables) can't be had again; then
        # nothing matches, and it is said.
        if digest_of(request) == spent.digest:
            return Rebuilt(seq=usage.seq, request=request, is_exact=True)
        likeliest = likeliest or request
    if likeliest is None:
        return None
    return Rebuilt(seq=usage.seq, request=likeliest, is_exact=False)
