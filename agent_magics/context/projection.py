"""What a model sees of a slot: the checkpoint's summary, then the raw tail, filtered and repaired.

The same events, checkpoint and settings give the same messages, byte for byte, in every process.
Nothing here calls a model, reads a clock or writes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

import msgspec

from agent_magics.context.prompt import CONTINUE_NOTE, render_override
from agent_magics.context.repair import opened, repair
from agent_magics.context.tokens import FRAME_TOKENS, count_text
from agent_magics.context.view import SlotHistory, TurnSpan, grouped, turns_of, view_of
from agent_magics.context.wire import RETAINED, Turn, Wire, translate
from agent_magics.core.events import (
    Imported,
    LedgerEvent,
    Payload,
    SystemMessage,
    ToolAnswered,
    UserMessage,
)
from agent_magics.core.messages import Assistant, Message, Text, ToolResult, User, text_of
from agent_magics.core.slots import Checkpoint, Focused, SlotMode
from agent_magics.core.values import Value

__all__ = ["Projection", "SlotHistory", "TurnSpan", "project", "repair", "turns_of", "view_of"]

SUMMARISED = "summarised"
_seq = attrgetter("seq")
OUT_OF_FOCUS = "excluded: focus"


class Projection(Value):
    """A slot's part of the next request, without the system message.

    `fates` says of every spoken seq of the lineage what became of it: "summarised", "retained"
    or "excluded: <reason>". The token sums add stored counts and what a server puts
    around each message; `summary_tokens` is the checkpoint's summary and the override.
    """

    messages: tuple[Message, ...]
    fates: dict[int, str] = msgspec.field(default_factory=dict)
    summary_tokens: int = 0
    history_tokens: int = 0
    tool_result_tokens: int = 0


class Bounds(NamedTuple):
    """Where the raw tail begins: `focus` hides what lies before it, `first_retained` sums it up."""

    focus: int
    first_retained: int
    checkpoint: Checkpoint | None

    @property
    def start(self) -> int:
        return max(self.focus, self.first_retained)


def project(
    view: SlotHistory,
    *,
    mode: SlotMode,
    checkpoint: Checkpoint | None,
    focus_seq: int | None = None,
    running_turn: str | None = None,
    provider: str = "",
    model: str = "",
    tail_only: bool = False,
) -> Projection:
    """Compute what goes to `model` of `provider` (docs/decisions.md#21).

    `tail_only` tells the fates of the raw tail alone, and so costs what the tail costs.

    A checkpoint that is blank, or whose boundary isn't in view, counts as none. `focus_seq`
    adds to the view's own. The messages end as a request must where `running_turn` has its prompt.
    A checkpoint inside the running turn leaves what the user said in it where it is.
    """
    # The order is the rule: a checkpoint bounds what there is, and the focus picks from that. The
    # other way round a summary would be made of filtered history and lose for good what was only
    # hidden.
    bounds = bounds_of(view, checkpoint, focus_seq)
    tail, fates = _split(view, bounds, tail_only=tail_only)
    # A cut inside the running turn would leave the model without the question that it works on.
    tail = _with_prompt(tail, view, bounds.start, running_turn)
    wire = translate(tail, running=running_turn, provider=provider, model=model)
    fates.update(wire.fates)

    # A filter that touched the running turn would take away calls that the model has just made, and
    # their results.
    said, now = _at_running(wire.messages, tail, running_turn)
    override = ""
    if isinstance(mode, Focused):
        said, dropped = _focused(said, mode, wire)
        fates.update(dict.fromkeys(dropped, OUT_OF_FOCUS))
        override = render_override(mode.summary_override) if mode.summary_override else ""
    summary = bounds.checkpoint.rendered if bounds.checkpoint else ""
    messages = _assembled(summary, said, override, now, is_running=running_turn is not None)
    history_tokens, result_tokens = _history_tokens(tail, fates, [*said, *now])
    return Projection(
        messages=tuple(messages),
        fates=fates,
        summary_tokens=_made_tokens(summary) + _made_tokens(override),
        history_tokens=history_tokens,
        tool_result_tokens=result_tokens,
    )


def _split(
    view: SlotHistory, bounds: Bounds, *, tail_only: bool
) -> tuple[list[Turn], dict[int, str]]:
    """Return the turns of the raw tail, and the fates of what stands before it."""
    # Behind a checkpoint only the tail is walked: a slot of 20,000 turns then costs what its last
    # ones cost. Events without a turn id need their neighbours, as only roles tell where a turn
    # begins.
    if tail_only and not _is_in_untied_turn(view, bounds.start):
        first = bisect_left(view.events, bounds.start, key=_seq)
        return grouped(view.events[first:]), {}
    turns = grouped(view.events)
    fates = {} if tail_only else {**view.left, **_fates_before(turns, bounds)}
    return tail_of(turns, bounds.start), fates


def bounds_of(
    view: SlotHistory, checkpoint: Checkpoint | None, focus_seq: int | None = None
) -> Bounds:
    """Find where the raw tail of a view begins.

    A checkpoint of what a focused derive hides is no checkpoint of the child
    (docs/decisions.md#19).
    """
    focus = max(focus_seq or 0, view.focus_seq or 0)
    if checkpoint is None or not checkpoint.rendered.strip():
        return Bounds(focus, 0, None)
    first = checkpoint.first_retained_seq
    at = bisect_left(view.events, first, key=_seq)
    # A boundary that isn't an event in view comes of a rewind or of a broken row. Showing the whole
    # history is dear; trusting the boundary would leave out turns that no summary tells.
    if first <= focus or at == len(view.events) or view.events[at].seq != first:
        return Bounds(focus, 0, None)
    return Bounds(focus, first, checkpoint)


def tail_of(turns: Sequence[Turn], start: int) -> list[Turn]:
    """Leave out events before a seq; of a turn that the seq cuts, the rest stays."""
    for at, (turn_id, events) in enumerate(turns):
        if events[-1].seq >= start:
            rest = [event for event in events if event.seq >= start]
            return [(turn_id, rest), *turns[at + 1 :]]
    return []


def _is_in_untied_turn(view: SlotHistory, start: int) -> bool:
    """Return whether a seq may stand inside a turn that only roles tell from its neighbours."""
    at = bisect_left(view.events, start, key=_seq)
    return 0 < at < len(view.events) and view.events[at].turn_id is None


def _with_prompt(
    tail: list[Turn], view: SlotHistory, start: int, running: str | None
) -> list[Turn]:
    """Put what was said to the running turn in front of its tail, where the cut is inside it."""
    if running is None or not tail or tail[0][0] != running:
        return tail
    said: list[LedgerEvent] = []
    at = bisect_left(view.events, start, key=_seq)
    while at > 0 and view.events[at - 1].turn_id in (running, None):
        at -= 1
        event = view.events[at]
        if event.turn_id == running and isinstance(event.payload, UserMessage | SystemMessage):
            said.append(event)
    return [(running, [*reversed(said), *tail[0][1]]), *tail[1:]] if said else tail


def _fates_before(turns: Sequence[Turn], bounds: Bounds) -> dict[int, str]:
    """Return what became of events before the tail: summarised is what a summary was made of."""
    # Translated like the tail, so that a turn that failed counts as failed behind the cut too, and
    # is not taken for summarised.
    behind = [(turn_id, events) for turn_id, events in turns if events[0].seq < bounds.start]
    fates: dict[int, str] = {}
    for seq, fate in translate(behind, is_tail=False).fates.items():
        if seq < bounds.focus:
            fates[seq] = OUT_OF_FOCUS
        elif seq < bounds.start:
            fates[seq] = SUMMARISED if fate == RETAINED else fate
    return fates


def _at_running(
    messages: list[Message], tail: Sequence[Turn], running: str | None
) -> tuple[list[Message], list[Message]]:
    """Part messages before the running turn from its own, which no filter touches."""
    if running is None or not tail or tail[-1][0] != running:
        return messages, []
    first = next(event.seq for event in tail[-1][1] if event.turn_id == running)
    for at, message in enumerate(messages):
        if message.seq is not None and message.seq >= first:
            return messages[:at], messages[at:]
    return messages, []


def _focused(messages: list[Message], mode: Focused, wire: Wire) -> tuple[list[Message], list[int]]:
    """Keep the last N messages as sent, and give the seqs of what was dropped.

    A cut inside an exchange moves back to its call. Notes of ours don't count: they
    stay wherever they stand, or go, as `keep_system` says.
    """
    uncounted = wire.system_seqs | wire.mark_seqs
    cut = left = len(messages)
    wanted = mode.recent_messages
    while wanted > 0 and left > 0:
        left -= 1
        message = messages[left]
        made = message.seq is None and isinstance(message, User)
        if not made and message.seq not in uncounted:
            cut, wanted = left, wanted - 1
    # A server refuses a result whose call it doesn't see.
    while 0 < cut < len(messages) and isinstance(messages[cut], ToolResult):
        cut -= 1
    kept: list[Message] = []
    dropped: list[int] = []
    for at, message in enumerate(messages):
        stays = mode.keep_system if message.seq in wire.system_seqs else at >= cut
        if stays:
            kept.append(message)
        elif message.seq is not None:
            dropped.append(message.seq)
            dropped.extend(wire.members.get(message.seq, ()))
    return kept, dropped


def _assembled(
    summary: str, said: list[Message], override: str, now: list[Message], *, is_running: bool
) -> list[Message]:
    messages = [*_made(summary), *said, *_made(override), *now]
    # Where the last message is the assistant's, some servers go on writing it and some refuse it.
    if is_running and messages and isinstance(messages[-1], Assistant):
        messages.extend(_made(CONTINUE_NOTE))
    return opened(messages)


def _made(text: str) -> list[Message]:
    return [User(content=(Text(text=text),))] if text else []


@lru_cache(maxsize=256)  # a summary is sent with every request, and counted once
def _made_tokens(text: str) -> int:
    return FRAME_TOKENS + count_text(text) if text else 0


def _history_tokens(
    tail: Sequence[Turn], fates: dict[int, str], messages: list[Message]
) -> tuple[int, int]:
    """Add up what `messages` of the tail weigh, results apart: stored tokens, and frames.

    Only notes made for this request are counted here.
    """
    history = results = 0
    for _, events in tail:
        for event in events:
            # Stored counts are added, not made again: counting is the dearest part of a projection.
            if fates[event.seq] != RETAINED:
                continue
            if _is_result(event.payload):
                results += event.tokens
            else:
                history += event.tokens
    for message in messages:
        if isinstance(message, ToolResult):
            results += FRAME_TOKENS
            if message.seq is None:
                results += count_text(message.content)
        else:
            history += FRAME_TOKENS
            if message.seq is None and isinstance(message, User):
                history += count_text(text_of(message.content))
    return history, results


def _is_result(payload: Payload) -> bool:
    if isinstance(payload, Imported):
        return isinstance(payload.message, ToolResult)
    return isinstance(payload, ToolAnswered)
