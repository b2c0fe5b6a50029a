"""Compaction: where to cut, what the summarising model is asked, whether its answer is taken.

Pure: the session makes the call and commits the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_magics.context.budget import Limits
from agent_magics.context.cuts import Cut
from agent_magics.context.projection import bounds_of, tail_of
from agent_magics.context.prompt import (
    COMPACTION_PROMPT,
    COMPACTION_SYSTEM,
    SUMMARY_FORM,
    shield,
)
from agent_magics.context.source import bounded_source, head_and_tail
from agent_magics.context.summary_check import fault_of
from agent_magics.context.tokens import FRAME_TOKENS, count_text
from agent_magics.context.view import SlotHistory, grouped
from agent_magics.context.wire import Turn, is_failed, translate
from agent_magics.core.chat import ChatRequest
from agent_magics.core.errors import CompactError, NothingToCompact, SlotReadonly
from agent_magics.core.events import LedgerEvent, ToolAnswered, ToolCalled
from agent_magics.core.messages import Message, System, Text, User
from agent_magics.core.slots import Checkpoint, ModelParams, Readonly, SlotMode
from agent_magics.core.values import Value

MAX_SUMMARY_TOKENS = 2_048
MAX_SAFETY_TOKENS = 512
SUMMARY_TEMPERATURE = 0.2
TOKENS_PER_WORD = 2  # identifiers and numbers have more of them than prose has
ENVELOPE_TOKENS = 128  # our tags and the sentence on what was left out


class CompactionPlan(Value):
    """Where a compaction cuts and what it sums up.

    `source` is only what the cut newly leaves behind, without private reasoning; `source_tokens`
    its stored tokens. `previous` is the checkpoint whose summary goes in front of it. Turns that
    failed without a word are not counted. `is_turn_cut`: the first of the kept turns stays from one
    of its iterations on.
    """

    slot_id: str
    first_retained_seq: int
    source_max_seq: int
    summarised_turns: int
    kept_turns: int
    source: tuple[Message, ...]
    source_tokens: int
    previous: Checkpoint | None
    is_turn_cut: bool = False


class SourceRecord(Value):
    """What the summarising model was given of a compaction's source.

    Of `messages`, the oldest `omitted` are left out and `shortened` more are cut in the middle;
    `is_previous_shortened`: so is the previous summary. It is kept in the ledger.
    """

    messages: int
    omitted: int
    shortened: int
    is_previous_shortened: bool
    strategy: str = "newest first, head and tail of what doesn't fit"


class SummaryRequest(ChatRequest, kw_only=True):
    """The request of a compaction, and what it leaves out."""

    source: SourceRecord


def plan_compaction(
    view: SlotHistory,
    *,
    slot_id: str,
    mode: SlotMode,
    checkpoint: Checkpoint | None,
    limits: Limits,
    running_turn: str | None = None,
    cut: Cut | None = None,
) -> CompactionPlan:
    """Choose whole turns to sum up; the source is the unfocused history.

    From the tail on, turns stay while they fit into `limits.keep`; the running one and the newest
    complete one always stay. Overflow recovery chooses the `cut` itself (docs/decisions.md#35).
    Raises `NothingToCompact` where that leaves nothing new behind, `SlotReadonly` for a reference
    slot.
    """
    if isinstance(mode, Readonly):
        raise SlotReadonly(slot_id)
    bounds = bounds_of(view, checkpoint)
    turns = tail_of(grouped(view.events), bounds.start)
    failed = _failed(turns, running_turn)
    first = cut.seq if cut else _whole_turns(turns, failed, limits.keep, running_turn)
    behind = [(turn_id, before) for turn_id, events in turns if (before := _before(events, first))]
    summarised = [at for at in range(len(behind)) if at not in failed]
    if not summarised:
        raise NothingToCompact(slot_id, _why_nothing(len(turns), limits))
    # A turn that is cut has not ended where the source ends: read as an ended one, its last calls
    # would be told as lost.
    is_turn_cut = len(behind[-1][1]) < len(turns[len(behind) - 1][1])
    source = translate(behind, is_tail=False, running=behind[-1][0] if is_turn_cut else None)
    return CompactionPlan(
        slot_id=slot_id,
        first_retained_seq=first,
        source_max_seq=view.events[-1].seq,
        summarised_turns=len(summarised) - is_turn_cut,
        kept_turns=sum(at not in failed for at in range(len(behind) - is_turn_cut, len(turns))),
        source=tuple(source.messages),
        source_tokens=sum(_weight(behind[at][1]) for at in summarised),
        previous=bounds.checkpoint,
        is_turn_cut=is_turn_cut,
    )


def summary_request(
    plan: CompactionPlan,
    *,
    model: str,
    window: int,
    most_tokens: int = MAX_SUMMARY_TOKENS,
    instructions: str | None = None,
    prompt: str | None = None,
) -> SummaryRequest:
    """Build the one tool-less request of a compaction.

    `window` is the summarising model's, in tokens; the request and its answer fit into it. The
    summary may have `most_tokens`, where the limit of summaries allows as many.
    `instructions` is what the user asks to keep, `prompt` stands in place of `COMPACTION_PROMPT`;
    the nine headings are asked for in any case. Raises `CompactError` where not even the newest
    message fits.
    """
    output = min(most_tokens, output_limit_for(window))
    task = _task(instructions, prompt, output)
    material, record = _material(plan, window, _room(task, window, output))
    asked = "\n\n".join([task, _made(record), *material])
    return SummaryRequest(
        model=model,
        messages=(System(text=COMPACTION_SYSTEM), User(content=(Text(text=asked),))),
        params=ModelParams(temperature=SUMMARY_TEMPERATURE, max_tokens=output),
        purpose="compaction",
        source=record,
    )


def _room(task: str, window: int, output: int) -> int:
    """Return the tokens that a window leaves for what is summarised."""
    # Our estimate may be low for this model's tokenizer; a summary request that overflows would
    # leave nothing to recover with.
    frame = count_text(COMPACTION_SYSTEM) + count_text(task) + 2 * FRAME_TOKENS + ENVELOPE_TOKENS
    return window - output - min(MAX_SAFETY_TOKENS, window // 16) - frame


def _material(plan: CompactionPlan, window: int, room: int) -> tuple[list[str], SourceRecord]:
    """Fit what is summarised into the room for it; tell what it was made of."""
    previous = shield(plan.previous.summary.strip()) if plan.previous else ""
    # At most half of the room: an old summary that fills the request would leave nothing of what is
    # new, and the chain would stop learning.
    earlier = _fitted(previous, room // 2)
    source = bounded_source(plan.source, room - count_text(earlier)) if room > 0 else None
    if source is None or (previous and not earlier):
        raise CompactError(
            f"A window of {window:,} tokens is too small to summarise in; set compact_model to a"
            " model with a larger one."
        )
    record = SourceRecord(
        messages=source.total,
        omitted=source.omitted,
        shortened=source.shortened,
        is_previous_shortened=earlier != previous,
    )
    parts = [f"<previous_summary>\n{earlier}\n</previous_summary>"] if earlier else []
    return [*parts, f"<conversation>\n{source.text}\n</conversation>"], record


def output_limit_for(window: int) -> int:
    """Return the most tokens a summary may have: 2,048, or a quarter of a small window."""
    return min(MAX_SUMMARY_TOKENS, window // 4)


def judge_summary(text: str, *, plan: CompactionPlan, output_limit: int) -> str | None:
    """Say why a summary is refused, None where it is good.

    The reason completes the sentence "the summary was refused: …".
    """
    fault = fault_of(text)
    if fault is not None:
        return fault
    tokens = count_text(text)
    if tokens > output_limit:
        return f"it has {tokens:,} tokens, and {output_limit:,} are allowed"
    replaced = replaced_tokens(plan)
    if tokens >= replaced:
        return f"it has {tokens:,} tokens, not fewer than the {replaced:,} it stands for"
    return None


def replaced_tokens(plan: CompactionPlan) -> int:
    """Count what a summary stands for: the source, and the summary before it."""
    return plan.source_tokens + (count_text(plan.previous.summary) if plan.previous else 0)


def _failed(turns: Sequence[Turn], running: str | None) -> set[int]:
    """Find the turns that are in no projection, so in no source either."""
    return {
        at
        for at, (turn_id, events) in enumerate(turns)
        if turn_id != running and is_failed(turn_id, events, is_last=at == len(turns) - 1)
    }


def _whole_turns(turns: Sequence[Turn], failed: set[int], keep: int, running: str | None) -> int:
    """Find the first seq of the oldest turn that stays."""
    cut = len(turns)
    room = keep
    has_complete = False
    for at in range(len(turns) - 1, -1, -1):
        turn_id, events = turns[at]
        is_finished = turn_id is None or turn_id != running
        # A failed turn isn't sent, so it takes no room from those that are.
        weight = 0 if at in failed else _weight(events)
        # The newest complete turn stays whatever it weighs: the next question is most often about
        # it.
        is_needed = not is_finished or not has_complete
        if not is_needed and weight > room:
            break
        cut = at
        room -= weight
        has_complete = has_complete or (is_finished and at not in failed)
    # A late result may stand turns behind its call.
    cut = _whole_exchanges(turns, cut)
    return turns[cut][1][0].seq if cut < len(turns) else 0


def _whole_exchanges(turns: Sequence[Turn], cut: int) -> int:
    """Move a cut back while a call before it has its result behind it."""
    owners: dict[tuple[str | None, str], int] = {}
    for at in range(cut):
        for event in turns[at][1]:
            if isinstance(event.payload, ToolCalled) and event.turn_id is not None:
                owners.setdefault((event.turn_id, event.payload.call_id), at)
    at = len(turns)
    while at > cut:
        at -= 1
        for event in turns[at][1]:
            if isinstance(event.payload, ToolAnswered):
                cut = min(cut, owners.get((event.turn_id, event.payload.call_id), cut))
    return cut


def _before(events: Sequence[LedgerEvent], seq: int) -> list[LedgerEvent]:
    return [event for event in events if event.seq < seq]


def _weight(events: Sequence[LedgerEvent]) -> int:
    return sum(event.tokens for event in events)


def _why_nothing(turns: int, limits: Limits) -> str:
    if turns == 0:
        return "it has no turns yet"
    return (
        f"its newest turns fit into the {limits.keep:,} tokens that stay word for word,"
        " and nothing before them is new"
    )


def _task(instructions: str | None, prompt: str | None, output_tokens: int) -> str:
    room = f"The summary may have at most {output_tokens // TOKENS_PER_WORD:,} words."
    parts = [prompt or COMPACTION_PROMPT, SUMMARY_FORM, room]
    if instructions and instructions.strip():
        parts.append(f"The user asks you to keep this above all:\n{instructions.strip()}")
    return "\n\n".join(parts)


def _fitted(text: str, tokens: int) -> str:
    if tokens <= 0:
        return ""
    return text if count_text(text) <= tokens else head_and_tail(text, tokens)


def _made(source: SourceRecord) -> str:
    said = f"The conversation below has {source.messages} messages"
    if source.omitted:
        said += f"; the oldest {source.omitted} don't fit and are left out,"
        said += " so say that they are missing"
    if source.shortened:
        said += f"; {source.shortened} are shortened in the middle"
    if source.is_previous_shortened:
        said += "; the previous summary is shortened in the middle"
    return f"{said}."
