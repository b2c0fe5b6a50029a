"""The same prompt in several slots: what each answered, and where the answers differ.

`ComparisonState` is the JSON shape that the compare view draws. A prompt is shared where two turns
of different slots began with the same text; a turn that a slot inherited is its parent's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby, islice
from typing import Literal

import msgspec

from agent_magics.core.errors import InputValidation, SlotNotFound
from agent_magics.core.events import (
    AssistantMessage,
    LedgerEvent,
    ToolCalled,
    Usage,
    UserMessage,
)
from agent_magics.core.messages import text_of
from agent_magics.core.money import dollars
from agent_magics.core.slots import SlotMeta
from agent_magics.core.values import TokenUsage, Value
from agent_magics.notebook.views.comparison.differences import (
    Compared,
    Piece,
    base_pieces,
    compared,
)
from agent_magics.notebook.views.shown_session import AnswerSource
from agent_magics.settings import shown_model

VERSION = 1
NEWEST_TURNS = 200  # of each slot are looked at
MAX_CHARACTERS = 50_000  # of an answer: more would freeze the page
MAX_SLOTS = 12  # side by side
LABEL_CHARACTERS = 120
_TOGETHER = "Ask them together: %%agent --slots A,B"
NONE_SHARED = f"No two of these slots were asked the same yet. {_TOGETHER}"
NONE_IN_NEWEST = (
    f"No two of these slots were asked the same in their newest {NEWEST_TURNS} turns; older ones"
    f" aren't looked at. {_TOGETHER}"
)
TOO_FEW = "A comparison needs two slots. Make another: %slot derive NAME"
ONLY_NEWEST = f"Only the newest {NEWEST_TURNS} turns of each slot are looked at."

AnswerStatus = Literal["complete", "incomplete", "running", "not asked"]
Compare = Callable[[str, str], Compared]


class ComparedAnswer(Value):
    """The newest turn of a slot that began with a prompt. `seq` is that prompt's."""

    seq: int
    turn_id: str
    turn: int
    text: str
    status: AnswerStatus
    facts: tuple[str, ...] = ()


class PromptState(Value):
    """A prompt that can be chosen; `id` is the seq of its newest turn, `label` its beginning."""

    id: str
    label: str


class ColumnState(Value):
    """One slot's answer; `id` is the slot's name. `alike` is the percentage it has in common with
    the base's; None: it is the base, there is nothing to compare, or it isn't known, as the answers
    were compared `by_lines` and sentences in parts.
    """

    id: str
    status: AnswerStatus
    turn: int | None = None
    facts: str = ""
    alike: int | None = None
    by_lines: bool = False
    pieces: tuple[Piece, ...] = ()


class ComparisonState(Value):
    """All that the compare view shows. `hint` says what to do where there is nothing to compare,
    `note` what was left out.
    """

    version: int
    prompts: tuple[PromptState, ...]
    chosen: str
    prompt: str
    base: str
    columns: tuple[ColumnState, ...]
    hint: str = ""
    note: str = ""


class ComparedSlots:
    """The answers of some slots, read again only where something happened in them."""

    def __init__(self, session: AnswerSource, uids: Sequence[str] = ()) -> None:
        self._session = session
        self._uids = tuple(uids)
        self._kept: dict[str, tuple[SlotMeta, dict[str, ComparedAnswer]]] = {}

    def read(self) -> Mapping[str, Mapping[str, ComparedAnswer]]:
        """Return the answers by slot and prompt, the slots in the order in which they were named.

        What a named slot had answered before it was deleted stays.
        """
        living = {slot.uid: slot for slot in self._session.list_slots()}
        read: dict[str, tuple[SlotMeta, dict[str, ComparedAnswer]]] = {}
        for uid in self._uids or tuple(living):
            if uid in living:
                read[uid] = living[uid], self._of(living[uid])
            elif uid in self._kept:
                read[uid] = self._kept[uid]
        self._kept = read
        return {
            slot.slot_id if uid in living else f"{slot.slot_id} (deleted)": answers
            for uid, (slot, answers) in read.items()
        }

    @property
    def is_cut(self) -> bool:
        """Return whether a slot that was read has older turns, which weren't looked at."""
        return any(slot.turns > NEWEST_TURNS for slot, _ in self._kept.values())

    def _of(self, slot: SlotMeta) -> dict[str, ComparedAnswer]:
        slot = msgspec.structs.replace(slot, is_current=False)
        kept = self._kept.get(slot.uid)
        is_same = kept and msgspec.structs.replace(kept[0], is_current=False) == slot
        if kept and is_same and not slot.is_running:
            return kept[1]
        return answers_of(self._session, slot.slot_id)


def answers_of(session: AnswerSource, slot: str) -> dict[str, ComparedAnswer]:
    """Find what a slot was asked in its newest turns, and its newest answer to each."""
    spans = {span.turn_id: span for span in session.turns(slot)[-NEWEST_TURNS:]}
    running = session.running().get(slot)
    since = next(iter(spans.values())).first_seq if spans else 0
    found: dict[str, ComparedAnswer] = {}
    events = session.history(slot)
    newest = events[bisect_left(events, since, key=lambda event: event.seq) :]
    for turn_id, told in groupby(newest, key=lambda event: event.turn_id):
        of_turn = list(told)
        first = of_turn[0].payload
        if turn_id is None or turn_id not in spans or not isinstance(first, UserMessage):
            continue
        streaming = running.text_so_far if running and running.turn_id == turn_id else None
        found[text_of(first.content).strip()] = ComparedAnswer(
            seq=of_turn[0].seq,
            turn_id=turn_id,
            turn=spans[turn_id].index,
            text=_said(of_turn, streaming or ""),
            status=_status(of_turn, is_running=streaming is not None),
            facts=_facts(of_turn),
        )
    return found


def uids_of(session: AnswerSource, names: Sequence[str]) -> tuple[str, ...]:
    """Return the uids of slots that are named to be compared; raises `SlotNotFound`,
    and `InputValidation` where only one is named or one is named twice.
    """
    uids = {slot.slot_id: slot.uid for slot in session.list_slots()}
    for name in names:
        if name not in uids:
            raise SlotNotFound(name, tuple(uids))
        if names.count(name) > 1:
            raise InputValidation(f'Slot "{name}" is named twice; name each once.')
    if len(names) == 1:
        raise InputValidation(f'Slot "{names[0]}" alone can\'t be compared; name another.')
    return tuple(uids[name] for name in names)


def shared_prompts(answers: Mapping[str, Mapping[str, ComparedAnswer]]) -> tuple[str, ...]:
    """Name the prompts that two different turns answered, the newest first."""
    turns: dict[str, dict[str, int]] = {}
    for of_slot in answers.values():
        for prompt, answered in of_slot.items():
            turns.setdefault(prompt, {})[answered.turn_id] = answered.seq
    shared = [prompt for prompt, by_turn in turns.items() if len(by_turn) > 1]
    return tuple(sorted(shared, key=lambda prompt: -max(turns[prompt].values())))


def prompts_of(answers: Mapping[str, Mapping[str, ComparedAnswer]]) -> tuple[PromptState, ...]:
    """Return the prompts that can be chosen, the newest first."""
    return tuple(
        PromptState(id=str(_newest(answers, prompt)), label=_label(prompt))
        for prompt in shared_prompts(answers)
    )


def comparison_of(
    answers: Mapping[str, Mapping[str, ComparedAnswer]],
    *,
    chosen: str | None = None,
    base: str | None = None,
    is_named: bool = True,
    is_cut: bool = False,
    compare: Compare = compared,
) -> ComparisonState:
    """Put answers side by side.

    `chosen` is the id of a prompt (None, or one that is gone: the newest), `base` the slot that
    the others are compared with (None: the first). Without `is_named` nobody chose the slots: those
    that weren't asked, or have the same turn as another, are left out. `is_cut`: there are older
    turns, which weren't looked at. `compare(base, answer)` compares two texts.
    """
    listed = prompts_of(answers)
    if not listed:
        return _nothing(len(answers), is_cut=is_cut)
    at = next((at for at, each in enumerate(listed) if each.id == chosen), 0)
    prompt = shared_prompts(answers)[at]
    of_prompt = {slot: of_slot.get(prompt) for slot, of_slot in answers.items()}
    notes = [ONLY_NEWEST] if is_cut else []
    if not is_named:
        of_prompt, left_out = _own(of_prompt)
        notes += [left_out] if left_out else []
    asked = [slot for slot, answered in of_prompt.items() if answered is not None]
    against = base if base in asked else asked[0]
    return ComparisonState(
        version=VERSION,
        prompts=listed,
        chosen=listed[at].id,
        prompt=prompt[:MAX_CHARACTERS],
        base=against,
        columns=_columns(of_prompt, against, compare),
        note=" ".join(notes),
    )


def _nothing(slots: int, *, is_cut: bool) -> ComparisonState:
    hint = NONE_IN_NEWEST if is_cut else NONE_SHARED
    return ComparisonState(
        version=VERSION,
        prompts=(),
        chosen="",
        prompt="",
        base="",
        columns=(),
        hint=TOO_FEW if slots < 2 else hint,  # noqa: PLR2004 - a comparison's two
    )


def _newest(answers: Mapping[str, Mapping[str, ComparedAnswer]], prompt: str) -> int:
    return max(of_slot[prompt].seq for of_slot in answers.values() if prompt in of_slot)


def _own(
    of_prompt: Mapping[str, ComparedAnswer | None],
) -> tuple[dict[str, ComparedAnswer | None], str]:
    """Leave out slots without an answer of their own, and too many; say how many these are."""
    made: dict[str, ComparedAnswer | None] = {}
    seen: set[str] = set()
    for slot, answered in of_prompt.items():
        if answered is not None and answered.turn_id not in seen:
            seen.add(answered.turn_id)
            made[slot] = answered
    if len(made) <= MAX_SLOTS:
        return made, ""
    told = f"{MAX_SLOTS} of the {len(made)} slots that answered are shown; name those to compare."
    return dict(islice(made.items(), MAX_SLOTS)), told


def _columns(
    of_prompt: Mapping[str, ComparedAnswer | None], base: str, compare: Compare
) -> tuple[ColumnState, ...]:
    whole = of_prompt[base]
    assert whole is not None
    others = {
        slot: compare(whole.text, answered.text)
        for slot, answered in of_prompt.items()
        if answered is not None and slot != base
    }
    made = []
    for slot, answered in of_prompt.items():
        if answered is None:
            made.append(ColumnState(id=slot, status="not asked"))
        elif slot == base:
            pieces = base_pieces(answered.text, tuple(others.values()))
            made.append(_column(slot, answered, pieces, None))
        else:
            made.append(_column(slot, answered, others[slot].pieces, others[slot]))
    return tuple(made)


def _column(
    slot: str, answered: ComparedAnswer, pieces: tuple[Piece, ...], against: Compared | None
) -> ColumnState:
    return ColumnState(
        id=slot,
        status=answered.status,
        turn=answered.turn,
        facts=" · ".join(answered.facts),
        alike=_percent(against),
        by_lines=against is not None and against.alike is None,
        pieces=pieces,
    )


def _percent(against: Compared | None) -> int | None:
    """Round to a percentage; what isn't the same is never 100 %."""
    if against is None or against.alike is None:
        return None
    return 100 if against.alike == 1 else min(99, round(100 * against.alike))


def _label(prompt: str) -> str:
    line = " ".join(prompt.split())
    return f"{line[:LABEL_CHARACTERS]}…" if len(line) > LABEL_CHARACTERS else line


def _said(events: Iterable[LedgerEvent], streaming: str) -> str:
    texts = [text_of(e.payload.content) for e in events if isinstance(e.payload, AssistantMessage)]
    text = "\n\n".join(part.strip() for part in (*texts, streaming) if part.strip())
    cut = len(text) - MAX_CHARACTERS
    return f"{text[:MAX_CHARACTERS]}… ({cut:,} characters more)" if cut > 0 else text


def _status(events: Sequence[LedgerEvent], *, is_running: bool) -> AnswerStatus:
    if is_running:
        return "running"
    last = [e.payload for e in events if isinstance(e.payload, AssistantMessage)][-1:]
    return "complete" if last and last[0].status == "complete" else "incomplete"


def _facts(events: Sequence[LedgerEvent]) -> tuple[str, ...]:
    """Say by which model, for how many tokens, at which price, with how many calls."""
    payloads = [event.payload for event in events]
    models = [p for p in payloads if isinstance(p, AssistantMessage) and p.model]
    facts = [shown_model(f"{models[-1].provider}:{models[-1].model}")] if models else []
    spent = [p for p in payloads if isinstance(p, Usage) and p.purpose == "turn"]
    asked = [p for p in spent if p.told is not None]
    if asked:
        facts.append(str(reduce(TokenUsage.plus, (p.told for p in asked if p.told))))
    if asked and all(p.cost_usd is not None for p in asked):
        facts.append(dollars(sum(p.cost_usd or 0.0 for p in asked)))
    calls = sum(isinstance(p, ToolCalled) for p in payloads)
    if calls:
        facts.append(f"{calls:,} call{'' if calls == 1 else 's'}")
    return tuple(facts)
