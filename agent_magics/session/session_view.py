"""What can be read of an open session; asked from any thread and any loop, answered at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from agent_magics.context.budget import ContextInfo
from agent_magics.context.view import TurnSpan
from agent_magics.core.approval import ApprovalPolicy, policy_for
from agent_magics.core.events import LedgerEvent, Origin
from agent_magics.core.memories import Memory
from agent_magics.core.messages import Message
from agent_magics.core.money import Spent
from agent_magics.core.ports import Tool
from agent_magics.core.slots import SlotConfig, SlotMeta
from agent_magics.dataframes.frames import Frames
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.session.open.compaction_actions import CompactionActions
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.request.rebuilding import Rebuilt, rebuild
from agent_magics.session.request.request_builder import PreparedRequest
from agent_magics.session.slots.cells import slot_of_cell
from agent_magics.session.state.followers import Followed
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.session.state.spending import Spending, spending_of
from agent_magics.threads.loop import background_loop, run

T = TypeVar("T")


class SessionView:
    """The reading half of a session: facts, slots, history, the next request."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._loaded = open_session.loaded
        self._compactions = CompactionActions(open_session)
        self.session_id: str = open_session.loaded.row.session_id
        self.memory: SessionMemory = open_session.facts
        self.frames = Frames(
            lambda: (self._read(open_session.snapshot),), lambda: _memories(open_session)
        )

    def __repr__(self) -> str:
        return f'<session "{self.title or self.session_id}">'

    @property
    def title(self) -> str | None:
        return self._loaded.row.title

    @property
    def current_slot(self) -> str:
        """The id of the slot that turns go to."""
        return self._read(lambda: self._loaded.slot(None).slot_id)

    @property
    def model(self) -> str:
        """The session's model, `provider:model`; slots may have their own."""
        return self._read(lambda: self._open_session.models.default)

    @property
    def chosen_model(self) -> str | None:
        """The model that was chosen for the session; None: it asks the agent's default."""
        return self._read(lambda: self._loaded.chosen_model)

    @property
    def is_readonly(self) -> bool:
        """True where another kernel writes this session."""
        return self._open_session.recorder.is_readonly

    @property
    def is_closed(self) -> bool:
        return self._open_session.lifetime.is_closed

    @property
    def switches(self) -> int:
        """How often somebody went to a slot since this process opened the session."""
        return self._read(lambda: self._open_session.switches)

    def list_slots(self) -> tuple[SlotMeta, ...]:
        """Describe the slots, oldest first."""
        return self._read(
            lambda: self._open_session.listing.metas(self._open_session.reservations.running_ids())
        )

    def deleted_slots(self) -> dict[str, str]:
        """Return the uids of the deleted slots that `restore_slot` can bring back, by name."""
        return self._read(lambda: self._loaded.restorable)

    def slot_config(self, slot: str | None = None) -> SlotConfig:
        """Return a slot's settings (None: the current slot). Raises `SlotNotFound`."""
        return self._read(lambda: self._loaded.slot(slot).config)

    def tools(self, slot: str | None = None) -> tuple[Tool, ...]:
        """Return the tools there are for a slot now; its setting `tools` says which are sent."""
        return self._read(
            lambda: self._open_session.requests.builder.every_tool(self._loaded.slot(slot))
        )

    def approval(self, tool_name: str, slot: str | None = None) -> ApprovalPolicy:
        """Return whether a mutating tool asks in a slot, by the slot's settings and the agent's."""
        levels = self.slot_config(slot).approval, self._open_session.parts.config.approval
        return policy_for(tool_name, *levels)

    def is_always_allowed(self, tool_name: str) -> bool:
        """Return whether a person answered "always" for a tool; it holds until the process ends."""
        return self._read(lambda: tool_name in self._open_session.approvals.always)

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

    def foreseen_compaction(self, slot: str | None = None) -> CompactionOutcome | None:
        """Return what a compaction of a slot would do now; None where there is nothing it could."""
        return self._read(lambda: self._compactions.foresee(slot))

    def next_request(self, slot: str | None = None) -> PreparedRequest:
        """Return the request that would be sent now, before the next user message."""
        return self._prepared(slot)

    def spent(self, slot: str | None = None) -> Spent:
        """Sum what a slot's own requests have cost."""
        return self._read(
            lambda: self._loaded.spent_by_slot.get(self._loaded.slot(slot).uid, Spent())
        )

    def spending(self) -> tuple[Spending, ...]:
        """Sum the session's requests by slot, model and purpose, deleted slots included."""
        return self._read(lambda: spending_of(self._loaded.events, self._loaded.slots))

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

    def fates(self, slot: str | None = None) -> dict[int, str]:
        """Return for every spoken seq of a slot's lineage whether the model sees it.

        "summarised", "retained" or "excluded: <reason>": exactly one each.
        """
        return self._read(
            lambda: self._open_session.requests.builder.fates(self._loaded.slot(slot))
        )

    def slot_of_cell(self, origin: Origin) -> str | None:
        """Name the slot with the newest turn in view that a notebook cell made."""
        return self._read(lambda: slot_of_cell(self._loaded, origin))

    def running(self) -> Mapping[str, RunningTurn]:
        """Return the running turns by slot id."""
        return self._read(
            lambda: {
                turn.slot_id: turn for turn in self._open_session.reservations.running.values()
            }
        )

    def get_conversation_summary(self, slot: str | None = None) -> str | None:
        """Read the newest automatic summary: the session's, or a slot's own."""
        key = "conversation_summary" + (f":{slot}" if slot else "")
        return self._read(lambda: self._loaded.memory.get(key))

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on the session's loop after each change; return how to stop that."""
        return self._open_session.recorder.subscribe(listener)

    def follow(self, view: Followed) -> Callable[[], None]:
        """Refresh a view on the session's loop after changes, not too often; see `Followed`.

        All that follow a session share a small part of the loop's time. Returns how to stop.
        """
        return self._open_session.following.follow(view)

    def newest_summary(self, slot: str | None = None) -> str | None:
        """Return the summary a bridge from the slot would carry; None: it would ask for one."""
        open_session = self._open_session
        return self._read(
            lambda: open_session.compaction.bridges.newest_summary(open_session.loaded.slot(slot))
        )

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


def _memories(open_session: OpenSession) -> tuple[Memory, ...]:
    return () if open_session.remembering is None else run(open_session.remembering.everything())
