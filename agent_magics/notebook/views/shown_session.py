"""What views need of the session that they show, each view its own part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from agent_magics.context.budget import ContextInfo
from agent_magics.context.view import TurnSpan
from agent_magics.core.errors import InputValidation
from agent_magics.core.events import LedgerEvent
from agent_magics.core.money import Spent
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import SlotMeta
from agent_magics.session.compaction.compactor import CompactionOutcome
from agent_magics.session.request.rebuilding import Rebuilt
from agent_magics.session.state.followers import Followed

S = TypeVar("S")


class Followable(Protocol):
    """A session that refreshes a view until that is stopped."""

    def follow(self, view: Followed) -> Callable[[], None]: ...


class Answering(Protocol):
    """A turn that runs: what it says, as far as it isn't recorded."""

    @property
    def turn_id(self) -> str: ...
    @property
    def text_so_far(self) -> str: ...


class StateSource(Protocol):
    """What the state is made of; every member may be read from any thread."""

    @property
    def session_id(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def model(self) -> str: ...
    @property
    def is_readonly(self) -> bool: ...
    @property
    def current_slot(self) -> str: ...
    def list_slots(self) -> Sequence[SlotMeta]: ...
    def context_info(self, slot: str | None = None) -> ContextInfo: ...
    def spent(self, slot: str | None = None) -> Spent: ...
    def running(self) -> Mapping[str, Answering]: ...


class SlotActor(Protocol):
    """What the slot tabs change."""

    @property
    def current_slot(self) -> str: ...
    def list_slots(self) -> Sequence[SlotMeta]: ...
    async def switch_slot(self, slot_id: str) -> None: ...
    async def derive_slot(self, slot_id: str, parent_id: str) -> None: ...
    async def rename_slot(self, slot_id: str, new_id: str) -> None: ...
    async def configure_slot(self, slot_id: str, **settings: Any) -> None: ...
    async def delete_slot(self, slot_id: str) -> None: ...
    async def restore_slot(self, slot_uid: str) -> None: ...


class TabsSession(StateSource, SlotActor, Followable, Protocol):
    """What the slot tabs need."""


class BudgetSession(StateSource, Followable, Protocol):
    """What the token budget needs."""

    def foreseen_compaction(self, slot: str | None = None) -> CompactionOutcome | None: ...


class AnswerSource(Protocol):
    """What a comparison is made of; every member may be read from any thread."""

    def list_slots(self) -> Sequence[SlotMeta]: ...
    def history(self, slot: str | None = None) -> Sequence[LedgerEvent]: ...
    def turns(self, slot: str | None = None) -> Sequence[TurnSpan]: ...
    def running(self) -> Mapping[str, Answering]: ...


class ComparedSession(AnswerSource, Followable, Protocol):
    """What a comparison of slots needs."""


class StatesSource(Protocol):
    """The ledger that a session's frames read."""

    def states(self) -> tuple[SessionState, ...]: ...


class LedgerSession(Followable, Protocol):
    """What the ledger explorer needs; read from any thread."""

    @property
    def session_id(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def frames(self) -> StatesSource: ...
    def request_of(self, seq: int) -> Rebuilt | None: ...


class ShownSession(TabsSession, BudgetSession, ComparedSession, LedgerSession, Protocol):
    """What all views together need."""


def checked(session: S) -> S:
    """Return a session; raise `InputValidation` on what is none."""
    if not callable(getattr(session, "follow", None)):
        raise InputValidation(
            f"{session!r:.60} is no session; agent_magics.current() gives the notebook's."
        )
    return session
