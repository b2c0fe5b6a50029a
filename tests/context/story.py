"""Ledgers for tests, written as a story of what was said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from agent_magics.context.budget import Limits
from agent_magics.context.compaction import CompactionPlan, plan_compaction
from agent_magics.context.projection import Projection, project
from agent_magics.context.prompt import render_summary
from agent_magics.context.tokens import count_payload
from agent_magics.context.view import SlotHistory, view_of
from agent_magics.core.events import (
    AssistantMessage,
    Clear,
    Imported,
    IncompleteCause,
    LedgerEvent,
    Payload,
    Rewind,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import (
    Assistant,
    Content,
    Message,
    Reasoning,
    System,
    Text,
    ToolOutput,
    ToolResult,
    text_of,
)
from agent_magics.core.slots import Checkpoint, Focused, Full, Slot, SlotConfig, SlotMode
from agent_magics.core.text import clean_value

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
ROOT = "uid-root"


def said(text: str) -> Content:
    return (Text(text=text),)


def words(message: Message) -> str:
    """All text of a message that goes to the model."""
    if isinstance(message, System):
        return message.text
    return message.content if isinstance(message, ToolResult) else text_of(message.content)


class Story:
    """A session's events, told one after another; each method gives the seq of what it wrote."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.events: dict[str, list[LedgerEvent]] = {}
        self.seq = 0
        self.turns = 0
        self.turn_id: str | None = None
        self.add_slot(ROOT)

    def add_slot(
        self,
        uid: str,
        *,
        parent: str | None = None,
        fork_seq: int | None = None,
        focus_seq: int | None = None,
    ) -> str:
        self.slots[uid] = Slot(
            uid=uid,
            slot_id=uid,
            config=SlotConfig(),
            created_at=WHEN,
            parent_uid=parent,
            fork_seq=self.seq if fork_seq is None else fork_seq,
            focus_seq=focus_seq,
        )
        self.events[uid] = []
        return uid

    def write(
        self, payload: Payload, *, uid: str = ROOT, turn_id: str | None = None, tokens: int = -1
    ) -> int:
        payload = clean_value(payload)  # as the recorder does at the ledger's door
        self.seq += 1
        event = LedgerEvent(
            seq=self.seq,
            payload=payload,
            created_at=WHEN,
            slot_uid=uid,
            turn_id=turn_id,
            tokens=count_payload(payload) if tokens < 0 else tokens,
        )
        self.events[uid].append(event)
        return self.seq

    def begin(self) -> str:
        self.turns += 1
        self.turn_id = f"turn-{self.turns}"
        return self.turn_id

    def ask(self, text: str = "question", *, uid: str = ROOT, tokens: int = -1) -> int:
        """Begin a turn with a user message."""
        self.begin()
        return self.write(
            UserMessage(content=said(text)), uid=uid, turn_id=self.turn_id, tokens=tokens
        )

    def steer(self, text: str, *, uid: str = ROOT) -> int:
        payload = UserMessage(content=said(text), is_steering=True)
        return self.write(payload, uid=uid, turn_id=self.turn_id)

    def answer(
        self,
        text: str = "answer",
        *,
        uid: str = ROOT,
        cause: IncompleteCause | None = None,
        reasoning: Reasoning | None = None,
        maker: tuple[str, str] = ("", ""),
        tokens: int = -1,
    ) -> int:
        payload = AssistantMessage(
            content=said(text) if text else (),
            status="complete" if cause is None else "incomplete",
            cause=cause,
            reasoning=reasoning,
            provider=maker[0],
            model=maker[1],
        )
        return self.write(payload, uid=uid, turn_id=self.turn_id, tokens=tokens)

    def call(
        self,
        call_id: str,
        name: str = "look",
        arguments: dict[str, Any] | None = None,
        *,
        uid: str = ROOT,
        is_broken: bool = False,
    ) -> int:
        payload = ToolCalled(
            call_id=call_id,
            tool_name=name,
            arguments=None if is_broken else (arguments or {}),
            raw='{"oops' if is_broken else "",
        )
        return self.write(payload, uid=uid, turn_id=self.turn_id)

    def result(
        self, call_id: str, text: str = "found", *, uid: str = ROOT, is_error: bool = False
    ) -> int:
        payload = ToolAnswered(
            call_id=call_id, tool_name="look", output=ToolOutput(content=text, is_error=is_error)
        )
        return self.write(payload, uid=uid, turn_id=self.turn_id)

    def note(
        self,
        text: str,
        *,
        note: Literal["skill", "limit", "bridge"] = "skill",
        uid: str = ROOT,
        alone: bool = False,
    ) -> int:
        payload = SystemMessage(text=text, note=note)
        return self.write(payload, uid=uid, turn_id=None if alone else self.turn_id)

    def turn(
        self, text: str = "question", reply: str = "answer", *, uid: str = ROOT, tokens: int = -1
    ) -> int:
        """Tell a whole turn; gives the seq of its end."""
        self.ask(text, uid=uid, tokens=tokens)
        return self.answer(reply, uid=uid, tokens=tokens)

    def tool_turn(self, text: str = "question", *, uid: str = ROOT) -> int:
        """Tell a turn of five events: prompt, call with a word before it, result, answer."""
        self.ask(text, uid=uid)
        self.answer("let me look", uid=uid)
        self.call("a", uid=uid)
        self.result("a", f"found {text}", uid=uid)
        return self.answer(f"so: {text}", uid=uid)

    def rewind(self, to_seq: int, *, uid: str = ROOT, undoes: int | None = None) -> int:
        return self.write(Rewind(to_seq=to_seq, undoes=undoes), uid=uid)

    def clear(self, *, uid: str = ROOT) -> int:
        return self.write(Clear(), uid=uid)

    def imported(self, messages: Sequence[Message], *, uid: str = ROOT) -> None:
        for message in messages:
            self.write(Imported(message=message), uid=uid)

    def view(self, uid: str = ROOT) -> SlotHistory:
        return view_of(uid, self.slots, self.events)

    def project(
        self, *, uid: str = ROOT, mode: SlotMode | None = None, **settings: Any
    ) -> Projection:
        settings.setdefault("checkpoint", None)
        return project(self.view(uid), mode=mode or Full(), **settings)

    def lineage(self, uid: str = ROOT) -> set[int]:
        """Every spoken seq that a slot's lineage holds, in view or not."""
        bound: int | None = None
        found: set[int] = set()
        at: str | None = uid
        while at is not None:
            found |= {
                e.seq
                for e in self.events[at]
                if is_spoken(e.payload) and (bound is None or e.seq <= bound)
            }
            slot = self.slots[at]
            bound = slot.fork_seq if bound is None else min(bound, slot.fork_seq)
            at = slot.parent_uid
        return found

    def plan(
        self, *, uid: str = ROOT, keep: int = 20_000, mode: SlotMode | None = None, **settings: Any
    ) -> CompactionPlan:
        settings.setdefault("checkpoint", None)
        return plan_compaction(
            self.view(uid), slot_id="default", mode=mode or Full(), limits=limits(keep), **settings
        )


def is_spoken(payload: Payload) -> bool:
    return not isinstance(payload, (Rewind, Clear))


def limits(keep: int, window: int = 128_000) -> Limits:
    return Limits(
        window=window,
        reserve=0,
        keep=keep,
        threshold=window,
        configured_reserve=0,
        configured_keep=keep,
    )


def checkpoint_at(
    first_retained_seq: int, summary: str = "what was", uid: str = ROOT
) -> Checkpoint:
    return Checkpoint(
        checkpoint_id="cp",
        slot_uid=uid,
        generation=1,
        parent_checkpoint_id=None,
        summary=summary,
        rendered=render_summary(summary) if summary else "",
        first_retained_seq=first_retained_seq,
        source_max_seq=first_retained_seq,
        reason="manual",
        provider="p",
        model="m",
        tokens_before=2,
        tokens_after=1,
        degraded=False,
        created_at=WHEN,
    )


def seqs_of(messages: Sequence[Message]) -> list[int]:
    """Find the events that messages stand for, the calls of an assistant's included."""
    own = [m.seq for m in messages if m.seq is not None]
    calls = [c for m in messages if isinstance(m, Assistant) for c in m.calls]
    return sorted({*own, *(int(c.call_id[1:].partition("-")[0]) for c in calls)})


def assert_nothing_open(events: Sequence[LedgerEvent], first_retained: int) -> None:
    """Fail where a call before a cut has its result behind it."""
    before = [e for e in events if e.seq < first_retained]
    after = {
        (e.turn_id, e.payload.call_id)
        for e in events
        if e.seq >= first_retained and e.turn_id and isinstance(e.payload, ToolAnswered)
    }
    asked = {(e.turn_id, e.payload.call_id) for e in before if isinstance(e.payload, ToolCalled)}
    assert not asked & after


def sample() -> list[Any]:
    """Give one projection with everything in it."""
    story = Story()
    story.turn("old")
    for number in range(3):
        story.tool_turn(f"q{number}")
    story.ask("stopped")
    story.call("x", arguments={"b": 1, "a": [1, {"d": 2, "c": 3}]})
    story.call("y")
    story.result("y")
    story.answer("half", cause="stopped")
    story.note("skill")
    story.turn("new")
    child = story.add_slot("child", parent=ROOT)
    story.ask("now", uid=child)
    mode = Focused(recent_messages=9, summary_override="tea")
    checkpoint = checkpoint_at(3)
    projection = story.project(
        uid=child, mode=mode, checkpoint=checkpoint, running_turn=story.turn_id
    )
    return [*projection.messages, projection.fates]
