"""How a session and the memories that last meet: at its opening, around each turn, at its close.

No trouble here fails a turn or a close: it is told, and what wasn't read is read another time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agent_magics.core.chat import ModelInfo
from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import AgentError, StorageError, StoreError, said_by
from agent_magics.core.memories import Memory
from agent_magics.core.messages import UserInput, text_of
from agent_magics.core.ports import Clock, Ids, MemoryStorage, Provider
from agent_magics.core.turns import (
    Completed,
    ErrorNoted,
    MemoriesChanged,
    TurnOutcome,
    TurnPayload,
)
from agent_magics.session.memory.extraction import CHECKPOINT, Extraction, Material, MemoryChanges
from agent_magics.session.memory.recall import Recall, section_of
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.running_turn import RunningTurn, Stopped

NAMESPACE = "memory_namespace"
CLOSE_PATIENCE_S = 60.0
RECALL_PATIENCE_S = 5.0
_log = logging.getLogger("agent_magics.session")

FindWriter = Callable[[], Awaitable[tuple[Provider, ModelInfo]]]
Section = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class TurnMoment:
    """A turn, as far as memories are concerned.

    `others` tells which turns run in other slots, by slot uid; `find_writer` finds the model that
    reads what was said; `emit` shows an event of the turn and `warn` a sentence.
    """

    slot_uid: str
    turn_id: str
    others: Callable[[], Mapping[str, str]]
    find_writer: FindWriter
    emit: Callable[[TurnPayload], None]
    warn: Callable[[str], None]


class Remembering:
    """Recall and extraction of one open session."""

    def __init__(
        self,
        *,
        storage: MemoryStorage,
        recorder: Recorder,
        config: AgentConfig,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._config = config
        self._loaded: LoadedSession = recorder.loaded
        self._has_begun = False
        self._is_extracting = False
        self._late_warnings: list[str] = []
        namespace = self._bound_namespace()
        self.recall = Recall(storage, namespace, config.memory_max_items)
        self.extraction = Extraction(
            recorder=recorder,
            storage=storage,
            namespace=namespace,
            config=config,
            clock=clock,
            ids=ids,
            on_change=self.recall.update,
        )

    @property
    def namespace(self) -> str:
        """Where this session's memories are, for its whole life."""
        return self.recall.namespace

    async def open(self) -> None:
        """Choose the memories that every request shows; trouble is told by the first turn."""
        await self._load(self._late_warnings.append)

    async def everything(self) -> tuple[Memory, ...]:
        """Return all memories of the namespace, the one that changed last first."""
        found = await self.extraction.storage.list_by_namespace(self.namespace)
        return tuple(sorted(found, key=lambda memory: memory.updated_at, reverse=True))

    async def before_turn(self, prompt: str, moment: TurnMoment) -> list[Section]:
        """Read what an earlier close left, then find what a prompt's words call up.

        Returns a section for the turn's reference block, where something was found.
        """
        for warning in self._late_warnings:
            _report_fault(moment, warning)
        # There is no turn yet where a session opens, so what went wrong there is told by the first
        # one.
        self._late_warnings.clear()
        await self._load(lambda text: _report_fault(moment, text))
        # Not at the opening, which makes no request: it is `%load_ext`, and nobody asked for
        # anything yet.
        if not self._has_begun:
            self._has_begun = True
            await self._begin(moment)
        return await self._find(prompt, moment)

    async def after_turn(self, moment: TurnMoment) -> None:
        """Extract, where enough turns have passed."""
        # Two turns of two slots may end together; both would read the same stretch.
        if not self._config.memory_extraction or self._is_extracting:
            return
        others = moment.others()
        if self.extraction.is_due(others):
            await self._extract(self.extraction.material(others), moment, "checkpoint")

    async def at_close(self, find_writer: FindWriter) -> None:
        """Extract what no checkpoint has read; after a minute it is left for the next opening."""
        # A session that was only looked at has nothing new, and its close must cost nothing.
        if not (self._config.memory_extraction and self._has_begun):
            return
        material = self.extraction.material({})
        if not material.stretches:
            return
        try:
            async with asyncio.timeout(CLOSE_PATIENCE_S):
                kept = await self.extraction.run(material, find_writer, source=self._own_source)
                await self.extraction.checkpoint(material.last_seq, is_on=True, kept=kept)
        except Exception as error:  # noqa: BLE001  foreign code; a close goes on whatever happens
            _log.warning("what was said last is not extracted yet: %s", _code_of(error))

    @property
    def _own_source(self) -> str:
        return f"session:{self._loaded.row.session_id}"

    def _bound_namespace(self) -> str:
        told = self._loaded.metadata.get(NAMESPACE, {}).get("namespace")
        if isinstance(told, str) and told.strip():
            return told
        _log.warning("session %s names no memory namespace", self._loaded.row.session_id)
        self._late_warnings.append(
            "This session's ledger names no namespace of memories; the configured one,"
            f' "{self._config.memory_namespace}", is used.'
        )
        return self._config.memory_namespace

    def _was_on(self) -> bool:
        """Return whether the session was being read when it was last open."""
        metadata = self._loaded.metadata
        at_start = metadata.get(NAMESPACE, {}).get("extraction", False)
        return bool(metadata.get(CHECKPOINT, {}).get("is_on", at_start))

    async def _load(self, warn: Callable[[str], None]) -> None:
        try:
            async with asyncio.timeout(RECALL_PATIENCE_S):
                await self.recall.load()
        except Exception as error:  # noqa: BLE001  a storage is foreign code; turns go on without
            _log.warning("memories could not be read: %s", _code_of(error))
            warn(f"Memories can't be read now: {_sentence(error)}")

    async def _find(self, prompt: str, moment: TurnMoment) -> list[Section]:
        try:
            async with asyncio.timeout(RECALL_PATIENCE_S):
                found = await self.recall.find(prompt)
        except Exception as error:  # noqa: BLE001  as above
            _log.warning("memories could not be searched: %s", _code_of(error))
            _report_fault(moment, f"Memories can't be searched now: {_sentence(error)}")
            return []
        return [section_of(found)] if found else []

    async def _begin(self, moment: TurnMoment) -> None:
        """Read what was left; what was said while extraction was off is not read later."""
        # What was said while it was off was said without leave to remember it: turning it on starts
        # from now.
        is_on, was_on = self._config.memory_extraction, self._was_on()
        material = self.extraction.material(moment.others())
        if is_on != was_on:
            last_seq = material.last_seq if is_on else self.extraction.last_seq
            await self._move_checkpoint(last_seq, moment, is_on=is_on)
        elif is_on and material.stretches:
            turns = f"{material.turns:,} turn{'' if material.turns == 1 else 's'}"
            moment.warn(f"The last close left {turns} unread; one request remembers them now.")
            await self._extract(material, moment, self._own_source)

    async def _extract(self, material: Material, moment: TurnMoment, source: str) -> None:
        if not material.stretches:
            return
        self._is_extracting = True
        try:
            kept = await self.extraction.run(
                material,
                moment.find_writer,
                source=source,
                slot_uid=moment.slot_uid,
                turn_id=moment.turn_id,
            )
        except Exception as error:  # noqa: BLE001  providers and storages are foreign code
            _log.warning("nothing was extracted: %s", _code_of(error))
            text = f"Nothing was remembered, it will be tried again later: {_sentence(error)}"
            if isinstance(error, AgentError) and not isinstance(error, StoreError):
                moment.warn(text)
            else:
                _report_fault(moment, text)
            return
        finally:
            self._is_extracting = False
        await self._move_checkpoint(material.last_seq, moment, is_on=True, kept=kept)
        if not kept.is_nothing:
            moment.emit(
                MemoriesChanged(created=kept.created, updated=kept.updated, deleted=kept.deleted)
            )

    async def _move_checkpoint(
        self, last_seq: int, moment: TurnMoment, *, is_on: bool, kept: MemoryChanges | None = None
    ) -> None:
        """Write the checkpoint; without it the turn goes on, and the next one reads again."""
        try:
            await self.extraction.checkpoint(last_seq, is_on=is_on, kept=kept)
        except StoreError as error:
            _log.warning("a memory checkpoint was not recorded: %s", error.code)
            _report_fault(moment, f"A memory checkpoint was not recorded: {error.message}")


@dataclass(frozen=True, kw_only=True)
class TurnMemories:
    """What one turn has to do with memories; a stop doesn't wait for them."""

    turn: RunningTurn
    remembering: Remembering | None
    moment: TurnMoment

    async def sections(self, given: UserInput) -> list[Section]:
        """Return what the words of the prompt call up; images and files aren't searched by."""
        if self.remembering is None:
            return []
        recalling = self.remembering.before_turn(text_of(given.content), self.moment)
        try:
            return await self.turn.unless_stopped(recalling)
        except Stopped:  # the turn records its prompt, and that
            return []

    async def after(self, outcome: TurnOutcome) -> None:
        """Extract after a turn that was completed, where it is due."""
        if self.remembering is None or not isinstance(outcome, Completed):
            return
        try:
            await self.turn.unless_stopped(self.remembering.after_turn(self.moment))
        except Stopped:  # the turn is complete; only its extraction was stopped
            return


def bound_namespace(config: AgentConfig, *, is_kept: bool) -> dict[str, object]:
    """Make the metadata that binds a new session to its namespace, for good."""
    return {
        "namespace": config.memory_namespace,
        "extraction": config.memory_extraction and is_kept,
    }


def _report_fault(moment: TurnMoment, text: str) -> None:
    moment.warn(text)
    moment.emit(ErrorNoted(code=StorageError.code, message=text))


def _sentence(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the storage does not answer."
    return error.message if isinstance(error, AgentError) else said_by(error)


def _code_of(error: Exception) -> str:
    return error.code if isinstance(error, AgentError) else type(error).__name__
