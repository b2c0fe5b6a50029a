"""Put an Anthropic answer together from its events (providers.md § Streams, its last row)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agent_magics.core.chat import CallReady, ChatEvent, Done, ReasoningDelta, TextDelta
from agent_magics.core.errors import StreamInterrupted
from agent_magics.core.messages import Reasoning, TokenUsage, ToolCall
from agent_magics.core.text import clean_text, clean_value
from agent_magics.providers.openai_chat.model_info import is_count
from agent_magics.providers.openai_chat.stream import JoinedText, arguments_in, half

_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})
_REFUSED = "refusal"
_THOUGHTS = ("thinking", "redacted_thinking")


class AnthropicAnswer:
    """One answer in the making: feed it events, then end it.

    Order: `feed` for each event, `end` once after the last. Text is given as it comes, calls at
    the end, since only then it is sure that they are whole. `new_id` makes ids for calls.
    Thoughts are kept as they came, signatures and all; where text and calls stood between them
    is kept too.
    """

    def __init__(self, *, provider: str, model: str, new_id: Callable[[], str]) -> None:
        self._provider = provider
        self._model = model
        self._new_id = new_id
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._stop: str | None = None
        self._is_finished = False
        self._has_begun = False
        self._warnings: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Tell whether a first token came, a piece of a call included."""
        return self._has_begun

    @property
    def is_finished(self) -> bool:
        """Tell whether the server said it is done."""
        return self._is_finished

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted so far; the input includes what was read from a cache.

        A prompt of no tokens was not counted; the output may be, all the same.
        """
        count = self._counts.get
        written = self._counts.get("output_tokens")
        read = count("cache_read_input_tokens", 0)
        sent = count("input_tokens", 0) + read + count("cache_creation_input_tokens", 0)
        if not sent and not written:
            return None
        return TokenUsage(
            input_tokens=sent or None,
            output_tokens=written,
            cached_tokens=read,
            reasoning_tokens=count("thinking_tokens", 0),
        )

    def feed(self, event: dict[str, Any]) -> Iterator[ChatEvent]:
        """Take one event of a stream; what isn't known passes."""
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._count(message.get("usage"))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                yield from self._open(index, block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                yield from self._add(index, delta)
            case {"type": "message_delta"}:
                self._count(event.get("usage"))
                change = event.get("delta")
                stop = change.get("stop_reason") if isinstance(change, dict) else None
                self._stop = stop if isinstance(stop, str) else self._stop
            case {"type": "message_stop"}:
                self._is_finished = True
            case _:
                pass

    def feed_whole(self, message: dict[str, Any]) -> Iterator[ChatEvent]:
        """Take a complete answer that came where a stream was asked for."""
        self._count(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                yield from self._open(index, block)
        stop = message.get("stop_reason")
        self._stop = stop if isinstance(stop, str) else None
        self._is_finished = True

    def warn(self, text: str) -> None:
        """Add a warning to the end of the answer, once."""
        if text not in self._warnings:
            self._warnings.append(text)

    def end(self) -> Iterator[ChatEvent]:
        """Give what is left: calls and `Done`, or raise `StreamInterrupted`."""
        for block in self._blocks.values():
            yield from self._given(block, block.rest())
        if not self._is_finished and self._stop is None:
            raise StreamInterrupted(
                f"{self._provider} ended the answer before it was done; what it said is kept."
            )
        if self._stop == _REFUSED:
            self.warn(f"{self._provider} declined to go on with this answer.")
        for block in self._blocks.values():
            if block.kind == "tool_use":
                call = block.call(self._new_id())
                yield CallReady(call=half(call) if self._stop == _REFUSED else call)
        yield Done(
            usage=self.usage,
            finish="length" if self._stop in _LENGTH else "done",
            reasoning=self._reasoning(),
            warnings=tuple(self._warnings),
        )

    def _open(self, index: int, given: dict[str, Any]) -> Iterator[ChatEvent]:
        block = _Block(given)
        if not block.is_known:
            self.warn(f"{self._provider} sent a part of kind {block.kind!r}; it was left out.")
        self._blocks[index] = block
        self._has_begun = self._has_begun or block.kind == "tool_use"
        yield from self._given(block, block.first())

    def _add(self, index: int, delta: dict[str, Any]) -> Iterator[ChatEvent]:
        block = self._blocks.get(index)
        if block is None:
            self.warn(f"{self._provider} sent a piece of a part it had not begun; it was left out.")
            return
        yield from self._given(block, block.add(delta))

    def _given(self, block: _Block, text: str) -> Iterator[ChatEvent]:
        if not text:
            return
        self._has_begun = True
        yield TextDelta(text=text) if block.kind == "text" else ReasoningDelta(text=text)

    def _count(self, usage: Any) -> None:
        """Take counts in: they are cumulative, so the last one holds."""
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        known = {**(details if isinstance(details, dict) else {}), **usage}
        self._counts.update({name: n for name, n in known.items() if is_count(n)})

    def _reasoning(self) -> Reasoning | None:
        blocks = tuple(each.kept() for each in self._blocks.values() if each.is_whole)
        if not any(block["type"] in _THOUGHTS for block in blocks):
            return None
        thought = [each.said for each in self._blocks.values() if each.kind == "thinking"]
        return Reasoning(
            text="\n\n".join(text for text in thought if text),
            provider=self._provider,
            model=self._model,
            blocks=blocks,
        )


class _Block:
    """One part of an answer while it comes."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.kind = str(given.get("type"))
        self._given = given
        self._joined = JoinedText()
        self._said: list[str] = []
        self._json: list[str] = []
        self._thought = [_str(given, "thinking")]
        self._signature = _str(given, "signature")

    @property
    def said(self) -> str:
        return "".join(self._said)

    @property
    def is_known(self) -> bool:
        return self.kind in ("text", "tool_use", *_THOUGHTS)

    @property
    def is_whole(self) -> bool:
        """Tell whether it may be sent back: a thought that was cut off bears no signature.

        One with characters that the ledger can't hold would not come back as it came.
        """
        if self.kind == "thinking" and not self._signature:
            return False
        kept = self.kept()
        return self.is_known and bool(clean_value(kept) == kept)

    def first(self) -> str:
        """Give what the part's first event said already."""
        match self.kind:
            case "text":
                return self._say(_str(self._given, "text"))
            case "thinking":
                return self._say(self._thought[0])
            case _:
                return ""

    def add(self, delta: dict[str, Any]) -> str:
        """Take a piece; give what it says to a reader."""
        match self.kind, delta.get("type"):
            case "text", "text_delta":
                return self._say(_str(delta, "text"))
            case "thinking", "thinking_delta":
                self._thought.append(_str(delta, "thinking"))
                return self._say(_str(delta, "thinking"))
            case "thinking", "signature_delta":
                self._signature += _str(delta, "signature")
            case "tool_use", "input_json_delta":
                self._json.append(_str(delta, "partial_json"))
            case _:
                pass
        return ""

    def rest(self) -> str:
        """Give what was held back."""
        self._said.append(rest := self._joined.end())
        return rest

    def call(self, call_id: str) -> ToolCall:
        raw = "".join(self._json)
        whole = self._given.get("input")
        arguments = whole if isinstance(whole, dict) and whole else arguments_in(raw)
        return ToolCall(
            call_id=call_id,
            tool_name=clean_text(_str(self._given, "name")),
            arguments=None if arguments is None else clean_value(arguments),
            raw=clean_text(raw) if arguments is None else "",
        )

    def kept(self) -> dict[str, Any]:
        """Give what is kept of the part: a thought as it came, of the rest its place."""
        match self.kind:
            case "thinking":
                thought = "".join(self._thought)
                return {**self._given, "thinking": thought, "signature": self._signature}
            case "redacted_thinking":
                return self._given
            case "text":
                return {"type": "text", "characters": len(self.said)}
            case _:
                return {"type": self.kind}

    def _say(self, text: str) -> str:
        self._said.append(given := self._joined.add(text))
        return given


def _str(where: dict[str, Any], name: str) -> str:
    value = where.get(name)
    return value if isinstance(value, str) else ""
