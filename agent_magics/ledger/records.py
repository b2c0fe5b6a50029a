"""The form in which every store keeps times and events, and the sentence on who holds a session."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import (
    AssistantMessage,
    LedgerEvent,
    NewEvent,
    Payload,
    UserMessage,
    decode_payload,
    encode_payload,
    kind_of,
)
from agent_magics.core.ports import Owner
from agent_magics.core.text import clean_value

log = logging.getLogger("agent_magics.ledger")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_plain_encoder = msgspec.msgpack.Encoder()


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970; it must know its zone."""
    return (moment - EPOCH) // _MICROSECOND


def moment_of(count: int) -> datetime:
    """Return the time of such a count, in UTC."""
    return EPOCH + timedelta(microseconds=count)


def storable(payload: Payload) -> tuple[Payload, bytes]:
    """Encode a payload; return it as it will be read again, and its bytes.

    Raises `InputValidation` on values nested deeper than any reader could follow, and on those
    that a reader would refuse: an event that can't be read again must not be written.
    """
    # What is live and what is reloaded are the same value only if both went through the encoding.
    try:
        try:
            data = encode_payload(payload)
        except (UnicodeEncodeError, OverflowError):
            plain = _without_huge_numbers(clean_value(msgspec.to_builtins(payload)))
            data = _plain_encoder.encode(plain)
        return decode_payload(data), data
    except RecursionError as error:
        raise InputValidation(
            f"A {kind_of(payload)} is nested too deeply to be recorded; make it flatter."
        ) from error
    except (msgspec.MsgspecError, TypeError) as error:
        raise InputValidation(f"A {kind_of(payload)} can't be recorded: {error}.") from error


def numbered(event: NewEvent, payload: Payload, seq: int) -> LedgerEvent:
    """Return the event that the store holds of a new one."""
    return LedgerEvent(
        seq=seq,
        payload=payload,
        created_at=event.created_at,
        slot_uid=event.slot_uid,
        turn_id=event.turn_id,
        tokens=event.tokens,
    )


def messages_in(events: Iterable[NewEvent | LedgerEvent]) -> int:
    """Count user and assistant messages."""
    return sum(isinstance(event.payload, UserMessage | AssistantMessage) for event in events)


def holder_of(owner: Owner | None, asking: Owner | None) -> str:
    """Return who holds a session, in the words for the one who asks for it."""
    if owner is None:
        return "another program"
    here = asking is None or owner.host == asking.host
    since = owner.since.astimezone()
    is_today = asking is None or asking.since.astimezone().date() == since.date()
    when = f"{since:%H:%M}" if is_today else f"{since:%Y-%m-%d %H:%M}"
    return f"pid {owner.pid} on {'this machine' if here else owner.host}, since {when}"


def is_this_process(pid: int | None, host: str | None) -> bool:
    """Return whether an owner is the process that asks; nobody has to take their own session."""
    return (pid, host) == (os.getpid(), platform.node())


def _without_huge_numbers(value: Any) -> Any:
    """Replace whole numbers that msgpack has no room for by their text."""
    if isinstance(value, dict):
        return {key: _without_huge_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_huge_numbers(item) for item in value]
    is_huge = isinstance(value, int) and not -(2**63) <= value < 2**64
    return str(value) if is_huge else value
