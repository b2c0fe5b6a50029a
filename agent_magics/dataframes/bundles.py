"""A session as a file that another store can take in whole: JSON Lines, read with suspicion.

A bundle is a header, then a line for each slot, checkpoint, draft and event, then an end that
counts and digests what stands before it. Facts of the session's memory are among the events. What
JSON can't say of an event stands beside it as base64 of its msgpack, so that every byte comes back.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Literal

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import (
    Draft,
    LedgerEvent,
    Payload,
    decode_payload,
    encode_payload,
)
from agent_magics.core.ports import SessionRow, SessionState
from agent_magics.core.slots import Checkpoint, Slot
from agent_magics.core.values import Value
from agent_magics.dataframes.bundle_checks import check_state

VERSION = 1
MAX_LINE_BYTES = 80_000_000
MAX_BYTES = 4_000_000_000
CHANGED = "it was changed after it was exported, or damaged"


class Head(Value, tag_field="line", tag="session"):
    """What a bundle is of. `version` rises when a reader of before could go wrong."""

    row: SessionRow
    format: Literal["agent-magics session"] = "agent-magics session"
    version: int = VERSION


class _Version(Value):
    """As much of a header as every version has."""

    format: Literal["agent-magics session"]
    version: int


class SlotLine(Value, tag_field="line", tag="slot"):
    slot: Slot


class CheckpointLine(Value, tag_field="line", tag="checkpoint"):
    checkpoint: Checkpoint


class DraftLine(Value, tag_field="line", tag="draft"):
    draft: Draft


class EventLine(Value, tag_field="line", tag="event"):
    """`packed` holds the payload where JSON says it only for readers."""

    event: LedgerEvent
    packed: str | None = None


class End(Value, tag_field="line", tag="end"):
    """`sha256` digests every byte before this line."""

    lines: int
    sha256: str


BundleLine = Head | SlotLine | CheckpointLine | DraftLine | EventLine | End


def write_lines(state: SessionState, file: BinaryIO) -> None:
    """Write a session as JSON Lines; raises `InputValidation` where an event is too large."""
    digest = hashlib.sha256()
    count = 0
    for line in _lines(state):
        data = msgspec.json.encode(line) + b"\n"
        if len(data) > MAX_LINE_BYTES:
            raise InputValidation(
                f"A {line.__struct_config__.tag} of this session has {len(data) / 1e6:,.0f} MB;"
                f" a bundle holds {MAX_LINE_BYTES // 10**6} MB in a line. Nothing was written."
            )
        file.write(data)
        digest.update(data)
        count += 1
    file.write(msgspec.json.encode(End(lines=count, sha256=digest.hexdigest())) + b"\n")


def read_lines(file: BinaryIO, name: str) -> SessionState:
    """Read such a file back; raises `InputValidation` with `name` and what is wrong with it."""
    return check_state(_collected(_checked_lines(file, name), name), name)


def packed_of(payload: Payload) -> str | None:
    """Return a payload in base64, where its JSON would not come back as the same bytes."""
    # JSON is for people and other programs; infinities and large integers of a tool's metadata
    # don't come back from it as they were.
    exact = encode_payload(payload)
    try:
        told = encode_payload(msgspec.json.decode(msgspec.json.encode(payload), type=Payload))
    except (msgspec.MsgspecError, TypeError, ValueError):
        told = b""
    return None if told == exact else base64.b64encode(exact).decode()


def unpacked(packed: str) -> Payload:
    """Read such a payload; raises `ValueError` or `msgspec.MsgspecError`."""
    return decode_payload(base64.b64decode(packed, validate=True))


def refused(name: str, reason: str) -> InputValidation:
    """Say why a file isn't imported."""
    return InputValidation(f"{name} can't be imported: {reason}. Nothing was imported.")


def check_version(head: bytes, name: str) -> None:
    """Raise `InputValidation` where a header isn't ours, or of a version that isn't known here."""
    try:
        version = msgspec.json.decode(head, type=_Version).version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refused(name, "it is no bundle of a session (%sessions export makes one)") from error
    if version != VERSION:
        raise refused(
            name, f"its version is {version}, this agent-magics reads {VERSION}; upgrade it"
        )


def _lines(state: SessionState) -> Iterator[BundleLine]:
    # The epoch belongs to the store that gave it.
    yield Head(row=msgspec.structs.replace(state.row, epoch=0))
    yield from (SlotLine(slot=slot) for slot in state.slots)
    yield from (CheckpointLine(checkpoint=checkpoint) for checkpoint in state.checkpoints)
    yield from (DraftLine(draft=draft) for draft in state.drafts)
    for event in state.events:
        yield EventLine(event=event, packed=packed_of(event.payload))


def _checked_lines(file: BinaryIO, name: str) -> Iterator[BundleLine]:
    """Yield the lines; the end must be there, count them, and know their digest."""
    decoder = msgspec.json.Decoder(BundleLine)
    digest = hashlib.sha256()
    number = 0
    for number, data in enumerate(_raw_lines(file, name), start=1):
        if number == 1:
            check_version(data, name)
        try:
            line = decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise refused(name, f"line {number:,} can't be read ({error})") from error
        if isinstance(line, End):
            # A file that was cut or edited is refused as a whole: half a session would look like
            # all of it.
            if (line.lines, line.sha256) != (number - 1, digest.hexdigest()):
                raise refused(name, CHANGED)
            if file.read(1):
                raise refused(name, "something stands behind its end")
            return
        digest.update(data)
        yield line
    what = f"it ends after line {number:,}" if number else "it is empty"
    raise refused(name, f"{what}, before its own end; it was cut")


def _raw_lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    # A file without line ends would be read into memory whole before anything could be said of it.
    while data := file.readline(MAX_LINE_BYTES + 1):
        if len(data) > MAX_LINE_BYTES:
            raise refused(name, f"a line of it has over {MAX_LINE_BYTES // 10**6} MB")
        yield data


def _collected(lines: Iterable[BundleLine], name: str) -> SessionState:
    row: SessionRow | None = None
    slots: list[Slot] = []
    checkpoints: list[Checkpoint] = []
    drafts: list[Draft] = []
    events: list[LedgerEvent] = []
    for line in lines:
        match line:
            case Head():
                if row is not None:
                    raise refused(name, "it has two headers")
                row = line.row
            case SlotLine(slot=slot):
                slots.append(slot)
            case CheckpointLine(checkpoint=checkpoint):
                checkpoints.append(checkpoint)
            case DraftLine(draft=draft):
                drafts.append(draft)
            case EventLine():
                events.append(_event(line, name))
            case End():  # not given
                pass
    assert row is not None  # the first line is a header
    return SessionState(
        row=row,
        slots=tuple(slots),
        checkpoints=tuple(checkpoints),
        drafts=tuple(drafts),
        events=tuple(events),
    )


def _event(line: EventLine, name: str) -> LedgerEvent:
    if line.packed is None:
        return line.event
    try:
        return msgspec.structs.replace(line.event, payload=unpacked(line.packed))
    except (msgspec.MsgspecError, ValueError, binascii.Error) as error:
        raise refused(name, f"the event with seq {line.event.seq} can't be unpacked") from error
