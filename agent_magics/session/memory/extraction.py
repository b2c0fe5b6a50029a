"""Extraction: what was said in a session becomes memories that last (docs/decisions.md#45).

Always incremental: a `memory_checkpoint` in the ledger says up to which seq the session's slots
have been read. It moves only when an answer was understood, so nothing is lost by one that wasn't.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_magics.context.budget import limits_for
from agent_magics.context.extraction import (
    CreateMemory,
    DeleteMemory,
    Extracted,
    ExtractionRequest,
    Operation,
    Stretch,
    UpdateMemory,
    by_id,
    extraction_request,
    read_extraction,
)
from agent_magics.context.projection import project
from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import InputValidation
from agent_magics.core.events import Metadata
from agent_magics.core.memories import MAX_MEMORY_CHARACTERS, Memory, memory_fault
from agent_magics.core.ports import Clock, Ids, MemoryStorage, Provider
from agent_magics.core.slots import Full, Slot, SlotConfig
from agent_magics.core.text import clean_text, clean_value
from agent_magics.core.values import Value
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder

CHECKPOINT = "memory_checkpoint"
_log = logging.getLogger("agent_magics.session")


class MemoryChanges(Value):
    """What an extraction did to the memories; `about` and `slug` say what was talked about."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    about: str = ""
    slug: str = ""

    @property
    def is_nothing(self) -> bool:
        return not (self.created or self.updated or self.deleted)


class Material(Value):
    """What hasn't been read yet: by slot, up to `last_seq`, in `turns` turns."""

    stretches: tuple[Stretch, ...]
    last_seq: int
    turns: int


@dataclass(kw_only=True)
class Extraction:
    """Reads one session for memories. `on_change` hears of each memory that changes or goes."""

    recorder: Recorder
    storage: MemoryStorage
    namespace: str
    config: AgentConfig
    clock: Clock
    ids: Ids
    on_change: Callable[[str, Memory | None], None]
    tried_at: int = 0

    @property
    def last_seq(self) -> int:
        """The last seq that was read."""
        told = self.recorder.loaded.metadata.get(CHECKPOINT, {}).get("last_seq")
        return told if isinstance(told, int) else 0

    def is_due(self, running: Mapping[str, str]) -> bool:
        """Return whether `memory_checkpoint_interval` turns passed since the last one, or attempt.

        `running` maps the uids of slots to turns that go on.
        """
        turns = len(_turns_since(self.recorder.loaded, self.last_seq, running))
        return turns - self.tried_at >= self.config.memory_checkpoint_interval

    def material(self, running: Mapping[str, str]) -> Material:
        """Gather what hasn't been read: in view of a living slot, before the oldest running turn.

        What several slots see stands with the one that said it.
        """
        loaded, after = self.recorder.loaded, self.last_seq
        bound = _bound(loaded, running)
        stretches: list[Stretch] = []
        # A child sees its parent's turns; read twice, they would be remembered twice.
        taken: set[int] = set()
        for slot in loaded.living.values():
            stretch = _stretch(loaded, slot, after, bound, taken)
            if stretch.messages:
                stretches.append(stretch)
        return Material(
            stretches=tuple(stretches),
            last_seq=bound - 1,
            turns=len(_turns_since(loaded, after, running)),
        )

    async def run(
        self,
        material: Material,
        find_writer: Callable[[], Awaitable[tuple[Provider, ModelInfo]]],
        *,
        source: str,
        slot_uid: str | None = None,
        turn_id: str | None = None,
    ) -> MemoryChanges:
        """Ask once what to remember of it, and do that; then the checkpoint moves.

        Raises `InputValidation` (an answer that can't be read; nothing changed),
        `SpendingLimitReached` (nothing was asked), and what provider and stores raise; whatever
        had been remembered by then stays.
        """
        # Noted before it is tried: an answer that can't be read is asked for again after the next
        # interval, not after every turn.
        self.tried_at = material.turns
        known = tuple(await self.storage.list_by_namespace(self.namespace))
        provider, model = await find_writer()
        window = limits_for(model.context_window, self.config, SlotConfig()).window
        request = extraction_request(material.stretches, known, model=model.name, window=window)
        if request is None:
            raise InputValidation(
                f"{model.shown} has a window of {window:,} tokens; no conversation fits into it"
            )
        extracted = await self._ask(request, provider, model, slot_uid, turn_id)
        # Numbers in the answer mean the memories that were listed; those that had no room can't be
        # meant.
        told = known[: len(known) - request.unlisted]
        kept = await self._apply_all(extracted, told, source)
        _log.info(
            "extracted session=%s turns=%s omitted=%s unlisted=%s created=%s updated=%s deleted=%s",
            self.recorder.loaded.row.session_id, material.turns, request.omitted,
            request.unlisted, kept.created, kept.updated, kept.deleted,
        )  # fmt: skip
        return kept

    async def checkpoint(
        self, last_seq: int, *, is_on: bool, kept: MemoryChanges | None = None
    ) -> None:
        """Write how far the session has been read, whether it is being read, and what it was about.

        Raises what the recorder raises; the same is read again then.
        """
        value: dict[str, Any] = {
            "last_seq": last_seq,
            "turn_index": _count(self.recorder.loaded),
            "is_on": is_on,
        }
        if kept is not None:
            value.update(about=kept.about, slug=kept.slug)
        await self.recorder.append([Metadata(key="memory_checkpoint", value=value)], slot_uid=None)
        self.tried_at = 0

    async def _ask(
        self,
        request: ExtractionRequest,
        provider: Provider,
        model: ModelInfo,
        slot_uid: str | None,
        turn_id: str | None,
    ) -> Extracted:
        answer = await self._side_request.ask(
            request, provider, model, "memory", slot_uid=slot_uid, turn_id=turn_id
        )
        extracted = read_extraction(answer)
        if extracted.unreadable:
            _log.warning("%s operations on memories made no sense", extracted.unreadable)
        return extracted

    @property
    def _side_request(self) -> SideRequest:
        return SideRequest(recorder=self.recorder, clock=self.clock, config=self.config)

    async def _apply_all(
        self, extracted: Extracted, told: Sequence[Memory], source: str
    ) -> MemoryChanges:
        """Do the operations on memories of this namespace; ids of others are unknown here."""
        # Read again: a person may have forgotten or corrected one while the model was writing.
        seen = {memory.memory_id for memory in told}
        now = {
            each.memory_id: each for each in await self.storage.list_by_namespace(self.namespace)
        }
        counts = {"created": 0, "updated": 0, "deleted": 0}
        for operation in by_id(extracted.operations, told):
            done = await self._apply(operation, seen, now, source)
            if done:
                counts[done] += 1
        return MemoryChanges(**counts, about=extracted.about, slug=extracted.slug)

    async def _apply(
        self, operation: Operation, seen: set[str], now: dict[str, Memory], source: str
    ) -> str | None:
        match operation:
            case DeleteMemory(target_id=target):
                return await self._forget(target, now)
            case UpdateMemory(target_id=target, content=content, tags=tags) if target in now:
                before = now[target]
                made = msgspec.structs.replace(
                    before, content=content, tags=tags or before.tags, source=source
                )
                return await self._write(made, now, "updated")
            case UpdateMemory(target_id=target) if target in seen:
                return None  # somebody has had it forgotten meanwhile
            case (
                UpdateMemory(content=content, tags=tags) | CreateMemory(content=content, tags=tags)
            ):
                if isinstance(operation, UpdateMemory):
                    _log.warning("an update of an unknown memory became a new one")
                return await self._create(content, tags, now, source)

    async def _create(
        self, content: str, tags: tuple[str, ...], now: dict[str, Memory], source: str
    ) -> str | None:
        # Models like to note again what they were shown.
        same = next((each for each in now.values() if each.content == content), None)
        if same is not None:
            await self._write(same, now, "updated")
            return None
        at = self.clock.now()
        made = Memory(
            memory_id=self.ids.new("memory"),
            namespace=self.namespace,
            content=content,
            source=source,
            created_at=at,
            updated_at=at,
            tags=tags,
        )
        return await self._write(made, now, "created")

    async def _write(self, memory: Memory, now: dict[str, Memory], what: str) -> str | None:
        content = clean_text(memory.content)
        if len(content) > MAX_MEMORY_CHARACTERS:
            content = content[: MAX_MEMORY_CHARACTERS - 1] + "…"
        # The model can't be trusted with this: it notes whatever stands in the conversation.
        if memory_fault(content) is not None or memory_fault(" ".join(memory.tags) or "-"):
            _log.warning("a memory was left out: it looks like a key or a password")
            return None
        made: Memory = clean_value(
            msgspec.structs.replace(memory, content=content, updated_at=self.clock.now())
        )
        await self.storage.upsert(made)
        now[made.memory_id] = made
        self.on_change(made.memory_id, made)
        return what

    async def _forget(self, target: str, now: dict[str, Memory]) -> str | None:
        if now.pop(target, None) is None:
            _log.warning("a memory that isn't there was to be deleted")
            return None
        await self.storage.delete(target)
        self.on_change(target, None)
        return "deleted"


def _bound(loaded: LoadedSession, running: Mapping[str, str]) -> int:
    """Return the first seq not to be read: of the oldest running turn, else after the head."""
    firsts = [
        span.first_seq
        for uid, turn_id in running.items()
        for span in loaded.turns(loaded.slots[uid])[-1:]
        if span.turn_id == turn_id
    ]
    head = loaded.events[-1].seq if loaded.events else 0
    return min(firsts, default=head + 1)


def _turns_since(loaded: LoadedSession, after: int, running: Mapping[str, str]) -> set[int]:
    """Name the turns in view that began after a seq and before the oldest running one."""
    bound = _bound(loaded, running)
    found: set[int] = set()
    for slot in loaded.living.values():
        for span in reversed(loaded.turns(slot)):
            if span.first_seq <= after:
                break
            if span.first_seq < bound and span.turn_id is not None:
                found.add(span.first_seq)
    return found


def _stretch(loaded: LoadedSession, slot: Slot, after: int, bound: int, taken: set[int]) -> Stretch:
    view = loaded.view(slot)
    start = bisect_right(view.events, after, key=lambda event: event.seq)
    events = tuple(e for e in view.events[start:] if e.seq < bound and e.seq not in taken)
    taken.update(event.seq for event in events)
    messages = project(msgspec.structs.replace(view, events=events), mode=Full(), checkpoint=None)
    return Stretch(slot_id=slot.slot_id, messages=messages.messages)


def _count(loaded: LoadedSession) -> int:
    """Count the session's turns: the sum over its slots, each turn once."""
    return len(_turns_since(loaded, 0, {}))
