"""What can be read of a slot's history: what is in it, what a model sees of it, what it cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agent_magics.context.budget import ContextInfo
from agent_magics.context.view import TurnSpan
from agent_magics.core.events import LedgerEvent
from agent_magics.core.messages import Message
from agent_magics.core.money import Spent
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.open.compaction_actions import CompactionActions
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.request.rebuilding import Rebuilt, rebuild
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.state.spending import Spending, spending_of
from agent_magics.threads.loop import background_loop

T = TypeVar("T")


class HistoryView:
    """The histories of a session's slots, each from its own events and those it inherited."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._loaded = open_session.loaded
        self._compactions = CompactionActions(open_session)

    def turns(self, slot: str | None = None) -> tuple[TurnSpan, ...]:
        """Return the turns in a slot's view, inherited ones included."""
        return self._read(lambda: self._open_session.turns(self._loaded.slot(slot)))

    def history(self, slot: str | None = None) -> tuple[LedgerEvent, ...]:
        """Return the events in a slot's view, the raw log: no compaction or focus changes it."""
        return self._read(lambda: self._loaded.view(self._loaded.slot(slot)).events)

    def messages(self, slot: str | None = None) -> tuple[Message, ...]:
        """Return what the model would see of a slot's history: no system part, no references."""
        return self._prepared(slot).projection.messages

    def context_info(self, slot: str | None = None) -> ContextInfo:
        """Weigh a slot's next request by part, in tokens."""
        return self._prepared(slot).info

    def next_request(self, slot: str | None = None) -> PreparedRequest:
        """Return the request that would be sent now, before the next user message."""
        return self._prepared(slot)

    def fates(self, slot: str | None = None) -> dict[int, str]:
        """Return for every spoken seq of a slot's lineage whether the model sees it.

        "summarised", "retained" or "excluded: <reason>": exactly one each.
        """
        return self._read(
            lambda: self._open_session.requests.builder.fates(self._loaded.slot(slot))
        )

    def request_of(self, seq: int) -> Rebuilt | None:
        """Make the request again that an event of a turn belongs to, from the ledger.

        It tells whether it is the very one that was sent. None for an event of no request.
        """
        return rebuild(
            self._read(self._open_session.snapshot),
            seq,
            models=self._open_session.models.lookup,
            builder_for=self._open_session.requests.builder_for,
        )

    def spent(self, slot: str | None = None) -> Spent:
        """Sum what a slot's own requests have cost."""
        return self._read(
            lambda: self._loaded.spent_by_slot.get(self._loaded.slot(slot).uid, Spent())
        )

    def spending(self) -> tuple[Spending, ...]:
        """Sum the session's requests by slot, model and purpose, deleted slots included."""
        return self._read(lambda: spending_of(self._loaded.events, self._loaded.slots))

    def foreseen_compaction(self, slot: str | None = None) -> CompactionOutcome | None:
        """Return what a compaction of a slot would do now; None where there is nothing it could."""
        return self._read(lambda: self._compactions.foresee(slot))

    def newest_summary(self, slot: str | None = None) -> str | None:
        """Return the summary a bridge from the slot would carry; None: it would ask for one."""
        open_session = self._open_session
        return self._read(
            lambda: open_session.compaction.bridges.newest_summary(open_session.loaded.slot(slot))
        )

    def get_conversation_summary(self, slot: str | None = None) -> str | None:
        """Read the newest automatic summary: the session's, or a slot's own."""
        key = "conversation_summary" + (f":{slot}" if slot else "")
        return self._read(lambda: self._loaded.memory.get(key))

    def _prepared(self, slot_id: str | None) -> PreparedRequest:
        async def build() -> PreparedRequest:
            slot = self._loaded.slot(slot_id)
            _, model = await self._open_session.models.find(slot)
            return self._open_session.requests.prepared(slot, model)

        loop = background_loop()
        if loop.is_here():
            slot = self._loaded.slot(slot_id)
            model = self._open_session.models.known(slot)
            return self._open_session.requests.prepared(slot, model)
        return loop.post(build()).result()

    def _read(self, read: Callable[[], T]) -> T:
        return background_loop().call(read)
