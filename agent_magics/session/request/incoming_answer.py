"""One answer of a model while it comes."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_magics.core.chat import (
    CallReady,
    ChatEvent,
    Done,
    ModelInfo,
    Notice,
    ReasoningDelta,
    Retrying,
    TextDelta,
)
from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Reasoning, ToolCall
from agent_magics.core.text import clean_text
from agent_magics.core.values import TokenUsage


@dataclass(kw_only=True)
class IncomingAnswer:
    """What has come so far of the answer to one request.

    `estimated_tokens` and `digest` are the request's. `usage_at_break` is what the server had
    counted where the answer broke off; `resumes_s` when the next attempt begins, after one failed.
    """

    began_s: float
    estimated_tokens: int
    digest: str
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    retried: list[Retrying] = field(default_factory=list)
    done: Done | None = None
    usage_at_break: TokenUsage | None = None
    was_sent: bool = True
    first_token_s: float | None = None
    resumes_s: float | None = None

    def add(self, event: ChatEvent, now_s: float) -> None:
        """Take in one event of the stream."""
        match event:
            case TextDelta(text=text):
                self.text.append(text)
            case ReasoningDelta(text=text):
                self.reasoning.append(text)
            case CallReady(call=call):
                self.calls.append(call)
            case Retrying(wait_s=wait_s):
                self.retried.append(event)
                self.resumes_s = now_s + wait_s
            case Done():
                self.done = event
            case Notice():  # it is shown, and no part of the answer
                pass

    def note_failure(self, error: Exception) -> None:
        """Remember what is known of an answer that failed."""
        self.resumes_s = None
        if isinstance(error, ProviderError):
            self.usage_at_break = error.usage
            self.was_sent = error.was_sent

    @property
    def full_text(self) -> str:
        return clean_text("".join(self.text))

    @property
    def reasoning_text(self) -> str:
        """What the model reasoned, as far as it is text."""
        if self.done is not None and self.done.reasoning is not None:
            return self.done.reasoning.text
        return clean_text("".join(self.reasoning))

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted, of an answer that broke off too."""
        return self.done.usage if self.done else self.usage_at_break

    @property
    def has_come(self) -> bool:
        """Return whether the model has begun to answer."""
        return bool(self.text or self.reasoning or self.calls or self.done)

    def waits_for_attempt(self, now_s: float) -> bool:
        """Return whether an attempt failed and the next one has yet to begin."""
        return self.resumes_s is not None and now_s < self.resumes_s and not self.has_come

    def reasoning_of(self, model: ModelInfo) -> Reasoning | None:
        """Return the reasoning as `model` must get it back; None where there was none."""
        if self.done is not None and self.done.reasoning is not None:
            return self.done.reasoning
        if not self.reasoning:
            return None
        return Reasoning(text=self.reasoning_text, provider=model.provider, model=model.name)
