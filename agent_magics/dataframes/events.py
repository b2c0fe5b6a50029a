"""Events as rows: one an event, and one a request that was paid for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent_magics.core.events import (
    Approval,
    AssistantMessage,
    Imported,
    MemorySet,
    Payload,
    Retry,
    SlotChanged,
    SystemMessage,
    ToolAnswered,
    ToolCalled,
    Usage,
    UserMessage,
    kind_of,
)
from agent_magics.core.messages import Assistant, System, ToolResult, User, text_of
from agent_magics.core.ports import SessionState
from agent_magics.core.redact import redact
from agent_magics.dataframes.columns import Row
from agent_magics.dataframes.places import Places
from agent_magics.dataframes.shown import model_name, shown_payload


def event_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each event, in order."""
    names = {slot.uid: slot.slot_id for slot in state.slots}
    for event in state.events:
        payload = event.payload
        yield {
            "session_id": state.row.session_id,
            "session": state.row.title,
            "seq": event.seq,
            "slot": names.get(event.slot_uid or ""),
            "slot_uid": event.slot_uid,
            "turn_id": event.turn_id,
            "kind": kind_of(payload),
            "created_at": event.created_at,
            "tokens": event.tokens,
            "text": text_of_payload(payload),
            "tool": getattr(payload, "tool_name", None),
            "payload": msgspec.json.encode(shown_payload(payload)).decode(),
        }


def usage_rows(state: SessionState) -> Iterable[Row]:
    """Make a row of each request, in order (docs/decisions.md#42)."""
    places = Places(state)
    for event in state.events:
        spent = event.payload
        if not isinstance(spent, Usage):
            continue
        yield {
            **places.columns(event.slot_uid, event.turn_id),
            "seq": event.seq,
            "created_at": event.created_at,
            "purpose": spent.purpose,
            "model": model_name(spent.provider, spent.model),
            "attempt": spent.attempt,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            # Nothing is known of parts where the whole wasn't told.
            "cached_tokens": None if spent.input_tokens is None else spent.cached_tokens,
            "reasoning_tokens": None if spent.output_tokens is None else spent.reasoning_tokens,
            "estimated_input_tokens": spent.estimated_input_tokens,
            "estimated_output_tokens": spent.estimated_output_tokens,
            "cost_usd": spent.cost_usd,
            "is_replayed": spent.is_replayed,
            "duration_ms": spent.duration_ms,
            "first_token_ms": spent.first_token_ms,
        }


def text_of_payload(payload: Payload) -> str | None:  # noqa: C901, PLR0911, PLR0912  a line a kind
    """Return what a person reads of an event; None where it says nothing in words."""
    match payload:
        case UserMessage(content=content) | AssistantMessage(content=content):
            return text_of(content)
        case ToolCalled(arguments=None, raw=raw):
            return raw
        case ToolCalled(arguments=arguments):
            return msgspec.json.encode(arguments).decode()
        case ToolAnswered(output=output):
            return output.content
        case SystemMessage(text=text):
            return text
        case Imported(message=System(text=text)):
            return text
        case Imported(message=User(content=content) | Assistant(content=content)):
            return text_of(content)
        case Imported(message=ToolResult(content=text)):
            return text
        case MemorySet(key=key, value=value):
            return f"{key}: {value}" if value is not None else f"{key} deleted"
        case SlotChanged(action=action, slot_id=slot_id):
            return f"{action} {slot_id}"
        case Retry(reason=reason):
            return redact(reason)
        case Approval(answer=answer):
            return answer
        case _:
            return None
