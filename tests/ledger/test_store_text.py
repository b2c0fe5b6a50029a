"""Any text comes back as it was stored (invariant 13)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_magics.core.errors import InputValidation
from agent_magics.core.events import LedgerEvent, Payload, ToolCalled, decode_payload
from agent_magics.core.ports import Change, Lease
from agent_magics.core.text import clean_text, clean_value
from agent_magics.ledger import records
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import loaded, new, owner, user

# Broken halves, NUL, line ends of all kinds, right-to-left marks, and anything else.
TEXT = st.text(
    st.one_of(st.sampled_from("\ud800\udfff\0\r\n\u2028\u202e\u05d0\U0001f600"), st.characters()),
    max_size=60,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


class Writer:
    """A store, a session in it and a loop to ask them from."""

    def __init__(self, path: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.store = SqlStore(path)
        self.lease: Lease = self.loop.run_until_complete(
            self.store.acquire("s", owner(), create=True)
        )

    def round_trip(self, payload: Payload) -> tuple[LedgerEvent, LedgerEvent]:
        change = Change(events=(new(payload),))
        (written,) = self.loop.run_until_complete(self.store.commit(self.lease, change))
        return written, self.loop.run_until_complete(loaded(self.store)).events[-1]

    def close(self) -> None:
        self.loop.run_until_complete(self.store.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    made = Writer(tmp_path_factory.mktemp("text") / "ledger.db")
    yield made
    made.close()


@pytest.mark.req("inv13")
@given(text=TEXT)
@settings(max_examples=60, deadline=None)
def test_13_any_message_comes_back_as_given_back(writer: Writer, text: str) -> None:
    """What commit gave is what load gives; cleaned text isn't touched at all."""
    written, reloaded = writer.round_trip(user(text))
    assert reloaded == written
    cleaned = user(clean_text(text))
    assert writer.round_trip(cleaned)[1].payload == cleaned


@pytest.mark.req("inv13")
@given(arguments=st.dictionaries(TEXT, JSON, max_size=3))
@settings(max_examples=60, deadline=None)
def test_13_any_arguments_come_back(writer: Writer, arguments: dict[str, object]) -> None:
    """Tool arguments of any shape are stored, or cleaned and stored, never lost."""
    call = ToolCalled(call_id="x", tool_name="f", arguments=arguments)
    written, reloaded = writer.round_trip(call)
    assert reloaded == written
    assert isinstance(reloaded.payload, ToolCalled)
    assert len(reloaded.payload.arguments or {}) == len(clean_value(arguments))


@pytest.mark.slow
@pytest.mark.req("inv13")
def test_13_fifty_megabytes_in_one_line(tmp_path: Path) -> None:
    """The longest line that we promise goes through, once."""
    writer = Writer(tmp_path / "ledger.db")
    long = user("x" * 50_000_000)
    assert writer.round_trip(long)[1].payload == long
    writer.close()


@pytest.mark.req("inv16")
def test_what_could_not_be_read_again_is_not_written() -> None:
    """A payload of wrong types is refused at the door; one that changes is given as it is read."""
    odd: Any = {1: 2}
    with pytest.raises(InputValidation, match="tool_call can't be recorded"):
        records.storable(ToolCalled(call_id="c", tool_name="f", arguments=odd))
    mixed = ToolCalled(call_id="c", tool_name="f", arguments={"x": {1}, "n": 10**30})
    live, data = records.storable(mixed)
    assert live == decode_payload(data)
