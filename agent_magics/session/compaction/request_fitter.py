"""Make every request of a turn fit its model's window, and get over an overflow.

Before a turn's first request the slot may be compacted: by a summary where the trigger asks for
it, without one where the request would be over the hard window. Later requests of the turn are
trimmed in their copy only (docs/decisions.md#10): old turns over the threshold, the running turn's
own oldest iterations only over the window itself. A server that refuses a request as too long
teaches us its window, and is asked once more. A request that nothing makes fit is never sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from agent_magics.context.budget import ContextInfo, should_compact
from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import (
    CompactError,
    CompactionError,
    ContextOverflow,
    FixedContextExceedsBudget,
    NothingHelped,
    PluginAborted,
    ProviderError,
)
from agent_magics.core.events import Metadata
from agent_magics.core.ports import Provider
from agent_magics.core.slots import ModelParams, Slot
from agent_magics.core.turns import ContextCompacted, TurnPayload
from agent_magics.session.compaction.compactor import FIXED_PARTS, CompactionOutcome, Compactor
from agent_magics.session.compaction.shortening import Shortener
from agent_magics.session.request.request_builder import PreparedRequest

REST_SHARE = 0.05
SHRINK = 0.7
LEAST_OUTPUT_TOKENS = 16
OLD_TURNS_LEFT_OUT = "Older turns are left out of this turn's next requests, to make room."
ITERATIONS_LEFT_OUT = (
    "Older turns and the first tool calls of this turn are left out of its next requests, to make"
    " room; the log keeps them all."
)
SENT_WITH_EVERY_TURN = (*FIXED_PARTS, "user_input", "media")


@dataclass
class Trigger:
    """When the automatic trigger rests, by slot; for one open session (docs/decisions.md#36)."""

    rests_at: dict[str, int] = field(default_factory=dict)

    def wants(self, slot: Slot, info: ContextInfo) -> bool:
        """Return whether a slot is to be compacted now: over the threshold, and not resting."""
        if not should_compact(info.used, info.limits):
            return False
        step = round(info.limits.window * REST_SHARE)
        rests_at = self.rests_at.get(slot.uid)
        # Without a rest, a context that no summary makes smaller would be summarised before every
        # turn, at a price each time.
        if rests_at is not None and abs(info.used - rests_at) < step:
            return False
        return info.tokens_after is None or info.used >= info.tokens_after + step

    def rest(self, slot: Slot, info: ContextInfo) -> None:
        """Let the trigger rest until the window's twentieth part was added, or has gone."""
        self.rests_at[slot.uid] = info.used


@dataclass(kw_only=True)
class RequestFitter:
    """Fits the requests of one turn. `find_slot` gives the slot as it is now.

    `admit` raises where a request may not be sent anyway; it is asked before turns are given up
    for it.
    """

    compactor: Compactor
    trigger: Trigger
    find_slot: Callable[[], Slot]
    find_summariser: Callable[[], Awaitable[tuple[Provider, ModelInfo]]]
    emit: Callable[[TurnPayload], None]
    warn: Callable[[str], None]
    is_first: bool = True
    has_tried: bool = False
    starts_at: int | None = None
    ceiling: int | None = None
    told: set[str] = field(default_factory=set)
    admit: Callable[[PreparedRequest], None] = lambda _: None

    def __post_init__(self) -> None:
        self.shortener = Shortener(compactor=self.compactor)

    async def prepared(self) -> PreparedRequest:
        """Build the next request so that it fits.

        Raises `FixedContextExceedsBudget` or `NothingHelped`, naming the tokens of each part,
        where nothing makes it fit the window.
        """
        self.compactor.has_leave = False
        prepared = self._build()
        limits = prepared.info.limits
        # Between the calls of a turn nothing is committed: the turn must go on seeing what it began
        # with.
        if not self.is_first:
            return self._checked(self._trimmed(prepared, limits.threshold, limits.window))
        self.is_first = False
        self._check_floor(prepared)
        # Over the threshold is a wish, over the window is a must: only the latter may leave turns
        # out.
        is_over = prepared.info.used > limits.window
        if is_over or not should_compact(prepared.info.used, limits):
            await self._end_hold("overflow" if is_over else "fits")
        if self._is_on() and self.trigger.wants(self.find_slot(), prepared.info):
            await self._summarise("overflow" if is_over else "auto", prepared)
            prepared = self._build()
        if prepared.info.used > limits.window:
            prepared = await self._degraded(prepared, limits.threshold)
        return self._checked(prepared)

    async def after_overflow(
        self, refused: PreparedRequest, error: ContextOverflow, *, tools_ran: bool
    ) -> PreparedRequest:
        """Build the request that is sent once more after a server refused the last as too long.

        Raises as `prepared` does, and where the request can't be made any shorter.
        """
        self.compactor.has_leave = False
        self._learn(refused, error)
        await self._end_hold("overflow")
        goal = self._goal(refused)
        if tools_ran:
            # The tools of this turn must not run again, so it goes on with what it has, and
            # shorter. A later request that grew back over what was refused would be refused again.
            self.ceiling = goal
            prepared = self._trimmed(self._build(), goal, goal)
        else:
            if not self.has_tried:
                await self._summarise("overflow", self._build())
            prepared = self._build()
            if prepared.info.used > goal:
                prepared = await self._degraded(prepared, goal)
        # The same request would get the same refusal.
        if prepared.request.messages == refused.request.messages:
            raise self.diagnosis(prepared, error)
        return self._checked(prepared)

    def with_less_output(self, refused: PreparedRequest, error: ProviderError) -> PreparedRequest:
        """Reserve less output, where that is all a server asks for."""
        params = refused.request.params
        window = error.window or refused.info.limits.window
        room = window - (error.used or refused.info.used)
        if params.max_tokens is not None:
            # Half each time: servers count their own way, and the room that we work out may still
            # be too much.
            room = min(room, params.max_tokens // 2)
        fewer = max(LEAST_OUTPUT_TOKENS, room)
        limited = ModelParams(
            temperature=params.temperature,
            max_tokens=fewer,
            reasoning_effort=params.reasoning_effort,
        )
        request = msgspec.structs.replace(refused.request, params=limited)
        return msgspec.structs.replace(refused, request=request)

    def diagnosis(self, prepared: PreparedRequest, error: ContextOverflow) -> NothingHelped:
        """Say what fills the window, for a request that even recovery couldn't make fit."""
        return _overflow(prepared, error.message)

    def _build(self) -> PreparedRequest:
        return self.compactor.prepared(self.find_slot())

    def _is_on(self) -> bool:
        slot = self.find_slot()
        is_held = slot.uid in self.compactor.recorder.loaded.held
        return self.compactor.config.compaction.enabled and slot.config.compact and not is_held

    async def _end_hold(self, because: Literal["fits", "overflow"]) -> None:
        """Let the trigger act again on a slot whose compaction was undone."""
        slot = self.find_slot()
        recorder = self.compactor.recorder
        if slot.uid in recorder.loaded.held:
            released = Metadata(key="context_compaction", value={"released": because})
            await recorder.append(
                [released], slot_uid=slot.uid, turn_id=self.compactor.running_turn
            )

    async def _summarise(
        self, reason: Literal["auto", "overflow"], prepared: PreparedRequest
    ) -> None:
        self.has_tried = True
        slot = self.find_slot()
        try:
            outcome = await self.compactor.compact(
                slot,
                summariser=await self.find_summariser(),
                reason=reason,
            )
        except (CompactionError, ProviderError, PluginAborted) as error:
            if reason == "overflow" and isinstance(error, PluginAborted):
                raise _kept_whole(error) from error
            # A summary that fails must not fail the turn: it goes on as it was, and isn't tried
            # again at once.
            self.trigger.rest(slot, prepared.info)
            self.warn(f"The context was not compacted: {error.message}")
        else:
            self.trigger.rests_at.pop(slot.uid, None)
            self._tell(outcome, reason)

    async def _degraded(self, prepared: PreparedRequest, limit_tokens: int) -> PreparedRequest:
        try:
            made = await self.shortener.degrade(self.find_slot(), limit_tokens, self.admit)
        except PluginAborted as error:
            raise _kept_whole(error) from error
        if made is None:
            return prepared
        shorter = self._build()
        self.emit(
            ContextCompacted(
                reason="overflow",
                tokens_before=made.tokens_before,
                tokens_after=made.tokens_after,
                degraded=True,
                is_turn_cut=shorter.info.is_turn_cut,
            )
        )
        what = "Older turns"
        if shorter.info.is_turn_cut:
            what += ", and the beginning of a long one,"
        self.warn(
            f"{what} were left out without a summary, because the request was over the"
            f" model's window: {made.tokens_before:,} → {made.tokens_after:,} tokens;"
            " the log keeps them all"
        )
        return shorter

    def _trimmed(
        self, prepared: PreparedRequest, limit_tokens: int, most_tokens: int
    ) -> PreparedRequest:
        """Leave out old turns in this request only; a checkpoint comes with the next turn.

        Where it has over `most_tokens` even without them, the turn's own oldest iterations go.
        What a server refused in this turn isn't tried again.
        """
        if self.ceiling is not None:
            limit_tokens, most_tokens = (
                min(limit_tokens, self.ceiling),
                min(most_tokens, self.ceiling),
            )
        if prepared.info.used <= limit_tokens and self.starts_at is None:
            return prepared
        slot = self.find_slot()
        made = self.shortener.without_turns(slot, limit_tokens)
        shorter = self.compactor.prepared(slot, made) if made else prepared
        if shorter.info.used > most_tokens or self.starts_at is not None:
            return self._without_iterations(slot, shorter, limit_tokens, most_tokens)
        if made is not None:
            self._warn_once(OLD_TURNS_LEFT_OUT)
        return shorter

    def _without_iterations(
        self, slot: Slot, shorter: PreparedRequest, limit_tokens: int, most_tokens: int
    ) -> PreparedRequest:
        """Leave out iterations of the running turn in this request, and in those that follow.

        Where they begin moves only when it must, so that requests go on having the same start.
        """
        since = self.starts_at or 0
        made = self.shortener.without_iterations(slot, most_tokens, since=since)
        # The start has to move anyway, so it moves far enough for the requests that follow to keep
        # it, and the server its cached prefix.
        if made is not None and made.first_retained_seq != since:
            made = self.shortener.without_iterations(slot, limit_tokens, since=since)
        if made is None:
            return shorter
        self.starts_at = made.first_retained_seq
        self._warn_once(ITERATIONS_LEFT_OUT)
        return self.compactor.prepared(slot, made)

    def _warn_once(self, text: str) -> None:
        if text not in self.told:
            self.told.add(text)
            self.warn(text)

    def _checked(self, prepared: PreparedRequest) -> PreparedRequest:
        """Return a request that fits the window; one that doesn't is not sent."""
        self._check_floor(prepared)
        info = prepared.info
        if info.used > info.limits.window:
            said = f"The request has {info.used:,} tokens; the window has {info.limits.window:,}."
            raise _overflow(prepared, said)
        return prepared

    def _check_floor(self, prepared: PreparedRequest) -> None:
        """Check what is sent with every request of the turn before anything is given up."""
        info = prepared.info
        floor = {name: info.parts[name] for name in SENT_WITH_EVERY_TURN}
        if sum(floor.values()) > info.limits.window:
            raise FixedContextExceedsBudget(floor, info.limits.window, info.limits.larger)

    def _learn(self, refused: PreparedRequest, error: ContextOverflow) -> None:
        spec = self.compactor.model.spec
        learnt = self.compactor.builder.learnt_windows
        if error.window:
            # Servers behind one name may differ; what the smallest took, all take.
            learnt[spec] = min(error.window, learnt.get(spec, error.window))
        if error.used:
            calibration = self.compactor.recorder.loaded.calibration_of(self.find_slot())
            calibration.learn_overflow(spec, used=error.used, estimated=refused.info.estimate)

    def _goal(self, refused: PreparedRequest) -> int:
        """Aim under the threshold; where that had been met, well under what was refused."""
        now = self._build().info
        # Where the estimate was already under the threshold, it was wrong by an unknown part; only
        # a clear step down is sure to help.
        return min(now.limits.threshold, round(refused.info.used * SHRINK))

    def _tell(self, outcome: CompactionOutcome, reason: str) -> None:
        self.emit(
            ContextCompacted(
                reason=reason,
                tokens_before=outcome.tokens_before,
                tokens_after=outcome.tokens_after,
                degraded=False,
                turns=outcome.summarised_turns,
                is_turn_cut=outcome.is_turn_cut,
            )
        )


def _overflow(prepared: PreparedRequest, said: str) -> NothingHelped:
    parts = sorted(prepared.info.parts.items(), key=lambda part: -part[1])
    shown = ", ".join(f"{name} {tokens:,}" for name, tokens in parts if tokens)
    return NothingHelped(
        f"{said} Even shortened, the request doesn't fit: {shown} tokens."
        f" Shorten the largest part, or {prepared.info.limits.larger}."
    )


def _kept_whole(error: PluginAborted) -> CompactError:
    """Say that a request can't be sent, because a plugin lets nothing be compacted."""
    return CompactError(f"The request is too long for the model's window. {error.message}")
