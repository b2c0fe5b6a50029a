"""What one open session works with: its parts, its state and recorder, and what runs in it.

Everything here runs on the session's loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import msgspec

from agent_magics.context.view import TurnSpan
from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import (
    AgentError,
    AgentShutdown,
    InputValidation,
    SessionClosed,
    SessionReadonly,
    SlotReadonly,
    TurnBusy,
    said_by,
)
from agent_magics.core.events import Imported, LedgerEvent, Origin, UserMessage
from agent_magics.core.hooks import SessionEnding
from agent_magics.core.messages import UserInput
from agent_magics.core.ports import Change, Provider, SessionState, Tool
from agent_magics.core.slots import Readonly, Slot, Static
from agent_magics.core.turns import Failed, Panicked
from agent_magics.session.compaction.compactor import Compactor
from agent_magics.session.compaction.slot_bridge import SlotBridge
from agent_magics.session.compaction.summaries import Summaries
from agent_magics.session.compaction.trigger import Trigger
from agent_magics.session.extensions.hooks import HookScope, called_from_hook
from agent_magics.session.memory.fact_tools import memory_tools
from agent_magics.session.memory.facts import SessionMemory
from agent_magics.session.parts import AgentParts, Models
from agent_magics.session.request.next_request import NextRequest
from agent_magics.session.request.request_builder import PreparedRequest, RequestBuilder
from agent_magics.session.request.side_request import SideRequest
from agent_magics.session.slots.changes import SlotChanges
from agent_magics.session.slots.listing import Listing
from agent_magics.session.state.followers import Followers
from agent_magics.session.state.loaded import LoadedSession, is_static
from agent_magics.session.state.recorder import Recorder
from agent_magics.session.state.references import References
from agent_magics.session.state.running_turn import CancelToken, RunningTurn
from agent_magics.session.turn.tool_approval import Approvals
from agent_magics.session.turn.turn_start import TurnStart

FORCED_HOOKS_S = 1.4
CLOSE_PATIENCE_S = 0.9  # twice, and the release: within 2 s

_log = logging.getLogger("agent_magics.session")


class OpenSession:
    """The working state behind a `Session`."""

    def __init__(self, parts: AgentParts, recorder: Recorder) -> None:
        self.parts = parts
        self.recorder = recorder
        self.loaded: LoadedSession = recorder.loaded
        self.listing = Listing(self.loaded)
        self.models = Models(parts.registry, parts.config.models)
        self.memory = SessionMemory(recorder, self.check_open)
        side_request = SideRequest(recorder=recorder, clock=parts.clock, config=parts.config)
        self.bridges = SlotBridge(recorder=recorder, side_request=side_request)
        self.references = References(parts.references)
        self.remembering = parts.memory.enter(recorder)
        self.builder = self.builder_for(self.loaded, self.references)
        self.slot_changes = SlotChanges(self.loaded, recorder.event, parts.clock, parts.ids)
        self.running: dict[str, RunningTurn] = {}
        self.following = Followers(self.running)
        recorder.subscribe(self.following.changed)
        self.switches = 0
        self.is_closed = False
        self.agent_has_ended = False
        self.changing = asyncio.Lock()
        self._is_closing = False
        self.approvals = Approvals(parts.approver)
        self._closing = asyncio.Lock()
        self._doing: dict[str, str] = {}
        self.trigger = Trigger()
        summaries = parts.config.summary_config
        self.summaries = (
            Summaries(config=summaries, recorder=recorder, side_request=side_request)
            if summaries
            else None
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._work: set[asyncio.Task[Any]] = set()

    # Facts

    @property
    def name(self) -> str:
        """The session as people know it: its title, else its id."""
        return self.loaded.row.title or self.loaded.row.session_id

    @property
    def session_model(self) -> str:
        return self.chosen_model or self.parts.config.default_model

    @property
    def chosen_model(self) -> str | None:
        chosen = self.loaded.metadata.get("session_config", {}).get("model_id")
        return str(chosen) if chosen else None

    @property
    def prompt_override(self) -> str | None:
        override = self.loaded.metadata.get("session_config", {}).get("system_prompt_override")
        return str(override) if override else None

    def spec_of(self, slot: Slot) -> str:
        return slot.config.model or self.session_model

    async def model_of(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        return await self.models.find(self.spec_of(slot))

    def builder_for(
        self, loaded: LoadedSession, references: References | None = None
    ) -> RequestBuilder:
        """Make what makes requests from a loaded session, this one or one of its past."""
        return RequestBuilder(
            loaded,
            self.parts.config,
            self.parts.tools,
            self._own_tools,
            references=references,
            memories=self._shown_memories,
            skills=[(skill.name, skill.description) for skill in self.parts.skills.implicit],
            plugins=[
                (plugin.display_name, plugin.description)
                for plugin in self.parts.plugins.descriptors
                if plugin.description.strip()
            ],
        )

    def running_ids(self) -> dict[str, str]:
        return {uid: turn.turn_id for uid, turn in self.running.items()}

    def snapshot(self) -> SessionState:
        return self.loaded.snapshot(tuple(self.running_ids().values()))

    def turns(self, slot: Slot) -> tuple[TurnSpan, ...]:
        return self.loaded.turns(slot, self.running_ids().get(slot.uid))

    def prepared(self, slot: Slot, model: ModelInfo) -> PreparedRequest:
        return self.builder.build(
            slot,
            model,
            running_turn=self.running_ids().get(slot.uid),
            override=self.prompt_override,
        )

    def compactor(
        self,
        model: ModelInfo,
        hooks: HookScope,
        *,
        running_turn: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> Compactor:
        return Compactor(
            recorder=self.recorder,
            next_request=NextRequest(
                builder=self.builder,
                model=model,
                override=self.prompt_override,
                running_turn=running_turn,
                tools=tools,
            ),
            config=self.parts.config,
            clock=self.parts.clock,
            ids=self.parts.ids,
            hooks=hooks,
        )

    def hooks(
        self,
        slot_id: str | None = None,
        turn_id: str | None = None,
        turn_index: int | None = None,
    ) -> HookScope:
        """Return where hooks are fired: the session, or one of its turns."""
        return HookScope(
            registry=self.parts.plugins.hooks,
            clock=self.parts.clock,
            session_id=self.loaded.row.session_id,
            slot_id=slot_id,
            turn_id=turn_id,
            turn_index=turn_index,
        )

    async def summariser(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model that summarises a slot."""
        return await self.models.find(self.parts.config.compact_model or self.spec_of(slot))

    def _own_tools(self, slot: Slot) -> Sequence[Tool]:
        if not self.parts.config.session_memory_tools or is_static(slot):
            return ()
        return memory_tools(self.memory, slot.uid)

    async def memory_writer(self, slot: Slot) -> tuple[Provider, ModelInfo]:
        """Find the model that reads what was said for memories."""
        return await self.models.find(self.parts.config.memory_model or self.spec_of(slot))

    def _shown_memories(self) -> tuple[str, ...]:
        return self.remembering.recall.shown if self.remembering else ()

    # Checks

    def check_open(self) -> None:
        if self._is_closing:
            raise AgentShutdown if self.agent_has_ended else SessionClosed(self.name)
        if self.recorder.is_readonly:
            raise SessionReadonly(self.name, self.recorder.readonly_because)

    def check_model(self, spec: str | None) -> None:
        if spec is not None:
            self.models.check(spec)

    def check_free(self, slot_id: str, *, replace: bool) -> None:
        """A slot that is to be replaced must be idle."""
        if replace and slot_id in self.loaded.living:
            self.idle_slot(slot_id)

    def idle_slot(self, slot_id: str | None) -> Slot:
        """Find a slot in which nothing runs, or raise `SlotNotFound` or `TurnBusy`."""
        slot = self.loaded.slot(slot_id)
        if slot.uid in self._doing:
            raise TurnBusy(slot.slot_id, self._doing[slot.uid])
        return slot

    def check_writable(self, uid: str) -> None:
        """Raise `SlotReadonly` where the slot may not be added to."""
        slot = self.loaded.slots[uid]
        if isinstance(slot.config.mode, Readonly):
            raise SlotReadonly(slot.slot_id)

    def check_startable(self, slot_ids: Sequence[str]) -> None:
        """Check that one prompt can go to all of these slots, before it goes to any.

        Why: docs/decisions.md#28.
        """
        self.check_open()
        if not slot_ids:
            raise InputValidation("No slot is named; name those that should be asked.")
        for slot_id in slot_ids:
            if list(slot_ids).count(slot_id) > 1:
                raise InputValidation(f'Slot "{slot_id}" is named twice; name each once.')
            slot = self.idle_slot(slot_id)
            self.check_writable(slot.uid)
            self.check_model(self.spec_of(slot))

    def check_turn_end(self, slot: Slot, seq: int) -> None:
        """Raise `InputValidation`, naming the nearest ends, where `seq` doesn't end a turn."""
        # 0 is the empty view: the point before the first turn.
        ends = [0, *(span.last_seq for span in self.turns(slot) if span.is_finished)]
        if seq in ends or seq in self._borders(slot):
            return
        below = max((end for end in ends if end < seq), default=0)
        above = min((end for end in ends if end > seq), default=None)
        nearest = f"{below}" if above is None else f"{below} and {above}"
        raise InputValidation(
            f'seq {seq} does not end a turn of slot "{slot.slot_id}"; the nearest ends: {nearest}.'
        )

    def _borders(self, slot: Slot) -> set[int]:
        """Find the seqs between a turn and what was recorded outside of turns, a bridge say."""
        events = self.loaded.view(slot).events
        return {a.seq for a, b in pairwise(events) if a.turn_id != b.turn_id}

    def fork_seq(self, parent: Slot, at_seq: int | None) -> int:
        """Return the last inherited seq of a child made now (docs/decisions.md#18)."""
        if at_seq is not None:
            self.check_turn_end(parent, at_seq)
            return at_seq
        return self.loaded.last_finished_seq(parent, self.running_ids().get(parent.uid))

    @contextmanager
    def doing(self, slot: Slot, what: str) -> Iterator[None]:
        """Keep a slot for one piece of work."""
        self.check_open()
        self.idle_slot(slot.slot_id)
        self._doing[slot.uid] = what
        task = asyncio.current_task()
        assert task is not None
        self._work.add(task)
        try:
            yield
        finally:
            self._work.discard(task)
            self._doing.pop(slot.uid, None)
            self.recorder.notify()

    # Deeds

    async def commit(self, change: Change) -> tuple[LedgerEvent, ...]:
        """Write a change of an open session; static slots stay in this process."""
        self.check_open()
        # One change may touch both kinds, as a switch away from a static slot does.
        statics = {uid for uid, slot in self.loaded.slots.items() if is_static(slot)}
        statics.update(slot.uid for slot in change.slots if is_static(slot))
        stored = _without(change, statics)
        events = await self.recorder.commit(stored) if stored != Change() else ()
        self.loaded.apply(_only(change, statics), ())
        self.recorder.notify()
        return events

    def with_imports(self, change: Change, parent: Slot) -> Change:
        """Write a static slot's messages into its child: the only copy there is."""
        assert isinstance(parent.config.source, Static)
        uid = change.slots[-1].uid
        imported = tuple(
            self.recorder.event(Imported(message=message), slot_uid=uid)
            for message in parent.config.source.messages
        )
        return msgspec.structs.replace(change, events=(*change.events, *imported))

    async def start(
        self,
        given: UserInput,
        *,
        slot_id: str | None,
        cancel: CancelToken | None = None,
        model: str | None = None,
        origin: Origin | None = None,
    ) -> RunningTurn:
        """Check everything, keep the slot, start the turn's task."""
        self.check_open()
        skills = self.parts.skills.called_by(given)
        slot = self.loaded.slot(slot_id)
        self.check_writable(slot.uid)
        self.idle_slot(slot.slot_id)
        self.check_model(model or self.spec_of(slot))
        turn = self._handle(slot)
        # No await between the checks and this line: two callers could both find the slot idle.
        self._doing[slot.uid] = "a turn"
        self.running[slot.uid] = turn
        forget = cancel.on_cancel(turn.cancel) if cancel is not None else None
        starting = TurnStart(
            open_session=self,
            turn=turn,
            slot=slot,
            given=given,
            skills=skills,
            spec=model or self.spec_of(slot),
            origin=origin,
        )
        task = asyncio.ensure_future(self._run(starting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if forget is not None:
            task.add_done_callback(lambda _: forget())
        return turn

    async def close(self, *, force: bool = False) -> None:
        """Stop what runs, wait for its record, tell the plugins, release the lease.

        A plugin's abort raises and leaves the session open, unless `force`.
        """
        if called_from_hook():
            raise InputValidation(
                "A plugin's hook can't close the session that waits for it; answer Abort to stop"
                " what is about to happen, or close the session afterwards."
            )
        if force:
            await self._close(force=True)
            return
        async with self._closing:
            await self._close(force=False)

    async def _close(self, *, force: bool) -> None:
        if self.is_closed:
            return
        began_s = self.parts.clock.monotonic()
        self._is_closing = True
        try:
            await self._stop_all()
            # Stopping and plugins share one allowance: together they must stay within a kernel's 2
            # seconds.
            spent_s = self.parts.clock.monotonic() - began_s
            await self._fire_end(patience_s=max(0.1, FORCED_HOOKS_S - spent_s) if force else None)
        except BaseException:
            self._is_closing = self.is_closed
            raise
        try:
            if self.remembering and not force and not self.recorder.is_readonly:
                slot = self.loaded.slot(None)
                await self.remembering.at_close(lambda: self.memory_writer(slot))
        finally:
            if not self.is_closed:  # by force, meanwhile
                self.is_closed = True
                self.parts.memory.leave()
                self.following.end()
                await self.recorder.release()

    async def _fire_end(self, patience_s: float | None) -> None:
        """Tell the plugins that the session ends; None: they may take their time, and say no."""
        if self.recorder.is_readonly:  # it goes on where it is written
            return
        ending = SessionEnding(message_count=self.loaded.row.message_count)
        if patience_s is None:
            await self.hooks().fire(ending)
            return
        try:
            await asyncio.wait_for(self.hooks().fire(ending), patience_s)
        except (AgentError, TimeoutError) as error:
            _log.warning("a plugin could not keep a session open: %s", said_by(error))

    async def _stop_all(self) -> None:
        for turn in tuple(self.running.values()):
            turn.cancel()
        for work in self._work:
            work.cancel()
        if running := {*self._tasks, *self._work}:
            await asyncio.wait(running, timeout=CLOSE_PATIENCE_S)
        for turn in tuple(self.running.values()):
            turn.abandon()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=CLOSE_PATIENCE_S)

    def _handle(self, slot: Slot) -> RunningTurn:
        return RunningTurn(
            session_id=self.loaded.row.session_id,
            slot_id=slot.slot_id,
            slot_uid=slot.uid,
            turn_id=self.parts.ids.new("turn"),
            clock=self.parts.clock,
            steer=self._steer,
            on_event=self.recorder.notify,
        )

    async def _run(self, starting: TurnStart) -> None:
        turn = starting.turn
        try:
            outcome = await starting.outcome()
        except AgentError as error:
            outcome = Failed(error=error, reply=starting.empty_reply())
        except BaseException as error:
            outcome = Panicked(error=error, reply=starting.empty_reply())
            # A cancel or exit of the loop itself goes on, once those who wait for the turn have
            # their answer.
            if not isinstance(error, Exception):
                raise
        finally:
            self.running.pop(turn.slot_uid, None)
            self._doing.pop(turn.slot_uid, None)
            self.references.forget(turn.turn_id)
            turn.end(outcome)

    async def _steer(self, turn: RunningTurn, text: str) -> None:
        content = UserInput.of(text).content
        await turn.has_begun.wait()  # what steers a turn stands behind its prompt
        await turn.between_requests.wait()  # and behind the answer that doesn't know of it
        # Looked at after the waits: the turn may have ended meanwhile, and another one begun.
        if self.running.get(turn.slot_uid) is not turn:
            raise InputValidation("The turn has ended; ask in a new one.")
        message = UserMessage(content=content, is_steering=True)
        (event,) = await self.recorder.append(
            [message], slot_uid=turn.slot_uid, turn_id=turn.turn_id
        )
        turn.last_steer_seq = event.seq


def _without(change: Change, uids: set[str]) -> Change:
    current = change.current_slot_uid
    return msgspec.structs.replace(
        change,
        events=tuple(event for event in change.events if event.slot_uid not in uids),
        slots=tuple(slot for slot in change.slots if slot.uid not in uids),
        current_slot_uid=None if current in uids else current,
    )


def _only(change: Change, uids: set[str]) -> Change:
    current = change.current_slot_uid
    return Change(
        slots=tuple(slot for slot in change.slots if slot.uid in uids),
        current_slot_uid=current if current in uids else None,
    )
