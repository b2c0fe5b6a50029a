"""Bundles: what goes out comes back, and what others made of it is refused whole."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from agent_magics.context.projection import project
from agent_magics.context.view import view_of
from agent_magics.core.errors import AgentError, InputValidation
from agent_magics.core.events import ToolAnswered, encode_payload
from agent_magics.core.messages import Text, ToolOutput, User
from agent_magics.core.ports import SessionRow, SessionState
from agent_magics.core.slots import Focused, Slot, SlotConfig, Static
from agent_magics.dataframes import bundles
from agent_magics.dataframes.bundle_files import export_state, import_state
from agent_magics.dataframes.bundles import read_lines, write_lines
from agent_magics.dataframes.parquet import read_parquet, write_parquet
from agent_magics.testing import assistant, user
from tests.context.story import ROOT, WHEN, Story, checkpoint_at
from tests.context.telling import stories
from tests.dataframes.ledgers import NOW, said, state_of
from tests.dataframes.test_more_frames import checkpoint

FORMATS: dict[str, tuple[Any, Any]] = {
    "jsonl": (write_lines, read_lines),
    "parquet": (write_parquet, read_parquet),
}


def again(state: SessionState, name: str) -> SessionState:
    """Write a session and read it back."""
    write, read = FORMATS[name]
    file = io.BytesIO()
    write(state, file)
    made: SessionState = read(io.BytesIO(file.getvalue()), f"x.{name}")
    return made


def whole(story: Story) -> SessionState:
    """Make the session of a story: its first slot is `default`, with a checkpoint."""
    root = structs.replace(story.slots[ROOT], slot_id="default", fork_seq=0, checkpoint_id="cp")
    slots = {**story.slots, ROOT: root}
    events = sorted((e for own in story.events.values() for e in own), key=lambda each: each.seq)
    return SessionState(
        row=SessionRow(session_id="s", created_at=WHEN, updated_at=WHEN, current_slot_uid=ROOT),
        slots=tuple(slots.values()),
        checkpoints=(checkpoint_at(min(3, story.seq)),),
        events=tuple(events),
        drafts=(),
    )


def projections(state: SessionState) -> dict[str, bytes]:
    """What a model would see of each slot, in bytes."""
    slots = {slot.uid: slot for slot in state.slots}
    by_slot: dict[str, list[Any]] = {uid: [] for uid in slots}
    for event in state.events:
        by_slot[event.slot_uid or ""].append(event)
    found = {one.checkpoint_id: one for one in state.checkpoints}
    return {
        uid: msgspec.msgpack.encode(
            project(
                view_of(uid, slots, by_slot),
                mode=slot.config.mode,
                checkpoint=found.get(slot.checkpoint_id or ""),
                focus_seq=slot.focus_seq,
            )
        )
        for uid, slot in slots.items()
    }


@pytest.mark.req("D2", "C3")
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60)
@given(story=stories())
def test_a_session_comes_back_as_it_was(name: str, story: Story) -> None:
    """Every value of it, and with it every projection, byte for byte."""
    state = whole(story)
    made = again(state, name)
    assert made == state
    assert projections(made) == projections(state)


ODD: dict[str, dict[str, Any]] = {
    "bytes": {"raw": b"\x00\xff"},
    "a time": {"at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)},
    "no number": {"x": float("nan"), "y": float("inf"), "z": -0.0},
    "numbers as keys": {"sizes": {1: "a", 2: "b"}},
    "large numbers": {"n": 2**63 + 7, "m": -(2**63)},
    "order": {"b": 1, "a": {"d": 2.0, "c": 3}},
}


@pytest.mark.req("D2")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("odd", ODD)
def test_what_json_can_not_say_comes_back_as_well(name: str, odd: str) -> None:
    """A tool's metadata may hold anything that msgpack can."""
    output = ToolOutput(content="x", metadata=ODD[odd])
    answer = ToolAnswered(call_id="c", tool_name="f", output=output)
    state = state_of(said(1, "a", user("q")), said(2, "a", answer))
    made = again(state, name)
    assert encode_payload(made.events[1].payload) == encode_payload(answer)


@pytest.mark.req("D2")
def test_a_bundle_is_read_by_any_tool(tmp_path: Path) -> None:
    """Lines of JSON, each saying what it is; Parquet's rows are the events."""
    import pandas as pd

    state = state_of(said(1, "a", user("hello")), said(2, "a", assistant("there")))
    export_state(state, tmp_path / "s.jsonl", overwrites=False)
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [line["line"] for line in lines] == ["session", "slot", "event", "event", "end"]
    assert lines[2]["event"]["payload"]["content"][0]["text"] == "hello"
    export_state(state, tmp_path / "s.parquet", overwrites=False)
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert frame["text"].tolist() == ["hello", "there"]
    assert str(frame["created_at"].dtype).endswith("UTC]")


@pytest.mark.req("D2")
@pytest.mark.skipif(os.name == "nt", reason="file modes mean something else there")
def test_a_bundle_is_its_owners_alone(tmp_path: Path) -> None:
    """It holds everything that was said."""
    export_state(state_of(), tmp_path / "s.jsonl", overwrites=False)
    assert (tmp_path / "s.jsonl").stat().st_mode & 0o777 == 0o600


def told(state: SessionState) -> list[dict[str, Any]]:
    """The lines of a bundle, to be changed."""
    file = io.BytesIO()
    write_lines(state, file)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """Lines with an end that fits them, as whoever changed them would write it."""
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    end = {"line": "end", "lines": len(lines) - 1, "sha256": hashlib.sha256(data).hexdigest()}
    return data + json.dumps(end).encode() + b"\n"


TALK = state_of(
    said(1, "a", user("q")), said(2, "a", assistant("a")),
    slots=(Slot(uid="u2", slot_id="side", config=SlotConfig(), created_at=NOW, parent_uid="u1",
                fork_seq=2),),
)  # fmt: skip


def edited(*path: str | int, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set a value deep in the lines."""

    def edit(lines: list[dict[str, Any]]) -> None:
        at: Any = lines
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return edit


def twice(number: int) -> Callable[[list[dict[str, Any]]], None]:
    return lambda lines: lines.insert(number, lines[number])


STATIC = msgspec.to_builtins(Static(messages=(User(content=(Text(text="x"),)),)))
FAULTS: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], str]] = {
    "a newer version": (edited(0, "version", value=2), "its version is 2"),
    "another format": (edited(0, "format", value="x"), "it is no bundle of a session"),
    "a seq twice": (twice(3), "seq 1 comes after seq 1"),
    "seqs that fall": (edited(4, "event", "seq", value=1), "seq 1 comes after seq 1"),
    "a seq of nothing": (edited(3, "event", "seq", value=-4), "seq -4 comes after seq 0"),
    "a huge seq": (edited(4, "event", "seq", value=2**60), "a number that can't be"),
    "negative tokens": (edited(4, "event", "tokens", value=-1), "a number that can't be"),
    "an unknown kind": (edited(3, "event", "payload", "type", value="pwn"), "line 4 can't be read"),
    "a wrong type": (edited(3, "event", "payload", "content", value=4), "line 4 can't be read"),
    "a time without a zone": (
        edited(3, "event", "created_at", value="2026-01-01T00:00:00"), "names no zone"),
    "a session of no zone": (edited(0, "row", "created_at", value="2026-01-01T00:00:00"),
                             "a time in it names no zone"),
    "a slot twice": (twice(1), 'its slot "u1" is there twice'),
    "a name twice": (edited(2, "slot", "slot_id", value="default"), 'its slot "default" is there'),
    "no default": (edited(1, "slot", "slot_id", value="main"), "it has no slot default"),
    "a bad slot name": (edited(2, "slot", "slot_id", value="../x"), "has the character '/'"),
    "a lost parent": (edited(2, "slot", "parent_uid", value="u9"), "the parent of slot"),
    "its own parent": (edited(2, "slot", "parent_uid", value="u2"), "is its own ancestor"),
    "a ring": (edited(1, "slot", "parent_uid", value="u2"), "is its own ancestor"),
    "a fork ahead": (edited(2, "slot", "fork_seq", value=99), "forks from an event that isn't"),
    "a fork of nothing": (edited(2, "slot", "fork_seq", value=-1), "has a number that can't be"),
    "a lost slot": (edited(3, "event", "slot_uid", value="u9"), "the slot of the event with seq 1"),
    "odd settings": (edited(2, "slot", "config", "context_limit", value=-5), "context_limit is -5"),
    "a static slot": (edited(2, "slot", "config", "source", value=STATIC), "is static"),
    "a path as its id": (edited(0, "row", "session_id", value="x\n/../y"), "can't be used"),
    "a zero byte": (edited(3, "event", "turn_id", value="a\0b"), "can't be used"),
    "a long id": (edited(0, "row", "session_id", value="x" * 999), "can't be used"),
    "no id": (edited(0, "row", "session_id", value=" "), "its session has no id"),
    "a long title": (edited(0, "row", "title", value="x" * 9_999), "its title has over"),
    "two headers": (twice(0), "it has two headers"),
    "packed rubbish": (edited(3, "packed", value="@@@"), "can't be unpacked"),
    "packed lies": (edited(3, "packed", value=base64.b64encode(b"\x91\x01").decode()),
                    "can't be unpacked"),
    "nested too deeply": (
        lambda lines: lines.__setitem__(3, {"line": "event", "event": deep(5_000)}), "line 4"),
}  # fmt: skip


def deep(levels: int) -> Any:
    """Something that many readers can't follow, and json can't write: see `raw_deep`."""
    return f"deep:{levels}"


@pytest.mark.req("D2")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bundle_that_somebody_changed_is_refused(fault: str) -> None:
    """Also where its end was made to fit: one sentence names the file and the fault."""
    edit, words = FAULTS[fault]
    lines = told(TALK)
    edit(lines)
    data = sealed(lines).replace(b'"deep:5000"', b"[" * 5_000 + b"]" * 5_000)
    with pytest.raises(InputValidation) as raised:
        read_lines(io.BytesIO(data), "x.jsonl")
    assert words in raised.value.message
    assert raised.value.message.startswith("x.jsonl can't be imported: ")
    assert raised.value.message.endswith(" Nothing was imported.")
    assert len(raised.value.message) < 500


@pytest.mark.req("D2")
def test_a_bundle_is_refused_wherever_it_was_cut() -> None:
    """Not a byte may be missing, but for the last line's end."""
    file = io.BytesIO()
    write_lines(TALK, file)
    data = file.getvalue()
    for length in range(len(data) - 1):
        with pytest.raises(InputValidation, match="Nothing was imported"):
            read_lines(io.BytesIO(data[:length]), "x.jsonl")
    for broken in (data + b"more", data.replace(b'"q"', b'"r"')):
        with pytest.raises(InputValidation, match="Nothing was imported"):
            read_lines(io.BytesIO(broken), "x.jsonl")


@pytest.mark.req("D2")
def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read whole to find that out; one that is too long isn't written either."""
    monkeypatch.setattr(bundles, "MAX_LINE_BYTES", 2_000_000)
    endless = io.BytesIO(b"x" * 30_000_000)
    with pytest.raises(InputValidation, match="a line of it has over 2 MB"):
        read_lines(endless, "x.jsonl")
    assert endless.tell() <= 2_000_001
    state = state_of(said(1, "a", user("x" * 2_000_000)))
    with pytest.raises(InputValidation, match="a bundle holds 2 MB in a line"):
        write_lines(state, io.BytesIO())


@pytest.mark.req("D2")
def test_rights_are_not_taken_over() -> None:
    """Tools that ran without asking there ask here."""
    config = SlotConfig(approval={"*": "auto"}, mode=Focused(recent_messages=3))
    state = structs.replace(TALK, slots=(structs.replace(TALK.slots[0], config=config),))
    for name in FORMATS:
        (slot,) = again(state, name).slots
        assert slot.config == structs.replace(config, approval={})


@pytest.mark.req("D2", "S2")
def test_a_session_of_an_earlier_version_is_taken_with_its_focused_slots() -> None:
    """More messages than a mode may show now come in as the most; fewer than none never."""

    def showing(count: int) -> SessionState:
        config = SlotConfig(mode=Focused(recent_messages=count))
        return structs.replace(TALK, slots=(structs.replace(TALK.slots[0], config=config),))

    for name in FORMATS:
        (slot,) = again(showing(50_000), name).slots
        assert slot.config.mode == Focused(recent_messages=10_000)
        with pytest.raises(InputValidation, match="-3 messages"):
            again(showing(-3), name)


PARQUET_FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no metadata": (lambda table: table.replace_schema_metadata(None), "it is no bundle"),
    "a missing column": (lambda table: table.drop_columns(["payload"]), "has no column payload"),
    "rows missing": (lambda table: table.slice(1), "it was changed after it was exported"),
    "a column of another type": (
        lambda table: table.set_column(0, "seq", [["a", "b"]]), "can't be read"),
    "a payload of another type": (
        lambda table: table.set_column(9, "payload", [[1, 2]]), "can't be read"),
    "no payload": (lambda table: table.set_column(9, "payload", [[None, "{}"]]), "can't be read"),
    "no time": (lambda table: table.set_column(5, "created_at", [["x", "y"]]), "has no time"),
    "other seqs": (lambda table: table.set_column(0, "seq", [[2, 3]]), "it was changed after"),
    "odd bytes": (lambda table: table.set_column(10, "packed", [[b"\x91", None]]), "can't be read"),
}  # fmt: skip


@pytest.mark.req("D2")
@pytest.mark.parametrize("fault", PARQUET_FAULTS)
def test_a_parquet_file_that_somebody_changed_is_refused(fault: str) -> None:
    """The same checks, and those of its columns."""
    import pyarrow.parquet as pq

    file, broken = io.BytesIO(), io.BytesIO()
    write_parquet(TALK, file)
    change, words = PARQUET_FAULTS[fault]
    pq.write_table(change(pq.read_table(io.BytesIO(file.getvalue()))), broken)
    with pytest.raises(InputValidation) as raised:
        read_parquet(io.BytesIO(broken.getvalue()), "x.parquet")
    assert words in raised.value.message
    assert raised.value.message.endswith(" Nothing was imported.")


@pytest.mark.req("D2")
def test_a_parquet_file_is_refused_wherever_it_was_cut() -> None:
    """Or where it never was one."""
    file = io.BytesIO()
    write_parquet(TALK, file)
    data = file.getvalue()
    for length in (0, 3, 4, len(data) // 2, len(data) - 1):
        with pytest.raises(InputValidation, match="no Parquet file that can be read"):
            read_parquet(io.BytesIO(data[:length]), "x.parquet")


@pytest.mark.req("D2")
@pytest.mark.parametrize("name", FORMATS)
@given(places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_bytes_that_went_wrong_are_refused(name: str, places: list[tuple[float, int]]) -> None:
    """Wherever they are: what is imported is what was exported, or nothing."""
    write, read = FORMATS[name]
    file = io.BytesIO()
    write(TALK, file)
    data = bytearray(file.getvalue())
    for place, byte in places:
        data[min(int(place * len(data)), len(data) - 1)] = byte
    with suppress(InputValidation):
        assert read(io.BytesIO(bytes(data)), "x") == TALK


@pytest.mark.req("D2")
@pytest.mark.parametrize("name", ["x.csv", "x.md", "x", "jsonl"])
def test_a_name_tells_the_format(name: str, tmp_path: Path) -> None:
    """CSV and Markdown are export only, by other ways."""
    for act in (lambda path: export_state(TALK, path, overwrites=False), import_state):
        with pytest.raises(InputValidation, match=r"tells no format: .* in \.jsonl, or \.parquet"):
            act(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("D2")
def test_only_files_are_read(tmp_path: Path) -> None:
    """A folder, a pipe, a device, nothing: one sentence each, and nobody waits."""
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for name, words in {
        "folder.jsonl": "it is no file",
        "pipe.jsonl": "it is no file",
        "zero.jsonl": "it is no file",
        "none.jsonl": "No such file",
    }.items():
        with pytest.raises(InputValidation, match=words):
            import_state(tmp_path / name)


@pytest.mark.req("D2")
def test_without_pyarrow_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install, and what works without; nothing is left behind."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(AgentError, match=r"Parquet needs pyarrow.*ends in \.jsonl"):
        write_parquet(TALK, io.BytesIO())


@pytest.mark.req("D2")
@pytest.mark.parametrize("name", FORMATS)
def test_checkpoints_and_drafts_come_along(name: str) -> None:
    """What a crash left, too: whoever opens it next sets it right."""
    from agent_magics.core.events import Draft

    state = structs.replace(
        TALK,
        checkpoints=(checkpoint("c1", 1), checkpoint("c2", 2, parent_checkpoint_id="c1")),
        drafts=(Draft(slot_uid="u1", turn_id="b", text="half an"),),
    )
    assert again(state, name) == state
    two = structs.replace(state, checkpoints=(checkpoint("c1", 1), checkpoint("c1", 2)))
    with pytest.raises(InputValidation, match='its checkpoint "c1" is there twice'):
        again(two, name)
