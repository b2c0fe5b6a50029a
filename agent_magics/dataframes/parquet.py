"""The same bundle as one Parquet file: its rows are the events, so that any tool can read them.

Header, slots, checkpoints and drafts stand in the file's metadata. Needs pyarrow (the extra
`parquet`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

import msgspec

from agent_magics.core.errors import AgentError
from agent_magics.core.events import Draft, LedgerEvent, Payload, kind_of
from agent_magics.core.ports import SessionState
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.values import Value
from agent_magics.dataframes.bundle_checks import check_state
from agent_magics.dataframes.bundles import (
    CHANGED,
    MAX_BYTES,
    MAX_LINE_BYTES,
    Head,
    check_version,
    packed_of,
    refused,
    unpacked,
)
from agent_magics.dataframes.events import text_of_payload

NEEDS_PYARROW = (
    'Parquet needs pyarrow: pip install "agent-magics[parquet]"; or give the file a name that ends'
    " in .jsonl."
)
HEAD_KEY = b"agent_magics"
REST_KEY = b"agent_magics.state"
ROWS_A_GROUP = 10_000
ROWS_AT_ONCE = 64


class Rest(Value):
    """What of a session is no event; `sha256` digests all of it."""

    slots: tuple[Slot, ...]
    checkpoints: tuple[Checkpoint, ...]
    drafts: tuple[Draft, ...]
    sha256: str


def write_parquet(state: SessionState, file: BinaryIO) -> None:
    """Write a session as Parquet. Raises `AgentError` where pyarrow isn't installed."""
    pa, pq = _pyarrow()
    head = Head(row=msgspec.structs.replace(state.row, epoch=0))
    rest = Rest(
        slots=state.slots,
        checkpoints=state.checkpoints,
        drafts=state.drafts,
        sha256=_digest(state),
    )
    # In the metadata, not in rows: programs that read the table see events only.
    schema = _schema(pa).with_metadata(
        {HEAD_KEY: msgspec.json.encode(head), REST_KEY: msgspec.json.encode(rest)}
    )
    names = {slot.uid: slot.slot_id for slot in state.slots}
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(state.events), ROWS_A_GROUP):
            rows = [_row(event, names) for event in state.events[start : start + ROWS_A_GROUP]]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def read_parquet(file: BinaryIO, name: str) -> SessionState:
    """Read such a file back; raises `InputValidation` with `name` and what is wrong with it."""
    pa, pq = _pyarrow()
    try:
        opened = pq.ParquetFile(file)
        head, rest = _about(opened.schema_arrow.metadata or {}, name)
        events = tuple(_events(opened, name))
    except (pa.ArrowException, OSError, EOFError, ArithmeticError, LookupError, TypeError,
            ValueError) as error:  # pyarrow raises what it meets  # fmt: skip
        raise refused(name, f"it is no Parquet file that can be read ({error})") from error
    state = SessionState(
        row=head.row,
        slots=rest.slots,
        checkpoints=rest.checkpoints,
        drafts=rest.drafts,
        events=events,
    )
    # Of the values, not of the bytes: another program may have written the file anew, in another
    # order of columns.
    if _digest(state) != rest.sha256:
        raise refused(name, CHANGED)
    return check_state(state, name)


def _digest(state: SessionState) -> str:
    """Digest a session, whatever its epoch here and however the file was written."""
    digest = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(state.row, epoch=0)))
    for part in (state.slots, state.checkpoints, state.drafts):
        digest.update(msgspec.msgpack.encode(part))
    for event in state.events:
        digest.update(msgspec.msgpack.encode(event))
    return digest.hexdigest()


def _pyarrow() -> tuple[Any, Any]:
    try:
        # It is optional, and slow to import.
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise AgentError(NEEDS_PYARROW) from error
    return pa, pq


def _schema(pa: Any) -> Any:
    return pa.schema(
        [
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("slot", pa.string()),
            pa.field("slot_uid", pa.string()),
            pa.field("turn_id", pa.string()),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("tokens", pa.int64(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("tool", pa.string()),
            pa.field("payload", pa.string(), nullable=False),
            pa.field("packed", pa.binary()),
        ]
    )


def _row(event: LedgerEvent, names: dict[str, str]) -> dict[str, Any]:
    packed = packed_of(event.payload)
    return {
        "seq": event.seq,
        "slot": names.get(event.slot_uid or ""),
        "slot_uid": event.slot_uid,
        "turn_id": event.turn_id,
        "kind": kind_of(event.payload),
        "created_at": event.created_at,
        "tokens": event.tokens,
        "text": text_of_payload(event.payload),
        "tool": getattr(event.payload, "tool_name", None),
        "payload": msgspec.json.encode(event.payload).decode(),
        "packed": None if packed is None else base64.b64decode(packed),
    }


def _about(metadata: dict[bytes, bytes], name: str) -> tuple[Head, Rest]:
    check_version(metadata.get(HEAD_KEY, b""), name)
    try:
        head = msgspec.json.decode(metadata[HEAD_KEY], type=Head)
        return head, msgspec.json.decode(metadata.get(REST_KEY, b""), type=Rest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refused(name, f"its header can't be read ({error})") from error


def _events(opened: Any, name: str) -> Iterator[LedgerEvent]:
    """Read the rows a few at a time: a small file may hold a great deal."""
    wanted = ["seq", "slot_uid", "turn_id", "created_at", "tokens", "payload", "packed"]
    missing = [column for column in wanted if column not in opened.schema_arrow.names]
    if missing:
        raise refused(name, f"it has no column {missing[0]}")
    read_bytes = 0
    # Compressed data of a few MB may hold terabytes of zeros.
    for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE, columns=wanted):
        read_bytes += batch.nbytes
        if read_bytes > MAX_BYTES:
            raise refused(name, f"it holds over {MAX_BYTES // 10**9} GB")
        for row in batch.to_pylist():
            yield _event(row, name)


def _event(row: dict[str, Any], name: str) -> LedgerEvent:
    seq, packed, payload = row["seq"], row["packed"], row["payload"]
    if not isinstance(payload, str) or len(payload) > MAX_LINE_BYTES:
        raise refused(name, f"the event with seq {seq} can't be read")
    if not isinstance(row["created_at"], datetime):
        raise refused(name, f"the event with seq {seq} has no time")
    try:
        made: Payload = (
            msgspec.json.decode(payload, type=Payload)
            if packed is None
            else unpacked(base64.b64encode(packed).decode())
        )
        return LedgerEvent(
            seq=msgspec.convert(seq, int),
            payload=made,
            created_at=row["created_at"],
            slot_uid=msgspec.convert(row["slot_uid"], str | None),
            turn_id=msgspec.convert(row["turn_id"], str | None),
            tokens=msgspec.convert(row["tokens"], int),
        )
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, binascii.Error) as error:
        raise refused(name, f"the event with seq {seq} can't be read ({error})") from error
