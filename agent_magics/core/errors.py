"""Every error a caller can meet, in one tree; a branch is what the caller does next.

AgentError
├── BuildError                  change what was registered, build again
│   ├── NoModelProvider · NameConflict · SkillDependencyNotMet · PluginInitFailed
│   ├── PluginHookContractViolation · StorageDuplicate
│   └── InvalidDefaultModel · InvalidModelConfig
├── InputValidation             change the input
├── Busy                        wait, or stop what runs
│   ├── SessionBusy · TurnBusy
├── ModelError                  choose or reach another model, or try again
│   ├── ModelNotSupported · NoModel
│   └── ProviderError
│       ├── ContextOverflow · StreamInterrupted
├── ToolError                   goes to the model as a result
│   ├── ToolExecutionError · ToolTimeout · ToolNotFound · Interrupted
├── MaxToolCallsExceeded · SpendingLimitReached · SkillNotFound
├── StoreError                  nothing was lost; mend the store or open another session
│   ├── StorageError
│   ├── SessionNotFound (SessionClosed) · SessionLocked (SessionReadonly)
├── SlotError                   name another slot, or change this one
│   ├── SlotNotFound · SlotAlreadyExists · SlotReadonly · SlotProtected
├── CompactionError             the view before is still valid
│   ├── CompactError (NothingHelped) · NothingToCompact · FixedContextExceedsBudget
│   ├── CompactionStale
└── PluginAborted · RequestCancelled · InternalPanic (PluginFailed) · AgentShutdown

docs/errors.md explains every code (docs/decisions.md#49). Every message is a sentence that says
what failed, with which value, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent_magics.core.build_errors import (
    BuildError as BuildError,
    InvalidDefaultModel as InvalidDefaultModel,
    InvalidModelConfig as InvalidModelConfig,
    NameConflict as NameConflict,
    NoModelProvider as NoModelProvider,
    PluginHookContractViolation as PluginHookContractViolation,
    PluginInitFailed as PluginInitFailed,
    SkillDependencyNotMet as SkillDependencyNotMet,
    StorageDuplicate as StorageDuplicate,
)
from agent_magics.core.error_root import AgentError as AgentError
from agent_magics.core.redact import shown_model
from agent_magics.core.wording import listed, near, quoted, said_by as said_by

if TYPE_CHECKING:  # messages have errors of their own
    from agent_magics.core.values import TokenUsage


class InputValidation(AgentError):
    """What the caller gave can't be used; the message says what would be."""

    code = "INPUT_VALIDATION"


class Busy(AgentError):
    """Something runs that must end first."""


class SessionBusy(Busy):
    code = "SESSION_BUSY"

    def __init__(self, session_id: str) -> None:
        super().__init__(f'Session "{session_id}" is open here; close it first.')


class TurnBusy(Busy):
    code = "TURN_BUSY"

    def __init__(self, slot: str, doing: str = "a turn") -> None:
        super().__init__(
            f'Slot "{slot}" is busy with {doing}; wait for it, stop it, or use another slot.'
        )


class ModelError(AgentError):
    """No answer came from a model."""

    source_component = "provider"


class ModelNotSupported(ModelError):
    code = "MODEL_NOT_SUPPORTED"
    source_component = "agent"

    def __init__(self, model: str, known: Sequence[str]) -> None:
        shown = shown_model(model)
        provider, colon, name = shown.partition(":")
        meant = near(provider, known, behind=f"{colon}{name}")
        super().__init__(
            f'No provider answers for model "{shown}".{meant} Write provider:model with one of:'
            f" {listed(known)}."
        )


class NoModel(ModelError):
    """No model was named and none was found."""

    code = "MODEL_NOT_SUPPORTED"
    source_component = "agent"

    def __init__(self, remedies: str) -> None:
        super().__init__(f"No model answers: {remedies}")


class ProviderError(ModelError):
    """A server refused, failed or lied; `status` is its HTTP status where it gave one.

    `window` and `used` in tokens, where the server told them (`kind` "output_reservation": what
    is left between them is the largest `max_tokens`). `retry_after_s`: the wait it asked for.
    `usage`: what the server had counted when it broke off. `was_sent` False: nobody was asked.
    """

    code = "PROVIDER_ERROR"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        kind: str = "other",
        window: int | None = None,
        used: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.status = status
        self.kind = kind
        self.window = window
        self.used = used
        self.retry_after_s: float | None = None
        self.usage: TokenUsage | None = None
        self.was_sent = True


class ContextOverflow(ProviderError):
    """The request was longer than the model's window; `window` and `used` in tokens, if told."""

    code = "CONTEXT_OVERFLOW"

    def __init__(self, message: str, *, window: int | None = None, used: int | None = None) -> None:
        super().__init__(message, kind="input_overflow", window=window, used=used)


class StreamInterrupted(ProviderError):
    """The stream ended before the answer did; what had come stays."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="interrupted")


class ToolError(AgentError):
    """A tool call failed; the model is told in its result."""

    source_component = "tool"


class ToolExecutionError(ToolError):
    code = "TOOL_EXECUTION_ERROR"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'Tool "{name}" failed: {reason}')


class ToolTimeout(ToolError):
    code = "TOOL_TIMEOUT"

    def __init__(self, name: str, timeout_s: float) -> None:
        super().__init__(
            f'Tool "{name}" did not answer within {timeout_s:g} s; it may still be running.'
        )


class ToolNotFound(ToolError):
    code = "TOOL_NOT_FOUND"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f'There is no tool "{name}". Tools here: {listed(known)}.')


class Interrupted(ToolError):
    """Code on the main thread was interrupted by the person."""

    code = "TOOL_EXECUTION_ERROR"

    def __init__(self) -> None:
        super().__init__("Interrupted by the person while it ran.")


class MaxToolCallsExceeded(AgentError):
    code = "MAX_TOOL_CALLS_EXCEEDED"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The turn asked for more than {limit} tool calls; the rest did not run."
            " Ask again to go on, or raise max_tool_calls_per_turn."
        )


class SpendingLimitReached(AgentError):
    """No further request is sent; what was said stays."""

    code = "SPENDING_LIMIT_REACHED"

    def __init__(self, what: str, reached: str) -> None:
        super().__init__(
            f"The spending limit of this {what} is reached ({reached}), so nothing more was sent."
            f" Raise max_cost_per_{what} to go on."
        )


class SkillNotFound(AgentError):
    code = "SKILL_NOT_FOUND"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f'There is no skill "/{name}".{near(name, known)} Skills here: {listed(known)}. A'
            " prompt that only begins so needs a word before it."
        )


class StoreError(AgentError):
    """The store did not do what was asked; what it holds is unchanged."""

    source_component = "storage"


class StorageError(StoreError):
    code = "STORAGE_ERROR"


class SessionNotFound(StoreError):
    code = "SESSION_NOT_FOUND"
    source_component = "agent"

    def __init__(self, session_id: str, known: Sequence[str] = ()) -> None:
        meant = near(session_id, known) or (" %sessions lists what there is." if known else "")
        super().__init__(f'No session "{session_id}" is open or stored here.{meant}')


class SessionLocked(StoreError):
    code = "SESSION_LOCKED"

    def __init__(self, session: str, holder: str) -> None:
        super().__init__(
            f"This session is open in another kernel ({holder})."
            f" %sessions take {quoted(session)} takes it over,"
            f" %sessions open {quoted(session)} --readonly looks at it meanwhile."
        )
        self.holder = holder


class SessionReadonly(SessionLocked):
    """The session can't be written from here; `because` says why as the end of a sentence."""

    def __init__(self, session: str, because: str) -> None:
        StoreError.__init__(
            self,
            f'Session "{session}" is read-only here: {because}.'
            f" %sessions take {quoted(session)} makes it writable.",
        )
        self.holder = because


class SessionClosed(SessionNotFound):
    """A handle of a session that was closed, while the session itself is stored."""

    def __init__(self, session: str) -> None:
        StoreError.__init__(
            self,
            f'This handle of session "{session}" is closed: settings changed, or another session'
            " was opened. agent_magics.current() gives the one in use.",
        )


class SlotError(AgentError):
    """The slot that was named can't do this."""


class SlotNotFound(SlotError):
    code = "SLOT_NOT_FOUND"

    def __init__(self, slot: str, known: Sequence[str]) -> None:
        super().__init__(
            f'Nothing called "{slot}".{near(slot, known)} Slots here: {listed(known)}.'
        )


class SlotAlreadyExists(SlotError):
    code = "SLOT_ALREADY_EXISTS"

    def __init__(self, slot: str) -> None:
        super().__init__(f'There is already a slot "{slot}"; choose another name or delete it.')


class SlotReadonly(SlotError):
    code = "SLOT_READONLY"

    def __init__(self, slot: str) -> None:
        super().__init__(
            f'Slot "{slot}" is read-only; derive a slot from it, or set its mode to full.'
        )


class SlotProtected(SlotError):
    code = "SLOT_PROTECTED"

    def __init__(self, slot: str, why: str, *, deed: str = "deleted") -> None:
        super().__init__(f'Slot "{slot}" can\'t be {deed}: {why}.')


class CompactionError(AgentError):
    """No checkpoint was made; the view before is still the valid one."""


class CompactError(CompactionError):
    code = "COMPACT_ERROR"
    source_component = "provider"


class NothingHelped(CompactError):
    """Recovery shortened what it could, and the request still doesn't fit."""


class NothingToCompact(CompactionError):
    code = "NOTHING_TO_COMPACT"

    def __init__(self, slot: str, why: str) -> None:
        super().__init__(f'Nothing to compact in "{slot}": {why}.')


class FixedContextExceedsBudget(CompactionError):
    code = "FIXED_CONTEXT_EXCEEDS_BUDGET"

    def __init__(
        self,
        tokens: Mapping[str, int],
        threshold: int,
        larger: str = "use a model with a larger window",
    ) -> None:
        parts = ", ".join(f"{name} {count:,}" for name, count in tokens.items() if count)
        super().__init__(
            f"What is sent with every request ({parts} tokens) leaves no room under the threshold"
            f" of {threshold:,} tokens; shorten the largest part or {larger}."
        )
        self.tokens = dict(tokens)
        self.threshold = threshold


class CompactionStale(CompactionError):
    code = "COMPACTION_STALE"

    def __init__(self, slot: str) -> None:
        super().__init__(
            f'Slot "{slot}" changed while it was being summarised; the summary was dropped.'
            " Run %compact again."
        )


class PluginAborted(AgentError):
    code = "PLUGIN_ABORTED"
    source_component = "plugin"

    def __init__(self, hook: str, reason: str) -> None:
        super().__init__(f"A plugin stopped this at {hook}: {reason}")


class RequestCancelled(AgentError):
    code = "REQUEST_CANCELLED"

    def __init__(self) -> None:
        super().__init__("The turn was stopped; what had been said is kept.")


class InternalPanic(AgentError):
    code = "INTERNAL_PANIC"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"agent-magics failed inside: {reason}. This is our bug; please report it."
        )


class PluginFailed(InternalPanic):
    """A plugin's hook raised; what it raised is the cause of this error."""

    source_component = "plugin"

    def __init__(self, plugin_id: str, hook: str, reason: str) -> None:
        AgentError.__init__(
            self,
            f'Plugin "{plugin_id}" failed at {hook}: {reason}. Mend it or take it out; what was'
            " recorded is kept.",
        )


class AgentShutdown(AgentError):
    code = "AGENT_SHUTDOWN"

    def __init__(self) -> None:
        super().__init__("This agent has been shut down; build a new one.")
