"""Make every request of a turn fit its model's window, and get over an overflow.

Before a turn's first request the slot may be compacted: by a summary where the trigger asks for
it, without one where the request would be over the hard window. Later requests of the turn are
trimmed in their copy only (docs/decisions.md#10): old turns over the threshold, the running turn's
own oldest iterations only over the window itself. A server that refuses a request as too long
teaches us its window, and is asked once more. A request that nothing makes fit is never sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import (
    ContextOverflow,
    FixedContextExceedsBudget,
    NothingHelped,
    ProviderError,
)
from agent_magics.core.ports import Provider
from agent_magics.core.slots import ModelParams, Slot
from agent_magics.core.turns import TurnPayload
from agent_magics.session.compaction.compactor import Compactor
from agent_magics.session.compaction.planner import FIXED_PARTS
from agent_magics.session.compaction.shortening import Shortener
from agent_magics.session.compaction.trigger import Trigger
from agent_magics.session.compaction.trimming import RequestTrimmer
from agent_magics.session.compaction.turn_compaction import TurnCompaction
from agent_magics.session.request.request_builder import PreparedRequest

SHRINK = 0.7
LEAST_OUTPUT_TOKENS = 16
SENT_WITH_EVERY_TURN = (*FIXED_PARTS, "user_input", "media")

Admit = Callable[[PreparedRequest], None]
"""Raises where a request may not be sent anyway: asked before turns are given up for it."""


class RequestFitter:
    """Fits the requests of one turn. `find_slot` returns the slot as it is now."""

    def __init__(
        self,
        *,
        compactor: Compactor,
        trigger: Trigger,
        find_slot: Callable[[], Slot],
        find_summariser: Callable[[], Awaitable[tuple[Provider, ModelInfo]]],
        emit: Callable[[TurnPayload], None],
        warn: Callable[[str], None],
    ) -> None:
        shortener = Shortener(
            compactor=compactor,
            loaded=compactor.recorder.loaded,
            next_request=compactor.next_request,
            checkpoints=compactor.checkpoints,
        )
        self._compactor = compactor
        self._next_request = compactor.next_request
        self._trigger = trigger
        self._find_slot = find_slot
        self._compaction = TurnCompaction(
            compactor=compactor,
            shortener=shortener,
            trigger=trigger,
            find_slot=find_slot,
            find_summariser=find_summariser,
            emit=emit,
            warn=warn,
        )
        self._trimmer = RequestTrimmer(
            next_request=compactor.next_request, shortener=shortener, warn=warn
        )
        self._is_first = True

    async def fit_next(self, admit: Admit) -> PreparedRequest:
        """Build the next request so that it fits.

        Raises as `admit`, and `FixedContextExceedsBudget` or `NothingHelped`, naming the tokens of
        each part, where nothing makes it fit the window.
        """
        self._compactor.has_leave = False
        prepared = self._build()
        if self._is_first:
            self._is_first = False
            _check_floor(prepared)
            return _checked(await self._fit_first(prepared, admit))
        limits = prepared.info.limits
        slot = self._find_slot()
        return _checked(self._trimmer.trim(slot, prepared, limits.threshold, limits.window))

    async def _fit_first(self, prepared: PreparedRequest, admit: Admit) -> PreparedRequest:
        """Compact the slot before the turn's first request, where that is due or has to be."""
        # Over the threshold is a wish, over the window is a must: only the latter may leave turns
        # out.
        limits = prepared.info.limits
        is_over = prepared.info.used > limits.window
        if is_over or not self._trigger.is_over(prepared.info):
            await self._compaction.end_hold("overflow" if is_over else "fits")
        if self._compaction.is_due(prepared.info):
            await self._compaction.summarise("overflow" if is_over else "auto", prepared)
            prepared = self._build()
        if prepared.info.used > limits.window:
            return await self._compaction.leave_out_turns(prepared, limits.threshold, admit)
        return prepared

    async def fit_after_overflow(
        self, refused: PreparedRequest, error: ContextOverflow, admit: Admit, *, tools_ran: bool
    ) -> PreparedRequest:
        """Build the request that is sent once more after a server refused the last as too long.

        Raises as `fit_next` does, and where the request can't be made any shorter.
        """
        self._compactor.has_leave = False
        self._learn(refused, error)
        await self._compaction.end_hold("overflow")
        goal = self._goal(refused)
        if tools_ran:
            # The tools of this turn must not run again, so it goes on with what it has, and
            # shorter. A later request that grew back over what was refused would be refused again.
            self._trimmer.ceiling = goal
            prepared = self._trimmer.trim(self._find_slot(), self._build(), goal, goal)
        else:
            prepared = await self._recompacted(goal, admit)
        # The same request would get the same refusal.
        if prepared.request.messages == refused.request.messages:
            raise self.diagnosis(prepared, error)
        return _checked(prepared)

    async def _recompacted(self, goal: int, admit: Admit) -> PreparedRequest:
        """Compact the slot once more for a turn that has done nothing yet."""
        # One summary a turn: a second one would be as long as the first, and be paid for again.
        # What is still too long goes without.
        if not self._compaction.has_summarised:
            await self._compaction.summarise("overflow", self._build())
        prepared = self._build()
        if prepared.info.used > goal:
            return await self._compaction.leave_out_turns(prepared, goal, admit)
        return prepared

    def with_less_output(self, refused: PreparedRequest, error: ProviderError) -> PreparedRequest:
        """Reserve less output, where that is all a server asks for."""
        params = refused.request.params
        window = error.window or refused.info.limits.window
        room = window - (error.used or refused.info.used)
        if params.max_tokens is not None:
            # Half each time: servers count their own way, and the room that we work out may still
            # be too much.
            room = min(room, params.max_tokens // 2)
        limited = ModelParams(
            temperature=params.temperature,
            max_tokens=max(LEAST_OUTPUT_TOKENS, room),
            reasoning_effort=params.reasoning_effort,
        )
        request = msgspec.structs.replace(refused.request, params=limited)
        return msgspec.structs.replace(refused, request=request)

    def diagnosis(self, prepared: PreparedRequest, error: ContextOverflow) -> NothingHelped:
        """Say what fills the window, for a request that even recovery couldn't make fit."""
        return _overflow(prepared, error.message)

    def _build(self) -> PreparedRequest:
        return self._next_request.build(self._find_slot())

    def _learn(self, refused: PreparedRequest, error: ContextOverflow) -> None:
        spec = self._next_request.model.spec
        learnt = self._next_request.builder.learnt_windows
        if error.window:
            # Servers behind one name may differ; what the smallest took, all take.
            learnt[spec] = min(error.window, learnt.get(spec, error.window))
        if error.used:
            calibration = self._compactor.recorder.loaded.calibration_of(self._find_slot())
            calibration.learn_overflow(spec, used=error.used, estimated=refused.info.estimate)

    def _goal(self, refused: PreparedRequest) -> int:
        """Aim under the threshold; where that had been met, well under what was refused."""
        now = self._build().info
        # Where the estimate was already under the threshold, it was wrong by an unknown part; only
        # a clear step down is sure to help.
        return min(now.limits.threshold, round(refused.info.used * SHRINK))


def _checked(prepared: PreparedRequest) -> PreparedRequest:
    """Return a request that fits the window; one that doesn't is not sent."""
    _check_floor(prepared)
    info = prepared.info
    if info.used > info.limits.window:
        fault = f"The request has {info.used:,} tokens; the window has {info.limits.window:,}."
        raise _overflow(prepared, fault)
    return prepared


def _check_floor(prepared: PreparedRequest) -> None:
    """Check what is sent with every request of the turn before anything is given up."""
    info = prepared.info
    floor = {name: info.parts[name] for name in SENT_WITH_EVERY_TURN}
    if sum(floor.values()) > info.limits.window:
        raise FixedContextExceedsBudget(floor, info.limits.window, info.limits.larger)


def _overflow(prepared: PreparedRequest, fault: str) -> NothingHelped:
    parts = sorted(prepared.info.parts.items(), key=lambda part: -part[1])
    shown = ", ".join(f"{name} {tokens:,}" for name, tokens in parts if tokens)
    return NothingHelped(
        f"{fault} Even shortened, the request doesn't fit: {shown} tokens."
        f" Shorten the largest part, or {prepared.info.limits.larger}."
    )
