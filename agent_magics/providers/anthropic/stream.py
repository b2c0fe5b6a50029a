"""An answer put together from the events of a Messages stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_magics.core.chat import ChatEvent, ReasoningDelta, TextDelta
from agent_magics.core.messages import Reasoning, ToolCall
from agent_magics.core.values import TokenUsage
from agent_magics.providers.anthropic.content_block import REASONING_KINDS, ContentBlock
from agent_magics.providers.http.assembly import StreamAssembler
from agent_magics.providers.http.json_values import JSONObject, is_token_count


class MessageAssembler(StreamAssembler):
    """One answer while it comes, event by event.

    Reasoning is kept as it came, signatures and all; where text and calls stood between its parts
    is kept too, since the server checks that it gets back what it said.
    """

    whole_field = "content"
    length_reasons = frozenset({"max_tokens", "model_context_window_exceeded"})
    withheld_reason = "refusal"

    def __init__(self, *, provider: str, model: str, new_id: Callable[[], str]) -> None:
        super().__init__(provider=provider, model=model, new_id=new_id)
        self._blocks: dict[int, ContentBlock] = {}
        self._counts: dict[str, int] = {}

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

    @staticmethod
    def is_error(said: object) -> bool:
        """Whether an event is an error."""
        return isinstance(said, dict) and said.get("type") == "error"

    def feed(self, event: JSONObject) -> Iterator[ChatEvent]:
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
                self._stop_reason = stop if isinstance(stop, str) else self._stop_reason
            case {"type": "message_stop"}:
                self._is_finished = True
            case _:
                pass

    def feed_whole(self, message: JSONObject) -> Iterator[ChatEvent]:
        """Take a complete answer that came where a stream was asked for."""
        self._count(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                yield from self._open(index, block)
        stop = message.get("stop_reason")
        self._stop_reason = stop if isinstance(stop, str) else None
        self._is_finished = True

    @property
    def _withheld_warning(self) -> str:
        return f"{self._provider} declined to go on with this answer."

    def _held_back(self) -> Iterator[ChatEvent]:
        for block in self._blocks.values():
            yield from self._given(block, block.rest())

    def _tool_calls(self) -> Iterator[ToolCall]:
        for block in self._blocks.values():
            if block.kind == "tool_use":
                yield block.call(self._new_id())

    def _open(self, index: int, given: JSONObject) -> Iterator[ChatEvent]:
        block = ContentBlock(given)
        if not block.is_known:
            self.warn(f"{self._provider} sent a part of kind {block.kind!r}; it was left out.")
        self._blocks[index] = block
        self._has_begun = self._has_begun or block.kind == "tool_use"
        yield from self._given(block, block.first())

    def _add(self, index: int, delta: JSONObject) -> Iterator[ChatEvent]:
        block = self._blocks.get(index)
        if block is None:
            self.warn(f"{self._provider} sent a piece of a part it had not begun; it was left out.")
            return
        yield from self._given(block, block.add(delta))

    def _given(self, block: ContentBlock, text: str) -> Iterator[ChatEvent]:
        if not text:
            return
        self._has_begun = True
        yield TextDelta(text=text) if block.kind == "text" else ReasoningDelta(text=text)

    def _count(self, usage: object) -> None:
        """Take counts in: they are cumulative, so the last one holds."""
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        known = {**(details if isinstance(details, dict) else {}), **usage}
        self._counts.update({name: n for name, n in known.items() if is_token_count(n)})

    def _whole_reasoning(self) -> Reasoning | None:
        blocks = tuple(each.kept() for each in self._blocks.values() if each.is_whole)
        if not any(block["type"] in REASONING_KINDS for block in blocks):
            return None
        thought = [each.said for each in self._blocks.values() if each.kind == "thinking"]
        return Reasoning(
            text="\n\n".join(text for text in thought if text),
            provider=self._provider,
            model=self._model,
            blocks=blocks,
        )
