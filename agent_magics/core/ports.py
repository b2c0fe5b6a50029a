"""What the engine needs of the outside, as protocols; anything that fits may be plugged in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from agent_magics.core.approval import ApprovalAnswer, ApprovalRequest
from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo
from agent_magics.core.events import Draft, LedgerEvent, NewEvent
from agent_magics.core.hooks import HookEvent, HookHandler, PluginDescriptor
from agent_magics.core.memories import Memory
from agent_magics.core.messages import ToolOutput
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.values import Value

T = TypeVar("T")


@runtime_checkable
class Provider(Protocol):
    """A family of models behind one name (`openai`, `scripted`, …)."""

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        ...

    async def models(self) -> Sequence[ModelInfo]:
        """List the models that answer now; an empty list where a server tells none."""
        ...

    async def describe(self, model: str) -> ModelInfo:
        """Return what is known of a model; unknown facts are None."""
        ...

    def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Stream one answer; the last event is `Done`.

        Retries happen inside and before the first token only. A failure raises
        `ProviderError` or a branch of it; leaving the iterator closes the connection.
        """
        ...

    async def aclose(self) -> None:
        """Free connections and processes."""
        ...


class Answerer(Protocol):
    """What streams answers: a provider, or a part of one that has one request's answer."""

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        ...

    def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Stream one answer (see `Provider.chat`)."""
        ...


@runtime_checkable
class Replaying(Protocol):
    """A provider that may have an answer already, for which nobody is asked."""

    def has_answer(self, request: ChatRequest | None = None) -> bool:
        """Return whether it would ask nobody if this were asked now; without one, whether ever."""
        ...

    def claim(self, request: ChatRequest) -> Answerer | None:
        """Take the recorded answer, which is nobody else's from then on; None where there is none.

        What is given sends nothing, whatever happens before its `chat`.
        """
        ...


class ToolInput(Value):
    call_id: str
    tool_name: str
    arguments: dict[str, Any]


@runtime_checkable
class Tool(Protocol):
    """Something a model may call. `is_mutating`: it changes something outside the conversation."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def is_mutating(self) -> bool: ...

    async def execute(self, call: ToolInput, on_main: OnMain) -> ToolOutput:
        """Run once; an exception becomes an error result. Cancelled only when it times out."""
        ...


class OnMain(Protocol):
    """The way to a thread that owns the user's namespace."""

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` there, one piece at a time, and give back what it gives."""
        ...


class OwnedMain(OnMain, Protocol):
    """The way to that thread as who runs the tools has it: what takes too long can be ended."""

    def break_off(self, work: Callable[[], object]) -> None:
        """Raise KeyboardInterrupt in `work` if it runs there now; where it can't, do nothing.

        Callable from any thread.
        """
        ...


ToolSource = Callable[[], Sequence[Tool]]


@runtime_checkable
class LiveTools(Protocol):
    """A tool source behind connections: they open before a turn that may use them (`mcp`)."""

    def __call__(self) -> Sequence[Tool]:
        """Return the tools that can be called now."""
        ...

    async def ready(self, allowed: Sequence[str] | None) -> Sequence[str]:
        """Connect, for a few seconds at most; give sentences that the person should read.

        `allowed` are the names that the turn's slot allows, None for all. May be cancelled.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections, within 2 s."""
        ...


class Approver(Protocol):
    """Somebody who can be asked whether a tool may run; questions come one at a time."""

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask and wait; None where nobody is there to answer. A cancel withdraws the question."""
        ...


class ReferenceSource(Protocol):
    """Tells the model of something that changes between turns; it is sent and not stored.

    Why: docs/decisions.md#4.
    """

    @property
    def name(self) -> str:
        """A word for the section's heading."""
        ...

    def current(self, slot_uid: str) -> str:
        """Say what is new since `mark_seen`, "" for nothing. Callable from any thread, quick."""
        ...

    def mark_seen(self, slot_uid: str) -> None:
        """Note that a turn of the slot has been told of it."""
        ...


class PluginContext(Protocol):
    """What a plugin registers its hooks with."""

    @property
    def config(self) -> dict[str, Any]: ...

    def tap(self, event: HookEvent, handler: HookHandler) -> None:
        """Call `handler` at `event`; raises `PluginHookContractViolation` if it isn't declared."""
        ...


class Plugin(Protocol):
    """Something that taps hooks. Initialised in order, shut down in reverse."""

    @property
    def descriptor(self) -> PluginDescriptor: ...

    async def initialize(self, config: dict[str, Any]) -> None: ...

    def apply(self, context: PluginContext) -> None:
        """Tap the hooks that the descriptor declares."""
        ...

    async def shutdown(self) -> None: ...


class MemoryStorage(Protocol):
    """Where memories live. Every method may raise `StorageError`."""

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        """Find memories by relevance to `query`, best first; any text is a valid query."""
        ...

    async def list_recent(self, namespace: str, limit: int) -> Sequence[Memory]:
        """List the memories that were updated last, newest first."""
        ...

    async def list_by_namespace(self, namespace: str) -> Sequence[Memory]: ...

    async def upsert(self, memory: Memory) -> None:
        """Write by id: the same content only moves `updated_at`, else content and tags change."""
        ...

    async def delete(self, memory_id: str) -> None:
        """Delete by id; nothing happens where there is none."""
        ...

    async def aclose(self) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """The time in UTC."""
        ...

    def monotonic(self) -> float: ...


class Ids(Protocol):
    def new(self, kind: Literal["session", "slot", "turn", "checkpoint", "memory"]) -> str: ...


class Secrets(Protocol):
    def find(self, name: str) -> str | None:
        """Look a key up (environment, then keyring); None where there is none."""
        ...


class Owner(Value):
    """Who holds a session, for the message that a second kernel shows."""

    pid: int
    host: str
    since: datetime


class Lease(Value):
    """The right to write one session. Every write checks `epoch` (docs/decisions.md#44)."""

    session_id: str
    epoch: int


class SessionRow(Value):
    """A session's own row. `title` None: made of the first prompt."""

    session_id: str
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    current_slot_uid: str = ""
    message_count: int = 0
    epoch: int = 0


class SessionState(Value):
    """All the store holds of one session. Events rise by seq, deleted slots are included.

    `running`: ids of turns that run now; None where nobody here knows.

    `unreadable` are the seqs of events that can't be decoded; they are left out.
    """

    row: SessionRow
    slots: tuple[Slot, ...]
    checkpoints: tuple[Checkpoint, ...]
    events: tuple[LedgerEvent, ...]
    drafts: tuple[Draft, ...]
    running: tuple[str, ...] | None = None
    unreadable: tuple[int, ...] = ()


class Change(Value):
    """One transaction: everything in it is written, or nothing.

    `slots` are inserted or replaced by uid. Where `expected_generation` names slots, each must
    still have the given generation, else `CompactionStale` and nothing changes.
    `ends_draft` is a (slot_uid, turn_id) whose draft is deleted.
    """

    events: tuple[NewEvent, ...] = ()
    slots: tuple[Slot, ...] = ()
    checkpoint: Checkpoint | None = None
    expected_generation: dict[str, int] = msgspec.field(default_factory=dict)
    current_slot_uid: str | None = None
    title: str | None = None
    ends_draft: tuple[str, str] | None = None


class SessionSummary(Value):
    """A line of a list of sessions; `message_count` is user and assistant messages."""

    session_id: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    message_count: int


class SessionPage(Value):
    sessions: tuple[SessionSummary, ...]
    next_cursor: str | None


class SessionStorage(Protocol):
    """Where sessions live. Every method may raise `StorageError`; none blocks the loop.

    `acquire` creates the session where there is none and `create` is true, raises
    `SessionNotFound` where it is false, `SessionLocked` while another owner holds it. With
    `take` the other owner's lease ends: its next write raises `SessionLocked`.
    """

    async def acquire(
        self, session_id: str, owner: Owner, *, create: bool = False, take: bool = False
    ) -> Lease: ...

    async def release(self, lease: Lease) -> None: ...

    async def commit(self, lease: Lease, change: Change) -> tuple[LedgerEvent, ...]:
        """Write a change; give back its events with their seqs.

        Raises `SessionLocked` (the lease is no longer the newest), `CompactionStale`,
        `StorageError`. After any of them the store is as it was.
        """
        ...

    async def save_draft(self, lease: Lease, draft: Draft) -> None:
        """Overwrite the draft of a running turn; may be lost in a power cut."""
        ...

    async def load(self, session_id: str) -> SessionState | None: ...

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """List sessions, newest first; `cursor` is a page's `next_cursor`."""
        ...

    async def find_sessions(self, query: str) -> Sequence[SessionSummary]:
        """Find sessions whose id begins with `query` or whose title has it."""
        ...

    async def delete_session(self, session_id: str) -> None:
        """Delete a session and all its rows; nothing happens where there is none.

        Raises `SessionLocked` while anybody has it open, the caller too.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Restoring(Protocol):
    """A session storage that can take in a whole session: what an import needs of it."""

    async def restore(self, state: SessionState) -> None:
        """Store a session with the seqs it has, or nothing of it; nobody holds it then.

        Raises `InputValidation` where there is a session of its id, or on what can't be stored.
        """
        ...
