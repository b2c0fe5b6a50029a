"""What can be read of an open session; asked from any thread and any loop, answered at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_magics.core.approval import ApprovalPolicy, policy_for
from agent_magics.core.events import Origin
from agent_magics.core.memories import Memory
from agent_magics.core.ports import Tool
from agent_magics.core.slots import SlotConfig, SlotMeta
from agent_magics.dataframes.frames import Frames
from agent_magics.session.history_view import HistoryView
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.session.open.open_session import OpenSession
from agent_magics.session.slots.cells import slot_of_cell
from agent_magics.session.state.followers import Followed
from agent_magics.session.state.running_turn import RunningTurn
from agent_magics.threads.loop import run


class SessionView(HistoryView):
    """The reading half of a session: its facts, its slots and what follows it, with histories."""

    def __init__(self, open_session: OpenSession) -> None:
        super().__init__(open_session)
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

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on the session's loop after each change; return how to stop that."""
        return self._open_session.recorder.subscribe(listener)

    def follow(self, view: Followed) -> Callable[[], None]:
        """Refresh a view on the session's loop after changes, not too often; see `Followed`.

        All that follow a session share a small part of the loop's time. Returns how to stop.
        """
        return self._open_session.following.follow(view)


def _memories(open_session: OpenSession) -> tuple[Memory, ...]:
    return () if open_session.remembering is None else run(open_session.remembering.everything())
