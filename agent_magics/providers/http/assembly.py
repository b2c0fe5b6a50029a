"""Answers put together from streams of JSON objects: what every protocol's have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

from agent_magics.core.chat import CallReady, ChatEvent, Done
from agent_magics.core.errors import StreamInterrupted
from agent_magics.core.messages import Reasoning, ToolCall
from agent_magics.core.text import clean_text
from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.json_values import JSONObject
from agent_magics.providers.http.tool_calls import unrunnable


class StreamAssembler(ABC):
    """One answer while it comes.

    Order: `feed` for each object, or `feed_whole` once; then `end`, once. Text is yielded as it
    comes, calls at the end, since only then it is sure that they are whole. `new_id` makes ids
    for calls: servers leave theirs out, or use them again.
    """

    end_mark: ClassVar[str | None] = None
    """The data of the event that ends a stream, where it is no JSON."""
    whole_field: ClassVar[str]
    """The field whose list makes a JSON body a complete answer."""
    length_reasons: ClassVar[frozenset[str]]
    """Why an answer stops that was cut at a limit of tokens."""
    withheld_reason: ClassVar[str]
    """Why an answer stops that the provider doesn't let out."""
    broken_reason: ClassVar[str | None] = None
    """Why an answer stops that failed behind its first token."""

    def __init__(self, *, provider: str, model: str, new_id: Callable[[], str]) -> None:
        self._provider = provider
        self._model = model
        self._new_id = new_id
        self._stop_reason: str | None = None
        self._is_finished = False
        self._has_begun = False
        self._warnings: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether a first token came, a piece of a call included."""
        return self._has_begun

    @property
    def is_finished(self) -> bool:
        """Whether the server said that it is done."""
        return self._is_finished

    @property
    @abstractmethod
    def usage(self) -> TokenUsage | None:
        """What the server counted so far; None where it counted nothing."""

    @staticmethod
    @abstractmethod
    def is_error(said: object) -> bool:
        """Whether what came in a stream is an error."""

    @abstractmethod
    def feed(self, said: JSONObject) -> Iterator[ChatEvent]:
        """Take one object of a stream; what isn't known passes."""

    @abstractmethod
    def feed_whole(self, body: JSONObject) -> Iterator[ChatEvent]:
        """Take a complete answer that came where a stream was asked for."""

    def finish(self) -> None:
        """Note that the server said that it is done."""
        self._is_finished = True

    def warn(self, text: str) -> None:
        """Add a warning to the end of the answer, once."""
        if text not in self._warnings:
            self._warnings.append(text)

    def end(self) -> Iterator[ChatEvent]:
        """Yield what is left: text, calls and `Done`; raise `StreamInterrupted` where it broke."""
        yield from self._held_back()
        is_broken = self._stop_reason is not None and self._stop_reason == self.broken_reason
        if is_broken or (not self._is_finished and self._stop_reason is None):
            raise StreamInterrupted(
                f"{self._provider} ended the answer before it was done; what it said is kept."
            )
        is_withheld = self._stop_reason == self.withheld_reason
        if is_withheld:
            self.warn(self._withheld_warning)
        for call in self._tool_calls():
            # What was withheld may be a part of the call, however whole its arguments look.
            yield CallReady(call=unrunnable(call) if is_withheld else call)
        yield Done(
            usage=self.usage,
            finish="length" if self._stop_reason in self.length_reasons else "done",
            reasoning=self._whole_reasoning(),
            warnings=tuple(self._warnings),
        )

    @property
    @abstractmethod
    def _withheld_warning(self) -> str: ...

    @abstractmethod
    def _held_back(self) -> Iterator[ChatEvent]:
        """Yield what waited for more to come."""

    @abstractmethod
    def _tool_calls(self) -> Iterator[ToolCall]: ...

    @abstractmethod
    def _whole_reasoning(self) -> Reasoning | None: ...


class JoinedText:
    """Text in pieces whose cuts may fall between the halves of a surrogate pair."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """Take a piece, return what of it is whole."""
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean_text(text)

    def end(self) -> str:
        """Return what was held back."""
        half, self._half = self._half, ""
        return clean_text(half)
