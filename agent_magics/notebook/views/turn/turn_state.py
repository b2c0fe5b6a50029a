"""What the turn view shows of a running turn, and what of it has changed since it was last told.

The shapes below are the JSON that `widgets/src/views/turn_state.js` describes, of which
`tests/data/turn_view.json` is an example that tests check from both sides. A turn has a place for
each output that it grows in; each place has items, in the order they came, and the newest place
has the status.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from agent_magics.core.turns import ToolEnded, ToolStarted
from agent_magics.core.values import Value
from agent_magics.notebook.kernel.approval import visible
from agent_magics.notebook.text.markdown import safe_markdown, settled
from agent_magics.notebook.text.page import without_controls

MAX_SHOWN_CHARACTERS = 4_000
Phase = Literal["waiting", "thinking", "answering", "tools", "asking", "stopping", "ended"]
CallPhase = Literal["running", "done", "failed"]


class TextItem(Value, tag_field="kind", tag="text"):
    """A piece of the answer, as safe Markdown that stands by itself."""

    id: int
    text: str


class ReasoningItem(Value, tag_field="kind", tag="reasoning"):
    """The model's private reasoning; it is seen while the kernel lives and never saved."""

    id: int
    text: str


class CallItem(Value, tag_field="kind", tag="call"):
    """A tool call: its line, how it ended (`said`), and what went in and came out.

    `cut` counts the characters that aren't here; they come when they are asked for.
    """

    id: int
    line: str
    phase: CallPhase
    said: str
    arguments: tuple[tuple[str, str], ...]
    result: str
    cut: int


class NoteItem(Value, tag_field="kind", tag="note"):
    id: int
    text: str


class QuestionItem(Value, tag_field="kind", tag="question"):
    """An approval that is waited for. `preview` is exactly what will run, `does` labels the yes.

    `edits` is the text that may be changed; None where that can't be done here.
    """

    id: int
    head: str
    preview: str
    does: str
    edits: str | None
    notice: str = ""


class ContextShare(Value):
    """How much of the model's window the next request fills, in tokens."""

    used: int
    window: int
    threshold: int


class StatusState(Value):
    """What the turn does now. `about`: the model or tools it waits for, `waited_s` already.

    `last` is the line that stands under the answer once it has ended.
    """

    phase: Phase
    about: str
    waited_s: float
    hint: str
    context: ContextShare | None
    last: str


Item = TextItem | ReasoningItem | CallItem | NoteItem | QuestionItem


class PlaceState(Value):
    """Everything that one output shows."""

    items: tuple[Item, ...]
    status: StatusState | None


class _Grows:
    """A text that grows; its pieces are joined when somebody looks."""

    def __init__(self, kind: Literal["text", "reasoning"], number: int, text: str = "") -> None:
        self.kind = kind
        self.number = number
        self._pieces = [text]

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def raw(self) -> str:
        # Joined when somebody looks, not at each chunk, which would copy the whole answer every
        # time.
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def split(self, number: int) -> _Grows | None:
        """Part with what may still change, where what stands before it can't any more."""
        raw = self.raw()
        # Markdown before a settled place can't change any more: the page renders only what stands
        # behind it.
        end = settled(raw) if self.kind == "text" else 0
        if end == 0:
            return None
        self._pieces = [raw[:end]]
        return _Grows("text", number, raw[end:])

    def item(self) -> Item:
        if self.kind == "reasoning":
            return ReasoningItem(id=self.number, text=self.raw())
        return TextItem(id=self.number, text=safe_markdown(self.raw().strip("\n")))


class _Call:
    """A tool call as it runs and as it ended."""

    def __init__(self, number: int, started: ToolStarted, line: str) -> None:
        self.number = number
        self.name = started.tool_name
        self.is_whole = False
        self._line = visible(line)
        self._arguments = [(name, _shown(value)) for name, value in started.arguments.items()]
        self._phase: CallPhase = "running"
        self._said = ""
        self._result = ""

    def end(self, ended: ToolEnded, said: str) -> None:
        self._phase = "failed" if ended.output.is_error else "done"
        self._said = said
        self._result = without_controls(ended.output.content)

    def item(self) -> Item:
        limit = None if self.is_whole else MAX_SHOWN_CHARACTERS
        arguments = tuple((name, text[:limit]) for name, text in self._arguments)
        result = self._result[:limit]
        texts = [self._result, *(text for _, text in self._arguments)]
        shown = [result, *(text for _, text in arguments)]
        return CallItem(
            id=self.number,
            line=self._line,
            phase=self._phase,
            said=self._said,
            arguments=arguments,
            result=result,
            cut=sum(map(len, texts)) - sum(map(len, shown)),
        )


class _Fixed:
    """A note or a question: what it is made with is what is shown."""

    def __init__(self, made: NoteItem | QuestionItem) -> None:
        self.number = made.id
        self._made = made

    def item(self) -> Item:
        return self._made


_Part = _Grows | _Call | _Fixed


class _Place:
    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.changed: set[int] = set()
        self.told: dict[int, Item] = {}
        self.is_new = True

    @property
    def newest(self) -> _Part | None:
        return next(reversed(self.parts.values()), None)

    def put(self, part: _Part) -> None:
        self.parts[part.number] = part
        self.changed.add(part.number)


class TurnPicture:
    """All that is shown of one turn; it belongs to the session's loop.

    What comes is added to the newest place (`move` begins another one). `changes` gives what a
    page that has been told everything so far needs, `whole` what one needs that knows nothing.
    """

    def __init__(self, place: str, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._places = {place: _Place()}
        self._calls: dict[str, tuple[str, _Call]] = {}
        self._last_number = 0
        self._status_place = place
        self._status_left: set[str] = set()
        self._status = StatusState(
            phase="waiting", about="", waited_s=0.0, hint="", context=None, last=""
        )
        self._since = monotonic()
        self._is_status_new = True

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self._places)

    @property
    def status(self) -> StatusState:
        return self._status

    @property
    def has_more_than_text(self) -> bool:
        """Return whether there is something that the saved output doesn't have."""
        return any(
            isinstance(part, _Call) or (isinstance(part, _Grows) and part.kind == "reasoning")
            for place in self._places.values()
            for part in place.parts.values()
        )

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the tools that run."""
        return tuple(call.name for _, call in self._calls.values())

    def move(self, place: str) -> None:
        """Let what comes now stand in a place, the newest one."""
        if place == self._status_place:
            return
        self._places.setdefault(place, _Place())
        self._status_left.add(self._status_place)
        self._status_left.discard(place)
        self._status_place = place
        self._is_status_new = True

    def grow(self, kind: Literal["text", "reasoning"], text: str) -> None:
        """Add to the text that grows, or begin one."""
        place, text = self._places[self._status_place], without_controls(text)
        newest = place.newest
        if isinstance(newest, _Grows) and newest.kind == kind:
            newest.add(text)
            place.changed.add(newest.number)
        else:
            place.put(_Grows(kind, self._number(), text))

    def begin_call(self, started: ToolStarted, line: str) -> None:
        call = _Call(self._number(), started, line)
        self._calls[started.call_id] = (self._status_place, call)
        self._places[self._status_place].put(call)

    def end_call(self, ended: ToolEnded, said: str) -> None:
        found = self._calls.pop(ended.call_id, None)
        if found is not None:
            place, call = found
            call.end(ended, said)
            self._places[place].put(call)

    def note(self, sentence: str) -> None:
        self._places[self._status_place].put(
            _Fixed(NoteItem(id=self._number(), text=without_controls(sentence)))
        )

    def ask(self, *, head: str, preview: str, does: str, edits: str | None) -> int:
        """Add a question; give its id."""
        number = self._number()
        question = QuestionItem(id=number, head=head, preview=preview, does=does, edits=edits)
        self._places[self._status_place].put(_Fixed(question))
        return number

    def complain(self, number: int, notice: str) -> None:
        """Say under a question why its answer can't be taken."""
        for place in self._places.values():
            asked = place.parts.get(number)
            if asked is not None and isinstance(item := asked.item(), QuestionItem):
                place.put(_Fixed(msgspec.structs.replace(item, notice=notice)))

    def drop(self, number: int) -> None:
        """Take a question away."""
        for place in self._places.values():
            if place.parts.pop(number, None) is not None:
                place.changed.add(number)

    def open(self, number: int) -> None:
        """Tell all of a call from now on."""
        for place in self._places.values():
            call = place.parts.get(number)
            if isinstance(call, _Call):
                call.is_whole = True
                place.changed.add(number)

    def set_status(self, **fields: Any) -> None:
        """Change some fields of the status; a new phase, or another one waited for, begins anew."""
        status = msgspec.structs.replace(self._status, **fields)
        if status == self._status:
            return
        if (status.phase, status.about) != (self._status.phase, self._status.about):
            self._since = self._monotonic()
        self._status = status
        self._is_status_new = True

    def changes(self) -> dict[str, Any]:
        """Return what has changed since the last call, by place; empty: nothing."""
        told: dict[str, Any] = {}
        for name, place in self._places.items():
            changed: dict[str, Any] = {}
            items = [self._change(place, number) for number in self._settle(place)]
            place.changed.clear()
            if items:
                changed["items"] = items
            if name in self._status_left:
                changed["status"] = None
            if name == self._status_place and self._is_status_new:
                changed["status"] = self._status_now()
            # A page may have a place of this name from before a reload; "whole" tells it to begin
            # anew.
            if changed and place.is_new:
                changed["whole"] = True
                place.is_new = False
            if changed:
                told[name] = changed
        self._status_left.clear()
        self._is_status_new = False
        return told

    def whole(self, places: Iterable[str]) -> dict[str, Any]:
        """Return all that has been told of some places; call `changes` before and tell it first."""
        return {
            name: {
                "whole": True,
                "items": msgspec.to_builtins(list(self._places[name].told.values())),
                "status": self._status_now() if name == self._status_place else None,
            }
            for name in places
            if name in self._places
        }

    def _settle(self, place: _Place) -> list[int]:
        """Part texts from what can't change any more; give the numbers to tell of, in order."""
        newest = place.newest
        while isinstance(newest, _Grows) and newest.number in place.changed:
            rest = newest.split(self._last_number + 1)
            if rest is None:
                break
            place.put(rest)
            newest, self._last_number = rest, rest.number
        return sorted(place.changed)

    def _change(self, place: _Place, number: int) -> dict[str, Any]:
        part, before = place.parts.get(number), place.told.get(number)
        if part is None:
            place.told.pop(number, None)
            return {"id": number, "kind": "gone"}
        item = part.item()
        place.told[number] = item
        match before, item:
            case (TextItem(text=old), TextItem(text=new)) | (
                ReasoningItem(text=old),
                ReasoningItem(text=new),
            ):
                return {"id": number, **_difference(old, new)}
        made: dict[str, Any] = msgspec.to_builtins(item)
        return made

    def _status_now(self) -> dict[str, Any]:
        waited_s = round(self._monotonic() - self._since, 1)
        status = msgspec.structs.replace(self._status, waited_s=waited_s)
        made: dict[str, Any] = msgspec.to_builtins(status)
        return made

    def _number(self) -> int:
        self._last_number += 1
        return self._last_number


def _difference(old: str, new: str) -> dict[str, Any]:
    """Say how to make one text of another: cut so many UTF-16 units from its end, then add."""
    if new.startswith(old):
        return {"add": new[len(old) :]}
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    # JavaScript counts in UTF-16 units, where an emoji is two.
    return {"cut": len(old[low:].encode("utf-16-le", "replace")) // 2, "add": new[low:]}


def _shown(value: object) -> str:
    """Write an argument so that what ran is what is read."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return visible(without_controls(text))
