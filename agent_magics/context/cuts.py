"""Where a checkpoint may begin: at a turn, and in overflow recovery at an iteration.

Why: docs/decisions.md#35.

An iteration is an assistant's message with its calls and all their results. No cut stands between
a call and its result.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from agent_magics.context.repair import spoken
from agent_magics.context.view import SlotHistory, TurnSpan
from agent_magics.context.wire import is_failed
from agent_magics.core.events import (
    AssistantMessage,
    Imported,
    LedgerEvent,
    ToolAnswered,
    ToolCalled,
)
from agent_magics.core.messages import Assistant, ToolResult

_seq = attrgetter("seq")


class Cut(NamedTuple):
    """The first seq that stays as it is.

    `is_inside` a turn: then so many `iterations` of that turn, 0 or more, are newly behind it.
    """

    seq: int
    is_inside: bool = False
    iterations: int = 0


def recovery_cuts(
    view: SlotHistory, spans: Sequence[TurnSpan], start: int, running_turn: str | None = None
) -> list[Cut]:
    """List, rising, where a checkpoint may begin in overflow recovery, behind `start`.

    At every turn, and inside the newest complete one at its iterations. `spans` are the view's
    turns.
    """
    cuts = [Cut(span.first_seq) for span in spans if span.last_seq >= start][1:]
    newest = newest_complete(view, spans, running_turn)
    if newest is not None:
        cuts += _inside(_events_of(view, newest), start)
    return sorted(cuts)


def running_cuts(view: SlotHistory, running_turn: str, start: int = 0) -> list[Cut]:
    """List the iterations of the running turn but the first, behind `start`."""
    events: list[LedgerEvent] = []
    for event in reversed(view.events):
        if event.turn_id not in (running_turn, None):
            break
        events.append(event)
    return [cut for cut in _inside(events[::-1], start) if cut.iterations]


def newest_complete(
    view: SlotHistory, spans: Sequence[TurnSpan], running_turn: str | None = None
) -> TurnSpan | None:
    """Find the newest turn that has ended with a word or a call."""
    for span in reversed(spans):
        if span.turn_id is not None and span.turn_id == running_turn:
            continue
        if not is_failed(span.turn_id, _events_of(view, span), is_last=span is spans[-1]):
            return span
    return None


def fewest_behind(cuts: Sequence[Cut], fits: Callable[[Cut], bool]) -> Cut | None:
    """Find, of rising cuts, the first that fits; the last where none does, None of none.

    `fits` is asked about the logarithm of their number, not about each.
    """
    if not cuts:
        return None
    # Each question builds a whole request, which takes 0.2 s over 20,000 turns.
    low, high = 0, len(cuts) - 1
    while low < high:
        middle = (low + high) // 2
        if fits(cuts[middle]):
            high = middle
        else:
            low = middle + 1
    return cuts[low]


def _inside(turn: Sequence[LedgerEvent], start: int) -> list[Cut]:
    """List the iterations of one turn, behind `start`, and how many stand before each."""
    cuts: list[Cut] = []
    count = 0
    for event in _beginnings(turn):
        if event.seq > max(start, turn[0].seq):
            cuts.append(Cut(event.seq, is_inside=True, iterations=count))
        count += event.seq >= start
    return cuts


def _events_of(view: SlotHistory, span: TurnSpan) -> Sequence[LedgerEvent]:
    first = bisect_left(view.events, span.first_seq, key=_seq)
    return view.events[first : bisect_right(view.events, span.last_seq, key=_seq)]


def _beginnings(turn: Sequence[LedgerEvent]) -> Iterator[LedgerEvent]:
    """Yield the events that begin an iteration while no call before them waits for its result."""
    last_result = _last_results(turn)
    open_until = -1
    for at, event in enumerate(turn):
        if open_until < at and _begins(turn, at):
            yield event
        # A tool may answer late, when the model has gone on: until then no cut may come between.
        open_until = max(open_until, last_result.get(at, -1))


def _begins(turn: Sequence[LedgerEvent], at: int) -> bool:
    """Return whether an assistant's message begins here that says or calls something."""
    match turn[at].payload:
        case AssistantMessage(content=content):
            return bool(spoken(content)) or _is_call(turn, at + 1)
        case ToolCalled():
            # A model may call without a word; then no message of its own begins the iteration.
            return not (at and isinstance(turn[at - 1].payload, AssistantMessage | ToolCalled))
        case Imported(message=Assistant(content=content, calls=calls)):
            return bool(spoken(content) or calls)
        case _:
            return False


def _is_call(turn: Sequence[LedgerEvent], at: int) -> bool:
    return at < len(turn) and isinstance(turn[at].payload, ToolCalled)


def _last_results(turn: Sequence[LedgerEvent]) -> dict[int, int]:
    """Find the last result of each event that calls, by position; ids are paired in order."""
    waiting: dict[str, list[int]] = {}
    found: dict[int, int] = {}
    for at, event in enumerate(turn):
        match event.payload:
            case ToolCalled(call_id=call_id):
                waiting.setdefault(call_id, []).append(at)
            case Imported(message=Assistant(calls=calls)):
                for call in calls:
                    waiting.setdefault(call.call_id, []).append(at)
            case ToolAnswered(call_id=call_id) | Imported(message=ToolResult(call_id=call_id)):
                if owners := waiting.get(call_id):
                    found[owners.pop(0)] = at
            case _:
                pass
    return found
