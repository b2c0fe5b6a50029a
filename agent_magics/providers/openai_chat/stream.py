"""Put an OpenAI-style answer together from its chunks, whatever shape they come in.

Each rule is a row of providers.md § Streams; the corpus in `tests/data/streams.json` holds them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from agent_magics.core.chat import CallReady, ChatEvent, Done, ReasoningDelta, TextDelta
from agent_magics.core.errors import StreamInterrupted
from agent_magics.core.messages import Reasoning, TokenUsage, ToolCall
from agent_magics.core.text import clean_text, clean_value
from agent_magics.providers.openai_chat.model_info import is_count

_GOING_ON = ("text", "summary", "data")
_LENGTH = frozenset({"length", "max_tokens", "model_length"})
_BROKEN, _WITHHELD = "error", "content_filter"
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]")
_OPEN, _CLOSE = "<think>", "</think>"


class Answer:
    """One answer in the making: feed it chunks, then end it.

    Order: `feed` for each chunk, `end` once after the last. Text is given as it comes, calls at
    the end, since only then it is sure that they are whole. `new_id` makes ids for calls:
    servers leave theirs out, or use them again.
    """

    def __init__(self, *, provider: str, model: str, new_id: Callable[[], str]) -> None:
        self._provider = provider
        self._model = model
        self._new_id = new_id
        self._calls = _Calls()
        self._text = JoinedText()
        self._reasoning = JoinedText()
        self._thought: list[str] = []
        self._details: dict[int, dict[str, Any]] = {}
        self._think = _ThinkTags()
        self._usage: TokenUsage | None = None
        self._finish: str | None = None
        self._is_finished = False
        self._has_begun = False
        self._warnings: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Tell whether a first token came, a piece of a call included."""
        return self._has_begun or bool(self._calls.all())

    @property
    def usage(self) -> TokenUsage | None:
        """What the server counted so far."""
        return self._usage

    def feed(self, chunk: dict[str, Any]) -> Iterator[ChatEvent]:
        """Take one chunk of a stream."""
        self._usage = _usage_in(chunk, self._usage)
        for choice in _dicts(chunk.get("choices")):
            if choice.get("index") in (None, 0):
                yield from self._take(choice)

    def feed_whole(self, body: dict[str, Any]) -> Iterator[ChatEvent]:
        """Take a complete answer that came where a stream was asked for."""
        yield from self.feed(body)
        self.finish()

    def finish(self) -> None:
        """Note that the server said it is done (`[DONE]`)."""
        self._is_finished = True

    def warn(self, text: str) -> None:
        """Add a warning to the end of the answer, once."""
        if text not in self._warnings:
            self._warnings.append(text)

    def end(self) -> Iterator[ChatEvent]:
        """Give what is left: calls and `Done`, or raise `StreamInterrupted`."""
        yield from self._said(self._think.end())
        yield from self._given(TextDelta, self._text.end())
        yield from self._given(ReasoningDelta, self._reasoning.end())
        if self._finish == _BROKEN or (not self._is_finished and self._finish is None):
            raise StreamInterrupted(
                f"{self._provider} ended the answer before it was done; what it said is kept."
            )
        if self._finish == _WITHHELD:
            self.warn(f"A content filter of {self._provider} withheld this answer or its rest.")
        for draft in self._calls.all():
            call = draft.ready(self._new_id())
            yield CallReady(call=half(call) if self._finish == _WITHHELD else call)
        yield Done(
            usage=self._usage,
            finish="length" if self._finish in _LENGTH else "done",
            reasoning=self._whole_reasoning(),
            warnings=tuple(self._warnings),
        )

    def _take(self, choice: dict[str, Any]) -> Iterator[ChatEvent]:
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, dict):
            yield from self._given(ReasoningDelta, self._reasoning.add(_reasoning_in(said)))
            yield from self._said(self._content(said))
            for detail in _dicts(said.get("reasoning_details")):
                _merge(self._details, detail)
            for piece in _dicts(said.get("tool_calls")):
                self._calls.add(piece)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish

    def _content(self, said: dict[str, Any]) -> Iterator[tuple[bool, str]]:
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

    def _blocks(self) -> Iterator[dict[str, Any]]:
        """Keep what a server wants back as it came: details of thoughts, what it put on calls."""
        yield from (clean_value(detail) for detail in self._details.values())
        for place, draft in enumerate(self._calls.all()):
            if draft.extra is not None:
                yield {"call": place, "extra_content": clean_value(draft.extra)}


def _merge(details: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
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


class JoinedText:
    """Text in pieces whose cuts may fall between the halves of a surrogate pair."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean_text(text)

    def end(self) -> str:
        half, self._half = self._half, ""
        return clean_text(half)


class _ThinkTags:
    """Tell a leading `<think>…</think>` from the answer; pieces are (is_thought, text).

    Only at the start: further on the words may be what the user asked about.
    """

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def add(self, text: str) -> Iterator[tuple[bool, str]]:
        self._held += text
        if self._state == "start":
            lead = self._held.lstrip()
            if lead.startswith(_OPEN):
                self._state, self._held = "thinking", lead[len(_OPEN) :]
            elif not _OPEN.startswith(lead):
                self._state = "text"
        if self._state == "thinking":
            yield from self._thinking()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        if self._state == "text" and self._held:
            yield False, self._held
            self._held = ""

    def _thinking(self) -> Iterator[tuple[bool, str]]:
        thought, closing, rest = self._held.partition(_CLOSE)
        if closing:
            self._state, self._held = "after", rest
        else:
            kept = _overlap(thought, _CLOSE)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield True, thought

    def end(self) -> Iterator[tuple[bool, str]]:
        held, self._held = self._held, ""
        if held:
            yield self._state == "thinking", held


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    for size in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-size:]):
            return size
    return 0


class _Draft:
    """A tool call in the making."""

    def __init__(self, server_id: str) -> None:
        self.server_id = server_id
        self.name = ""
        self.extra: dict[str, Any] | None = None
        self._pieces: list[str] = []
        self._whole: dict[str, Any] | None = None

    def add(self, piece: dict[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        name = function.get("name")
        if isinstance(name, str) and not self.name:
            self.name = name
        if isinstance(piece.get("extra_content"), dict):
            self.extra = piece["extra_content"]
        match function.get("arguments"):
            case dict() as whole:
                self._whole = whole
            case str() as text:
                self._pieces.append(text)
            case _:
                pass

    def is_complete(self) -> bool:
        """Tell whether what came so far is a JSON object already."""
        text = "".join(self._pieces)
        return self._whole is not None or (bool(text.strip()) and arguments_in(text) is not None)

    def ready(self, call_id: str) -> ToolCall:
        raw = "".join(self._pieces)
        arguments = self._whole if self._whole is not None else arguments_in(raw)
        return ToolCall(
            call_id=call_id,
            tool_name=clean_text(self.name),
            arguments=None if arguments is None else clean_value(arguments),
            raw=clean_text(raw) if arguments is None else "",
        )


class _Calls:
    """Which piece belongs to which call."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._by_index: dict[int, _Draft] = {}
        self._by_id: dict[str, _Draft] = {}

    def all(self) -> list[_Draft]:
        return self._drafts

    def add(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        index = index if isinstance(index, int) else None
        given = piece.get("id")
        server_id = given if isinstance(given, str) else ""
        draft = self._open_at(index)
        if draft is None or _begins_another(draft, server_id, piece):
            draft = self._by_id.get(server_id) if index is None else None
            draft = draft or self._new(server_id)
            if index is not None:
                self._by_index[index] = draft
        draft.server_id = draft.server_id or server_id
        if draft.server_id:
            self._by_id.setdefault(draft.server_id, draft)
        draft.add(piece)

    def _open_at(self, index: int | None) -> _Draft | None:
        if index is not None:
            return self._by_index.get(index)
        return self._drafts[-1] if self._drafts else None

    def _new(self, server_id: str) -> _Draft:
        draft = _Draft(server_id)
        self._drafts.append(draft)
        return draft


def _begins_another(draft: _Draft, server_id: str, piece: dict[str, Any]) -> bool:
    """A different id is another call; without ids, a named piece after a complete one is."""
    if server_id:
        return bool(draft.server_id) and server_id != draft.server_id
    function = piece.get("function")
    if not isinstance(function, dict) or not function.get("name"):
        return False
    return bool(function.get("arguments")) and draft.is_complete()


def half(call: ToolCall) -> ToolCall:
    """Give a call that can't run: what was withheld may be a part of it, whatever came reads as."""
    raw = json.dumps(call.arguments, ensure_ascii=False) if call.arguments else call.raw
    return msgspec.structs.replace(call, arguments=None, raw=raw)


def arguments_in(text: str, depth: int = 0) -> dict[str, Any] | None:
    """Read arguments: nothing is `{}`, JSON in a JSON string is unwrapped once."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str) and depth == 0:
        return arguments_in(value, depth=1)
    if value is None:
        return {}
    return value if isinstance(value, dict) and _is_strict(value) else None


def _is_strict(value: dict[str, Any]) -> bool:
    """Python reads NaN and Infinity; a strict server would refuse them in every later request."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def _usage_in(chunk: dict[str, Any], before: TokenUsage | None) -> TokenUsage | None:
    """Read the counts; null is unknown, and so is a prompt of no tokens: there is none.

    What a chunk doesn't tell stays as it was told before.
    """
    usage = chunk.get("usage")
    if not isinstance(usage, dict):
        groq = chunk.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, dict) else None
    if not isinstance(usage, dict):
        return before
    sent, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    sent = sent if is_count(sent) and sent else None
    written = written if is_count(written) and (written or sent) else None
    if sent is None and written is None:
        return before
    return TokenUsage(
        input_tokens=before.input_tokens if sent is None and before else sent,
        output_tokens=before.output_tokens if written is None and before else written,
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(where: Any, name: str) -> int:
    value = where.get(name) if isinstance(where, dict) else None
    return value if is_count(value) else 0


def _reasoning_in(said: dict[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        value = said.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _parts(content: Any) -> Iterator[tuple[bool, str]]:
    """Read content that is a string, or a list of typed parts; (is_thought, text)."""
    if isinstance(content, str):
        yield False, content
        return
    for part in _dicts(content):
        is_thought = part.get("type") in ("thinking", "reasoning")
        inner = part.get("thinking") if is_thought else part.get("text")
        texts = [inner] if isinstance(inner, str) else [t for _, t in _parts(inner)]
        for text in texts:
            yield is_thought, text


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def fewest_tokens(texts: Iterator[str]) -> int:
    """Give a number of tokens that no tokenizer goes under.

    The words between spaces; of scripts that use none, a token for four characters.
    """
    return sum(len(text.split()) + len(_SPACELESS.findall(text)) // 4 for text in texts)
