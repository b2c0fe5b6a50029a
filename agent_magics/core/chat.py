"""One request to a model and what comes back, the same for every provider."""

from __future__ import annotations

from typing import Any, Literal

from agent_magics.core.messages import Message, Reasoning, ToolCall
from agent_magics.core.redact import shown_model
from agent_magics.core.slots import ModelParams
from agent_magics.core.values import TokenUsage, Value

UNKNOWN_WINDOW = 128_000


class ModelInfo(Value):
    """Facts about a model; `context_window` in tokens, None where nobody told.

    `has_vision`: it takes images; None where nobody told. `is_demo`: the small embedded model,
    which can't do real work.
    """

    name: str
    provider: str
    context_window: int | None = None
    has_tools: bool = True
    has_vision: bool | None = None
    is_demo: bool = False

    @property
    def spec(self) -> str:
        """The model as people write it: `provider:name`."""
        return f"{self.provider}:{self.name}"

    @property
    def shown(self) -> str:
        """The model as sentences and outputs write it: see `shown_model`."""
        return shown_model(self.spec)


class ToolDefinition(Value):
    """A tool as a model is told of it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ChatRequest(Value):
    """Everything one request says. `model` has no provider prefix. The first message is the
    system part, the last a user message or tool results. `tool_choice` "none" keeps tools listed
    and forbids calls (docs/decisions.md#13).
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    params: ModelParams = ModelParams()
    purpose: str = "turn"


class TextDelta(Value, tag="text_delta"):
    text: str


class ReasoningDelta(Value, tag="reasoning_delta"):
    text: str


class CallReady(Value, tag="call_ready"):
    """A tool call is complete."""

    call: ToolCall


class Retrying(Value, tag="retrying"):
    """The request failed before its first token and will be sent again after `wait_s`.

    `usage`: what the server had counted by then; None where it told nothing.
    """

    attempt: int
    reason: str
    wait_s: float
    usage: TokenUsage | None = None


class Notice(Value, tag="notice"):
    """Something to show while the answer is waited for; it isn't kept."""

    text: str


class Done(Value, tag="done"):
    """The last event of an answer. `usage` None: unknown, never zero.

    `replayed_ms`: the answer comes from a recording, and so long it took then
    (docs/decisions.md#61).
    """

    usage: TokenUsage | None = None
    finish: Literal["done", "length"] = "done"
    reasoning: Reasoning | None = None
    warnings: tuple[str, ...] = ()
    replayed_ms: int | None = None


ChatEvent = TextDelta | ReasoningDelta | CallReady | Retrying | Notice | Done
