"""A real session that walks: one step after another, each with what it must and must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.context.budget import Limits
from agent_magics.context.tokens import count_text
from agent_magics.core.config import CompactionConfig
from agent_magics.core.errors import (
    CompactError,
    FixedContextExceedsBudget,
    NothingHelped,
    NothingToCompact,
)
from agent_magics.core.events import (
    AssistantMessage,
    Draft,
    Payload,
    ToolAnswered,
    ToolCalled,
    UserMessage,
)
from agent_magics.core.messages import Text, ToolOutput
from agent_magics.core.slots import Checkpoint, DeriveStrategy, Focused, Full, Readonly, Slot
from agent_magics.core.text import clean_text
from agent_magics.core.turns import Failed, Panicked, TextChunk, ToolStarted, TurnOutcome
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.session.compaction.trigger import REST_SHARE
from agent_magics.session.session import Session
from agent_magics.threads.loop import background_loop
from tests.context.telling import TROUBLE
from tests.session.marking import BAD, LONG, WINDOW, MarkingModel

if TYPE_CHECKING:
    from tests.session.conftest import Bench

THRESHOLD = 2_000
HOW: dict[str, Any] = {
    "context_limit": WINDOW,
    "compaction": CompactionConfig(reserve_tokens=WINDOW - THRESHOLD, keep_recent_tokens=400),
}
LUCK = ["good", "good", "good", "good", *BAD]
SAID = ["talk", "say", "call", "overflow", "lose", "fail", "stop", "steer", "flood"]
DONE = [
    *("compact", "undo compaction", "derive", "new", "delete", "focus", "full", "readonly"),
    *("rewind", "undo", "clear", "untied", "crash", "reload"),
]
FILLERS = ["", LONG, LONG * 2, LONG * 3, *TROUBLE]
FLOOD = LONG * 18
OVERFLOWS: list[list[dict[str, Any]]] = [[{}], [{"window": 3_000}], [{"used": 4_200}], [{}, {}]]


class Walker:
    """One session on a bench. `lossy` are the checkpoints that needn't name every mark."""

    def __init__(self, bench: Bench, session: Session, model: MarkingModel) -> None:
        self.bench = bench
        self.session = session
        self.model = model
        self.store = SqlStore(bench.path)
        self.lossy: set[str] = set()
        self.rests: dict[str, int] = {}
        self.steps = 0

    @classmethod
    async def begin(cls, bench: Bench) -> Walker:
        model = MarkingModel()
        how = {"tools": model.tools(), **HOW}
        walker = cls(bench, await bench.session(*[model.answer] * 400, **how), model)
        await walker.step("talk", 0, "good")
        return walker

    async def aclose(self) -> None:
        await self.store.aclose()
        await self.bench.aclose()
        self.bench._agents.clear()
        self.bench._stores.clear()

    async def step(self, name: str, number: int, luck: str) -> None:
        """Do something in one of the slots; errors that a user can cause come out."""
        self.steps += 1
        slots = [slot.slot_id for slot in self.session.list_slots()]
        slot = slots[number % len(slots)]
        self.model.begin()
        match name:
            case "compact":
                await self.compact(slot, luck)
            case "undo compaction":
                await self.session.undo_compaction(slot)
            case "derive" | "new" | "delete":
                await self.branch(name, slot, number)
            case "focus" | "full" | "readonly":
                modes = {"full": Full(), "readonly": Readonly()}
                mode = modes.get(name, Focused(recent_messages=number % 5))
                await self.session.configure_slot(slot, mode=mode)
            case "rewind" | "undo" | "clear":
                await self.move(name, slot, number)
            case "untied":
                await self.untied(slot)
            case "crash" | "reload":
                await self.reload(slot if name == "crash" else None)
            case "talk":
                for _ in range(3):
                    await self.turn("say", slot, 1, luck)
            case _:
                await self.turn(name, slot, number, luck)

    def slot(self, slot_id: str) -> Slot:
        return self.session._open_session.loaded.slot(slot_id)

    def checkpoint(self, slot_id: str) -> Checkpoint | None:
        return self.session._open_session.loaded.checkpoint_of(self.slot(slot_id))

    async def turn(self, name: str, slot: str, number: int, luck: str) -> None:
        prompt = self.model.mark(FLOOD if name == "flood" else FILLERS[number % len(FILLERS)])
        self.model.begin(clean_text(prompt), summary=luck)
        self.plan(name, number)
        info = self.session.context_info(slot)
        weight = round(info.used + (count_text(prompt) + 20) * info.factor)
        before, known = self.slot(slot), set(self.session._open_session.loaded.checkpoints)
        outcome = await self.run(name, slot, prompt)
        after = self.slot(slot)
        self.check_requests(name, outcome)
        if self.model.purposes[:1] == ["compaction"]:
            self.check_trigger(before, info.limits, weight)
        self.check_commits(slot, known)
        if isinstance(outcome, Failed) and isinstance(outcome.error, FixedContextExceedsBudget):
            assert self.model.purposes == []
            assert after == before
        elif name == "flood":
            pytest.fail(f"a prompt over the window ended as {outcome}")

    def plan(self, name: str, number: int) -> None:
        """Tell the model how its turn goes."""
        model = self.model
        sizes = [[1], [1, 60], [400, 1, 60]][number % 3]
        if name == "call" or (name == "overflow" and number % 2):
            model.batches = [list(sizes) for _ in range(1 + number % 2)]
            model.is_late = True
        if name == "overflow":
            model.overflows = list(OVERFLOWS[number % len(OVERFLOWS)])
        if name == "steer":
            model.batches = [[1]]
            model.steered.clear()
        endings: dict[str, dict[str, Any]] = {
            "lose": {"error": "lost"},
            "fail": {"text": "", "error": "auth"},
            "stop": {"chunk_delay_s": 5},
        }
        model.ending = endings.get(name, {})
        self.most = 2 * (len(model.batches) + 1)

    async def run(self, name: str, slot: str, prompt: str) -> TurnOutcome:
        turn = await self.session.send_message(prompt, slot=slot)
        async for event in turn:
            if name == "stop" and isinstance(event.payload, TextChunk):
                turn.cancel()
            if isinstance(event.payload, ToolStarted) and not self.model.steered.is_set():
                text = self.model.mark("in euros, please")
                await turn.steer(text)
                self.model.asked.append(text)
                self.model.steered.set()
        outcome = await turn.join()
        if isinstance(outcome, Panicked):
            raise outcome.error
        return outcome

    def check_requests(self, name: str, outcome: TurnOutcome) -> None:
        """A summary is asked for once at most, and no request is sent more than twice."""
        asked = self.model.purposes
        assert asked.count("compaction") <= 1
        assert asked.count("turn") <= self.most
        if isinstance(outcome, Failed) and isinstance(outcome.error, NothingHelped):
            assert self.model.has_refused, "what fits our estimates was not sent"

    def check_trigger(self, before: Slot, limits: Limits, weight: int) -> None:
        """The automatic trigger asks over the threshold only, and not while it rests.

        `weight`: what the turn's first request had at most.
        """
        made = self.session._open_session.loaded.checkpoint_of(before)
        rest = self.rests.get(before.uid, 0)
        rest = rest if weight >= rest else 0  # a context that has shrunk ends it
        floor = max(rest, made.tokens_after if made else 0)
        assert weight > limits.threshold
        assert not floor or weight >= floor + round(limits.window * REST_SHARE)
        if (
            self.session._open_session.loaded.slots[before.uid].checkpoint_id
            == before.checkpoint_id
        ):
            self.rests[before.uid] = weight - 100  # it failed, and weighed a little less

    def check_commits(self, slot: str, known: set[str]) -> None:
        """What was committed helps: fewer tokens, and under the threshold."""
        made = self.session._open_session.loaded.checkpoints
        for checkpoint in (made[each] for each in made.keys() - known):
            assert checkpoint.tokens_after < checkpoint.tokens_before
            assert checkpoint.degraded or checkpoint.tokens_after <= THRESHOLD
            if checkpoint.degraded or self.model.was_cut:
                self.lossy.add(checkpoint.checkpoint_id)
            self.rests.pop(self.slot(slot).uid, None)

    async def compact(self, slot: str, luck: str) -> None:
        """Compact by hand: never degraded, and at once again there is nothing to do."""
        self.model.begin(summary=luck)
        before, known = self.slot(slot), set(self.session._open_session.loaded.checkpoints)
        try:
            outcome = await self.session.compact(slot)
        except (NothingToCompact, FixedContextExceedsBudget):
            assert self.model.purposes == []
            assert self.slot(slot) == before
            return
        except CompactError:
            assert self.slot(slot) == before
            return
        assert luck == "good"
        self.check_commits(slot, known)
        made, info = self.checkpoint(slot), self.session.context_info(slot)
        assert made is not None
        assert not made.degraded
        assert info.used == outcome.tokens_after <= info.limits.threshold
        with pytest.raises(NothingToCompact):
            await self.session.compact(slot)

    async def branch(self, name: str, slot: str, number: int) -> None:
        session = self.session
        if name == "delete":
            await session.delete_slot(slot)
        elif len(session.list_slots()) >= 4:
            return
        elif name == "new":
            await session.create_slot(f"n{self.steps}")
            await session.switch_slot(f"n{self.steps}")
        else:
            kept = DeriveStrategy.focused(Focused(recent_messages=number))
            ends = [span.last_seq for span in session.turns(slot)]
            await session.derive_slot(
                f"d{self.steps}",
                slot,
                kept if number % 2 else DeriveStrategy.full(),
                at_seq=ends[number % len(ends)] if ends and number % 3 else None,
            )

    async def move(self, name: str, slot: str, number: int) -> None:
        session = self.session
        ends = [0, *(span.last_seq for span in session.turns(slot))]
        if name == "clear":
            await session.clear(slot)
            return
        gone = await session.rewind(slot, to_seq=ends[number % len(ends)])
        if name == "undo":
            head = [0, *(span.last_seq for span in session.turns(slot))]
            await session.rewind(slot, to_seq=head[-1 if number % 3 else 0], undoes=gone)

    async def untied(self, slot: str) -> None:
        """Write what an older program wrote: events of no turn, a result that nobody asked for."""
        if isinstance(self.slot(slot).config.mode, Readonly):
            return
        said = (Text(text=self.model.mark(LONG)),)
        await self.write(
            slot,
            None,
            UserMessage(content=said),
            ToolCalled(call_id="x", tool_name="rows", arguments={"n": 1}),
            ToolCalled(call_id="y", tool_name="rows", arguments={"n": 2}),
            self.result("y"),
            self.result("never"),
            self.result("x"),
            AssistantMessage(content=(Text(text=self.model.mark()),)),
        )

    def result(self, call_id: str) -> ToolAnswered:
        output = ToolOutput(content=self.model.mark())
        return ToolAnswered(call_id=call_id, tool_name="rows", output=output)

    async def write(self, slot: str, turn_id: str | None, *payloads: Payload) -> None:
        recorder, uid = self.session._open_session.recorder, self.slot(slot).uid
        await background_loop().hop(
            lambda: recorder.append(payloads, slot_uid=uid, turn_id=turn_id)
        )

    async def reload(self, crashing: str | None) -> None:
        """Open the session again; `crashing` is a slot whose turn is cut off by that."""
        if crashing and not isinstance(self.slot(crashing).config.mode, Readonly):
            await self.crash(crashing)
            before = None
        else:
            before = self.shown()
        learnt = self.session._open_session.requests.builder.learnt_windows
        session_id = self.session.session_id
        await self.session.close()
        how = {"tools": self.model.tools(), **HOW}
        self.session = await self.bench.resumed(session_id, *[self.model.answer] * 400, **how)
        self.session._open_session.requests.builder.learnt_windows.update(learnt)
        self.rests.clear()
        assert self.bench.provider.requests == []
        if before is not None:
            assert self.shown() == before

    async def crash(self, slot: str) -> None:
        turn_id = f"crashed-{self.steps}"
        said = (Text(text=self.model.mark()),)
        call = ToolCalled(call_id="c", tool_name="rows", arguments={"n": 1})
        await self.write(slot, turn_id, UserMessage(content=said), call)
        draft = Draft(slot_uid=self.slot(slot).uid, turn_id=turn_id, text=self.model.mark())
        recorder = self.session._open_session.recorder

        async def save() -> None:
            recorder.save_draft(draft)

        await background_loop().hop(save)

    def shown(self) -> list[object]:
        session = self.session
        return [
            (meta, session.messages(meta.slot_id), session.turns(meta.slot_id))
            for meta in session.list_slots()
        ]
