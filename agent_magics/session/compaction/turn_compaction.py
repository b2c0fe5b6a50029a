"""Compaction that a turn brings about: by a summary where it can, without one where it must."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from agent_magics.context.budget import ContextInfo
from agent_magics.core.chat import ModelInfo
from agent_magics.core.errors import CompactError, CompactionError, PluginAborted, ProviderError
from agent_magics.core.events import Metadata
from agent_magics.core.ports import Provider
from agent_magics.core.slots import Slot
from agent_magics.core.turns import ContextCompacted, TurnPayload
from agent_magics.session.compaction.compactor import Compactor
from agent_magics.session.compaction.shortening import Shortener
from agent_magics.session.compaction.trigger import Trigger
from agent_magics.session.request.request_builder import PreparedRequest


@dataclass(kw_only=True)
class TurnCompaction:
    """Compacts the slot of one turn, and shows it. `find_slot` returns the slot as it is now.

    `has_summarised`: a summary was tried in this turn, whatever came of it.
    """

    compactor: Compactor
    shortener: Shortener
    trigger: Trigger
    find_slot: Callable[[], Slot]
    find_summariser: Callable[[], Awaitable[tuple[Provider, ModelInfo]]]
    emit: Callable[[TurnPayload], None]
    warn: Callable[[str], None]
    has_summarised: bool = False

    def is_due(self, info: ContextInfo) -> bool:
        """Return whether the trigger asks for a summary, and nobody has turned it off."""
        slot = self.find_slot()
        is_held = slot.uid in self.compactor.recorder.loaded.held
        is_on = self.compactor.config.compaction.enabled and slot.config.compact and not is_held
        return is_on and self.trigger.wants(slot, info)

    async def end_hold(self, because: Literal["fits", "overflow"]) -> None:
        """Let the trigger act again on a slot whose compaction was undone."""
        slot = self.find_slot()
        recorder = self.compactor.recorder
        if slot.uid in recorder.loaded.held:
            released = Metadata(key="context_compaction", value={"released": because})
            await recorder.append(
                [released],
                slot_uid=slot.uid,
                turn_id=self.compactor.next_request.running_turn,
            )

    async def summarise(
        self, reason: Literal["auto", "overflow"], prepared: PreparedRequest
    ) -> None:
        """Compact the slot; a failure is told, and the turn goes on.

        Raises `CompactError` where a plugin forbids what a request needs to fit at all.
        """
        self.has_summarised = True
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
            return
        self.trigger.wake(slot)
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

    async def leave_out_turns(
        self,
        prepared: PreparedRequest,
        limit_tokens: int,
        admit: Callable[[PreparedRequest], None],
    ) -> PreparedRequest:
        """Compact the slot without a summary, and return its request after that.

        It is `prepared` where nothing can be left out. Raises as `admit`, and `CompactError` where
        a plugin forbids it.
        """
        try:
            made = await self.shortener.degrade(self.find_slot(), limit_tokens, admit)
        except PluginAborted as error:
            raise _kept_whole(error) from error
        if made is None:
            return prepared
        shorter = self.compactor.next_request.build(self.find_slot())
        is_turn_cut = shorter.info.is_turn_cut
        self.emit(
            ContextCompacted(
                reason="overflow",
                tokens_before=made.tokens_before,
                tokens_after=made.tokens_after,
                degraded=True,
                is_turn_cut=is_turn_cut,
            )
        )
        what = "Older turns"
        if is_turn_cut:
            what += ", and the beginning of a long one,"
        self.warn(
            f"{what} were left out without a summary, because the request was over the"
            f" model's window: {made.tokens_before:,} → {made.tokens_after:,} tokens;"
            " the log keeps them all"
        )
        return shorter


def _kept_whole(error: PluginAborted) -> CompactError:
    """Say that a request can't be sent, because a plugin lets nothing be compacted."""
    return CompactError(f"The request is too long for the model's window. {error.message}")
