"""What opening a session finds and sets right: drafts and calls left open (docs/decisions.md#43).

No model is called and no message, summary or checkpoint is written.
"""

from __future__ import annotations

import logging
from bisect import bisect_left

from agent_magics.core.approval import REFUSED
from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    Draft,
    LedgerEvent,
    ToolAnswered,
    ToolCalled,
)
from agent_magics.core.messages import Text, ToolOutput
from agent_magics.core.ports import Change
from agent_magics.core.slots import Slot
from agent_magics.session.state.loaded import LoadedSession
from agent_magics.session.state.recorder import Recorder

LEFT_OPEN = "[Tool result unknown: the process ended before the tool did. It may have run.]"

_log = logging.getLogger("agent_magics.session")


def log_broken_checkpoints(loaded: LoadedSession) -> None:
    """Log which slots show their whole history because their checkpoint can't be used."""
    for slot in loaded.living.values():
        if slot.checkpoint_id is not None and not _is_whole(loaded, slot):
            _log.warning(
                "session %s: checkpoint %s of slot %s is missing or broken;"
                " the whole history is shown",
                loaded.row.session_id,
                slot.checkpoint_id,
                slot.slot_id,
            )


async def close_left_open(recorder: Recorder) -> int:
    """Close what a process that ended left open; return how many turns that were."""
    drafts = recorder.loaded.drafts
    for draft in drafts:
        await _close_draft(recorder, draft)
    # Drafts first: the answer that was streaming stands before the results of its calls.
    turns: set[str | None] = {draft.turn_id for draft in drafts}
    for event in _open_calls(recorder):
        turns.add(event.turn_id)
        call = event.payload
        assert isinstance(call, ToolCalled)
        # A refusal is recorded before its result; what a person refused surely didn't run, and the
        # model should know.
        content = REFUSED if _was_refused(recorder, event) else LEFT_OPEN
        answered = ToolAnswered(
            call_id=call.call_id,
            tool_name=call.tool_name,
            output=ToolOutput(
                content=content,
                is_error=True,
                metadata={"outcome": "unknown"} if content == LEFT_OPEN else {},
            ),
        )
        await recorder.append([answered], slot_uid=event.slot_uid, turn_id=event.turn_id)
    return len(turns)


def _is_whole(loaded: LoadedSession, slot: Slot) -> bool:
    """Return whether a slot's checkpoint is there, with a text and a boundary that is an event."""
    checkpoint = loaded.checkpoint_of(slot)
    if checkpoint is None or not checkpoint.rendered.strip():
        return False
    first = checkpoint.first_retained_seq
    at = bisect_left(loaded.events, first, key=lambda event: event.seq)
    return at < len(loaded.events) and loaded.events[at].seq == first


async def _close_draft(recorder: Recorder, draft: Draft) -> None:
    message = AssistantMessage(
        content=(Text(text=draft.text),) if draft.text else (),
        status="incomplete",
        cause="process ended",
    )
    await recorder.commit(
        Change(
            events=(recorder.event(message, slot_uid=draft.slot_uid, turn_id=draft.turn_id),),
            ends_draft=(draft.slot_uid, draft.turn_id),
        )
    )


def _was_refused(recorder: Recorder, called: LedgerEvent) -> bool:
    """Return whether a person had said no: then it did not run."""
    assert isinstance(called.payload, ToolCalled)
    return any(
        isinstance(event.payload, Approval)
        and event.payload.answer == "no"
        and event.payload.call_id == called.payload.call_id
        and (event.slot_uid, event.turn_id) == (called.slot_uid, called.turn_id)
        for event in recorder.loaded.events
    )


def _open_calls(recorder: Recorder) -> list[LedgerEvent]:
    waiting: dict[tuple[str | None, str | None, str], LedgerEvent] = {}
    for event in recorder.loaded.events:
        match event.payload:
            case ToolCalled(call_id=call_id):
                waiting[event.slot_uid, event.turn_id, call_id] = event
            case ToolAnswered(call_id=call_id):
                waiting.pop((event.slot_uid, event.turn_id, call_id), None)
            case _:
                pass
    return list(waiting.values())
