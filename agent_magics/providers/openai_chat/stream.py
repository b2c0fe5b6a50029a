"""An answer put together from the chunks of a Chat Completions stream, whatever shape they come in.

Each rule is one that a server needs; the corpus in `tests/data/streams.json` holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_magics.core.chat import ChatEvent, ReasoningDelta, TextDelta
from agent_magics.core.messages import Reasoning, ToolCall
from agent_magics.core.text import clean_value
from agent_magics.core.values import TokenUsage
from agent_magics.providers.http.assembly import JoinedText, StreamAssembler
from agent_magics.providers.http.json_values import JSONObject, objects_in
from agent_magics.providers.openai_chat.call_pieces import PartialCalls
from agent_magics.providers.openai_chat.think_tags import ThinkTags
from agent_magics.providers.openai_chat.usage import usage_in

_GOING_ON = ("text", "summary", "data")


class CompletionAssembler(StreamAssembler):
    """One answer while it comes, chunk by chunk."""

    end_mark = "[DONE]"
    whole_field = "choices"
    length_reasons = frozenset({"length", "max_tokens", "model_length"})
    withheld_reason = "content_filter"
    broken_reason = "error"

    def __init__(self, *, provider: str, model: str, new_id: Callable[[], str]) -> None:
        super().__init__(provider=provider, model=model, new_id=new_id)
        self._calls = PartialCalls()
        self._text = JoinedText()
        self._reasoning = JoinedText()
        self._thought: list[str] = []
        self._details: dict[int, JSONObject] = {}
        self._think = ThinkTags()
        self._usage: TokenUsage | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a first token came, a piece of a call included."""
        return self._has_begun or bool(self._calls.all())

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted so far."""
        return self._usage

    @staticmethod
    def is_error(said: object) -> bool:
        """Whether a chunk is an error: servers write them in several ways, Gemini as a list."""
        if isinstance(said, list):
            return True
        if not isinstance(said, dict):
            return False
        return bool(said.get("error")) or "error" in (said.get("type"), said.get("object"))

    def feed(self, chunk: JSONObject) -> Iterator[ChatEvent]:
        """Take one chunk of a stream."""
        self._usage = usage_in(chunk, self._usage)
        for choice in objects_in(chunk.get("choices")):
            # One answer was asked for; other choices are not it.
            if choice.get("index") in (None, 0):
                yield from self._take(choice)

    def feed_whole(self, body: JSONObject) -> Iterator[ChatEvent]:
        """Take a complete answer that came where a stream was asked for."""
        yield from self.feed(body)
        self.finish()

    @property
    def _withheld_warning(self) -> str:
        return f"A content filter of {self._provider} withheld this answer or its rest."

    def _held_back(self) -> Iterator[ChatEvent]:
        yield from self._said(self._think.end())
        yield from self._given(TextDelta, self._text.end())
        yield from self._given(ReasoningDelta, self._reasoning.end())

    def _tool_calls(self) -> Iterator[ToolCall]:
        for call in self._calls.all():
            yield call.ready(self._new_id())

    def _take(self, choice: JSONObject) -> Iterator[ChatEvent]:
        # Whole answers say "message", and so do a few servers' streams.
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, dict):
            yield from self._given(ReasoningDelta, self._reasoning.add(_reasoning_in(said)))
            yield from self._said(self._content(said))
            for detail in objects_in(said.get("reasoning_details")):
                _merge(self._details, detail)
            for piece in objects_in(said.get("tool_calls")):
                self._calls.add(piece)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._stop_reason = finish

    def _content(self, said: JSONObject) -> Iterator[tuple[bool, str]]:
        for is_thought, text in _parts(said.get("content")):
            if is_thought:
                yield True, text
            else:
                yield from self._think.add(text)
        refusal = said.get("refusal")
        if isinstance(refusal, str):
            yield from self._think.add(refusal)

    def _said(self, pieces: Iterator[tuple[bool, str]]) -> Iterator[ChatEvent]:
        for is_thought, text in pieces:
            if is_thought:
                yield from self._given(ReasoningDelta, self._reasoning.add(text))
            else:
                yield from self._given(TextDelta, self._text.add(text))

    def _given(self, kind: type[TextDelta | ReasoningDelta], text: str) -> Iterator[ChatEvent]:
        if not text:
            return
        self._has_begun = True
        if kind is ReasoningDelta:
            self._thought.append(text)
        yield kind(text=text)

    def _whole_reasoning(self) -> Reasoning | None:
        text, blocks = "".join(self._thought), tuple(self._blocks())
        if not text and not blocks:
            return None
        return Reasoning(text=text, provider=self._provider, model=self._model, blocks=blocks)

    def _blocks(self) -> Iterator[JSONObject]:
        """Keep what a server wants back as it came: details of thoughts, what it put on calls."""
        yield from (clean_value(detail) for detail in self._details.values())
        for place, call in enumerate(self._calls.all()):
            if call.extra is not None:
                yield {"call": place, "extra_content": clean_value(call.extra)}


def _merge(details: dict[int, JSONObject], piece: JSONObject) -> None:
    """Take a piece of a detail in: its texts go on, what else it says holds (OpenRouter)."""
    index = piece.get("index")
    index = index if isinstance(index, int) else len(details)
    known = details.setdefault(index, {})
    for name, value in piece.items():
        before = known.get(name)
        goes_on = name in _GOING_ON and isinstance(before, str) and isinstance(value, str)
        if goes_on:
            known[name] = f"{before}{value}"
        elif value is not None:
            known[name] = value


def _reasoning_in(said: JSONObject) -> str:
    for name in ("reasoning_content", "reasoning"):
        value = said.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _parts(content: object) -> Iterator[tuple[bool, str]]:
    """Read content that is a string, or a list of typed parts; (is_thought, text)."""
    if isinstance(content, str):
        yield False, content
        return
    for part in objects_in(content):
        is_thought = part.get("type") in ("thinking", "reasoning")
        inner = part.get("thinking") if is_thought else part.get("text")
        texts = [inner] if isinstance(inner, str) else [t for _, t in _parts(inner)]
        for text in texts:
            yield is_thought, text
