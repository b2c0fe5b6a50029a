"""The ledger: everything that happened, as frozen values with a number.

Only the kinds of `SPOKEN` reach a model. Payloads are stored as msgpack with their kind beside
them; a kind keeps decoding what older versions wrote (new fields have defaults, none is renamed).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from agent_magics.core.approval import ApprovalWord
from agent_magics.core.messages import Content, Message, MessageStatus, Reasoning, ToolOutput
from agent_magics.core.slots import SlotConfig
from agent_magics.core.values import TokenUsage, Value

IncompleteCause = Literal[
    "stopped",
    "connection lost",
    "process ended",
    "failed",
    "limit reached",
    "cut by length",
    "ended by a plugin",
]
SlotAction = Literal[
    "created", "derived", "switched", "configured", "renamed", "deleted", "restored"
]
MetadataKey = Literal[
    "session_config", "memory_namespace", "context_compaction", "memory_checkpoint"
]


class Origin(Value):
    """The notebook cell that caused an event: its id, where the front end tells it, and a digest
    of its source.
    """

    cell_id: str | None
    cell_digest: str


class UserMessage(Value, tag="user_message"):
    """What a person said; `is_steering` messages belong to a turn that already runs."""

    content: Content
    is_steering: bool = False
    origin: Origin | None = None


class AssistantMessage(Value, tag="assistant_message"):
    """What the model said. `incomplete` with its `cause` is how a turn that didn't complete ends;
    it may have no content (docs/decisions.md#9).
    """

    content: Content
    status: MessageStatus = "complete"
    cause: IncompleteCause | None = None
    detail: str = ""
    reasoning: Reasoning | None = None
    provider: str = ""
    model: str = ""


class ToolCalled(Value, tag="tool_call"):
    """A call the model made; `arguments` None: not executable, `raw` is what it wrote."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any] | None
    raw: str = ""


class ToolAnswered(Value, tag="tool_result"):
    """What came of a call. `duration_ms` None: it did not run. `ran_with`: the arguments it ran
    with, where a plugin or a person changed what the model wrote.
    """

    call_id: str
    tool_name: str
    output: ToolOutput
    duration_ms: int | None = None
    ran_with: dict[str, Any] | None = None


class SystemMessage(Value, tag="system_message"):
    """A note of ours in mid-conversation: an injected skill, a limit notice, a bridge."""

    text: str
    note: Literal["skill", "limit", "bridge"] = "skill"


class Imported(Value, tag="imported"):
    """A message that was given, not said here."""

    message: Message


class Metadata(Value, tag="metadata"):
    key: MetadataKey
    value: dict[str, Any]


class SlotChanged(Value, tag="slot_changed"):
    """A slot came, went or changed; `config` is what holds afterwards."""

    action: SlotAction
    slot_id: str
    config: SlotConfig | None = None
    parent_id: str | None = None
    fork_seq: int | None = None
    previous_id: str | None = None
    origin: Origin | None = None


class Rewind(Value, tag="rewind"):
    """From here on, the slot's events after `to_seq` and before this one left the view.

    `undoes` is the seq of a `Rewind` or `Clear` whose events this one brings back.
    `left_checkpoint_id` was active before, so that undoing this brings it back too.
    """

    to_seq: int
    undoes: int | None = None
    left_checkpoint_id: str | None = None


class Clear(Value, tag="clear"):
    """From here on, everything before left the slot's view; see `Rewind`."""

    left_checkpoint_id: str | None = None


class MemorySet(Value, tag="memory_set"):
    """A fact of the session was written; `value` None: it was deleted."""

    key: str
    value: str | None


Purpose = Literal["turn", "compaction", "summary", "memory", "bridge"]


class Usage(Value, tag="usage"):
    """One request's cost; tokens are None where the server told none (docs/decisions.md#42).

    `attempt` 0: nobody was asked (no key, or a recording that has no answer).
    `estimated_input_tokens` is what our estimate said before it was sent, `estimated_output_tokens`
    what it says of an answer that no server counted, 0 where nothing came. `digest` is of all that
    was sent. `cost_usd` is by the prices of that day; None where they weren't known. `is_replayed`:
    the answer came from a recording, so nothing was spent. `duration_ms` None: not measured.
    `estimated_usd` is the price by our estimate, where a server didn't count, for limits.
    """

    purpose: Purpose
    provider: str
    model: str
    attempt: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_input_tokens: int = 0
    estimated_output_tokens: int = 0
    duration_ms: int | None = None
    first_token_ms: int | None = None
    digest: str = ""
    cost_usd: float | None = None
    is_replayed: bool = False
    estimated_usd: float = 0.0

    @property
    def told(self) -> TokenUsage | None:
        """What a server counted; None where it told nothing."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return TokenUsage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            reasoning_tokens=self.reasoning_tokens,
        )

    @property
    def estimated(self) -> tuple[int, int]:
        """Our estimate of the input and output that no server told, 0 where nothing came."""
        if self.told is None and not self.estimated_output_tokens:
            return 0, 0
        return (
            self.estimated_input_tokens if self.input_tokens is None else 0,
            self.estimated_output_tokens if self.output_tokens is None else 0,
        )


class Retry(Value, tag="retry"):
    provider: str
    model: str
    attempt: int
    reason: str
    wait_ms: int


class Approval(Value, tag="approval"):
    call_id: str
    tool_name: str
    answer: ApprovalWord
    arguments: dict[str, Any] | None = None


Payload = (
    UserMessage
    | AssistantMessage
    | ToolCalled
    | ToolAnswered
    | SystemMessage
    | Imported
    | Metadata
    | SlotChanged
    | Rewind
    | Clear
    | MemorySet
    | Usage
    | Retry
    | Approval
)
KINDS = tuple(str(kind.__struct_config__.tag) for kind in get_args(Payload))
SPOKEN = (UserMessage, AssistantMessage, ToolCalled, ToolAnswered, SystemMessage, Imported)


class NewEvent(Value):
    """An event on its way to the store; `tokens` are o200k_base tokens of its payload."""

    payload: Payload
    created_at: datetime
    slot_uid: str | None = None
    turn_id: str | None = None
    tokens: int = 0


class LedgerEvent(Value):
    """An event as the store holds it. `seq` rises by at least one within a session."""

    seq: int
    payload: Payload
    created_at: datetime
    slot_uid: str | None = None
    turn_id: str | None = None
    tokens: int = 0


class Draft(Value):
    """The text of an answer while it streams."""

    slot_uid: str
    turn_id: str
    text: str


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Payload)


def encode_payload(payload: Payload) -> bytes:
    """Encode a payload as it is stored."""
    return _encoder.encode(payload)


def decode_payload(data: bytes) -> Payload:
    """Decode a stored payload; raise `msgspec.DecodeError` on one that isn't ours."""
    return _decoder.decode(data)


def kind_of(payload: Payload) -> str:
    """Name a payload's kind as the store and the frames show it."""
    return str(payload.__struct_config__.tag)
