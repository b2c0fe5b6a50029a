"""Values to rows of an SQL database and back.

What can't be read is skipped and named in the log, never fatal: one broken row must not cost a
person the rest of their session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from agent_magics.core.events import LedgerEvent, decode_payload
from agent_magics.core.slots import Checkpoint, Slot, SlotConfig
from agent_magics.core.text import clean_value
from agent_magics.ledger.records import EPOCH, log, micros, moment_of

_MOST_NAMED = 20

_config_encoder = msgspec.msgpack.Encoder()
_config_decoder = msgspec.msgpack.Decoder(SlotConfig)


def read_events(
    session_id: str, rows: Iterable[Sequence[Any]]
) -> tuple[list[LedgerEvent], list[int]]:
    """Decode rows of (seq, slot_uid, turn_id, payload, tokens, created_at).

    Return the events, and the seqs of those that can't be read.
    """
    events: list[LedgerEvent] = []
    broken: list[int] = []
    for seq, slot_uid, turn_id, payload, tokens, created_at in rows:
        try:
            event = LedgerEvent(
                seq=seq,
                payload=decode_payload(payload),
                # `moment_of` without the call: this loop runs for every event of a session
                created_at=EPOCH + timedelta(microseconds=created_at),
                slot_uid=slot_uid,
                turn_id=turn_id,
                tokens=tokens,
            )
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, OverflowError):
            broken.append(seq)
        else:
            events.append(event)
    if broken:  # logged by number only: a log is shown to others
        named = ", ".join(map(str, broken[:_MOST_NAMED]))
        more = ", …" if len(broken) > _MOST_NAMED else ""
        log.warning(
            "session %s: %d events can't be read and are left out (seq %s%s)",
            session_id, len(broken), named, more,
        )  # fmt: skip
    return events, broken


def slot_row(session_id: str, slot: Slot) -> dict[str, Any]:
    """Return a slot's row."""
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
    """Return a checkpoint's row."""
    row = msgspec.structs.asdict(checkpoint)
    row.update(
        session_id=session_id,
        created_at=micros(checkpoint.created_at),
        summary=clean_value(checkpoint.summary),
        rendered=clean_value(checkpoint.rendered),
    )
    return row


def read_checkpoint(row: Mapping[str, Any]) -> Checkpoint | None:
    """Read a checkpoint's row; None, with a diagnosis, where it can't be."""
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


def _encoded_config(config: SlotConfig) -> bytes:
    try:
        return _config_encoder.encode(config)
    except UnicodeEncodeError:
        cleaned = msgspec.convert(clean_value(msgspec.to_builtins(config)), SlotConfig)
        return _config_encoder.encode(cleaned)
