"""Values to rows and back; what can't be read is skipped and named, never fatal (C17)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
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
from agent_magics.core.ports import Owner, SessionRow
from agent_magics.core.slots import Checkpoint, Slot, SlotConfig
from agent_magics.core.text import clean_value

log = logging.getLogger("agent_magics.ledger")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_NAMED = 20

_plain_encoder = msgspec.msgpack.Encoder()
_config_encoder = msgspec.msgpack.Encoder()
_config_decoder = msgspec.msgpack.Decoder(SlotConfig)


def micros(moment: datetime) -> int:
    """Count a time's microseconds since 1970; it must know its zone."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(count: int) -> datetime:
    """Read such a count back, in UTC."""
    return _EPOCH + timedelta(microseconds=count)


def storable(payload: Payload) -> tuple[Payload, bytes]:
    """Encode a payload; give it as it will be read again, so that live and reloaded are one.

    The record cleans everything before it comes here; this is the last door (invariant 13).
    Raises `InputValidation` on values nested deeper than any reader could follow, and on those
    that a reader would refuse: an event that can't be read again must not be written.
    """
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
    """Make the event that the store holds of a new one."""
    return LedgerEvent(
        seq=seq,
        payload=payload,
        created_at=event.created_at,
        slot_uid=event.slot_uid,
        turn_id=event.turn_id,
        tokens=event.tokens,
    )


def with_epoch(row: SessionRow, epoch: int) -> SessionRow:
    """Give a session's row a new epoch."""
    return msgspec.structs.replace(row, epoch=epoch)


def messages_in(events: Iterable[NewEvent | LedgerEvent]) -> int:
    """Count user and assistant messages."""
    return sum(isinstance(event.payload, UserMessage | AssistantMessage) for event in events)


def read_events(
    session_id: str, rows: Iterable[Sequence[Any]]
) -> tuple[list[LedgerEvent], list[int]]:
    """Decode rows of (seq, slot_uid, turn_id, payload, tokens, created_at).

    Gives the events, and the seqs of those that can't be read; these are logged by number only.
    """
    events: list[LedgerEvent] = []
    broken: list[int] = []
    for seq, slot_uid, turn_id, payload, tokens, created_at in rows:
        try:
            event = LedgerEvent(
                seq=seq,
                payload=decode_payload(payload),
                created_at=_EPOCH + timedelta(microseconds=created_at),
                slot_uid=slot_uid,
                turn_id=turn_id,
                tokens=tokens,
            )
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, OverflowError):
            broken.append(seq)
        else:
            events.append(event)
    if broken:
        named = ", ".join(map(str, broken[:_MOST_NAMED]))
        more = ", …" if len(broken) > _MOST_NAMED else ""
        log.warning(
            "session %s: %d events can't be read and are left out (seq %s%s)",
            session_id, len(broken), named, more,
        )  # fmt: skip
    return events, broken


def slot_row(session_id: str, slot: Slot) -> dict[str, Any]:
    """Make a slot's row."""
    return {
        "session_id": session_id,
        "uid": slot.uid,
        "slot_id": slot.slot_id,
        "config": _encoded_config(slot.config),
        "created_at": micros(slot.created_at),
        "parent_uid": slot.parent_uid,
        "fork_seq": slot.fork_seq,
        "focus_seq": slot.focus_seq,
        "generation": slot.generation,
        "checkpoint_id": slot.checkpoint_id,
        "deleted": slot.deleted,
    }


def read_slot(row: Mapping[str, Any]) -> Slot:
    """Read a slot's row; settings that can't be read become the defaults, with a diagnosis."""
    try:
        config = _config_decoder.decode(row["config"])
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        log.warning(
            "session %s: the settings of slot %s can't be read; defaults are used",
            row["session_id"], row["uid"],
        )  # fmt: skip
        config = SlotConfig()
    return Slot(
        uid=row["uid"],
        slot_id=row["slot_id"],
        config=config,
        created_at=moment_of(row["created_at"]),
        parent_uid=row["parent_uid"],
        fork_seq=row["fork_seq"],
        focus_seq=row["focus_seq"],
        generation=row["generation"],
        checkpoint_id=row["checkpoint_id"],
        deleted=bool(row["deleted"]),
    )


def checkpoint_row(session_id: str, checkpoint: Checkpoint) -> dict[str, Any]:
    """Make a checkpoint's row."""
    row = msgspec.structs.asdict(checkpoint)
    row.update(
        session_id=session_id,
        created_at=micros(checkpoint.created_at),
        summary=clean_value(checkpoint.summary),
        rendered=clean_value(checkpoint.rendered),
    )
    return row


def read_checkpoint(row: Mapping[str, Any]) -> Checkpoint | None:
    """Read a checkpoint's row; None, with a diagnosis, where it can't be (C17)."""
    try:
        fields = {name: row[name] for name in Checkpoint.__struct_fields__}
        fields.update(created_at=moment_of(row["created_at"]), degraded=bool(row["degraded"]))
        return msgspec.convert(fields, Checkpoint)
    except (msgspec.MsgspecError, TypeError, OverflowError):
        log.warning(
            "session %s: checkpoint %s can't be read; the whole history is shown",
            row["session_id"], row["checkpoint_id"],
        )  # fmt: skip
        return None


def holder_of(owner: Owner | None, asking: Owner | None) -> str:
    """Say who holds a session, as the one who asks for it reads it (experience.md § Trouble)."""
    if owner is None:
        return "another program"
    here = asking is None or owner.host == asking.host
    since = owner.since.astimezone()
    is_today = asking is None or asking.since.astimezone().date() == since.date()
    when = f"{since:%H:%M}" if is_today else f"{since:%Y-%m-%d %H:%M}"
    return f"pid {owner.pid} on {'this machine' if here else owner.host}, since {when}"


def _without_huge_numbers(value: Any) -> Any:
    """Write whole numbers that msgpack has no room for as text."""
    if isinstance(value, dict):
        return {key: _without_huge_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_huge_numbers(item) for item in value]
    is_huge = isinstance(value, int) and not -(2**63) <= value < 2**64
    return str(value) if is_huge else value


def _encoded_config(config: SlotConfig) -> bytes:
    try:
        return _config_encoder.encode(config)
    except UnicodeEncodeError:
        cleaned = msgspec.convert(clean_value(msgspec.to_builtins(config)), SlotConfig)
        return _config_encoder.encode(cleaned)
