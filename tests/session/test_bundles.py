"""A session that was exported and imported goes on as the one it was made of."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_magics.core.config import SessionConfig
from agent_magics.core.errors import (
    AgentError,
    InputValidation,
    SessionLocked,
    SessionNotFound,
    StorageError,
)
from agent_magics.core.events import AssistantMessage, Draft
from agent_magics.core.messages import Text
from agent_magics.core.slots import SlotConfig
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import owner
from tests.dataframes.test_bundles import TALK
from tests.session.state.test_live_view import (
    KEEP_LITTLE,
    OPERATIONS,
    _do,
    _everything,
    answered,
    twice,
)

if TYPE_CHECKING:
    from tests.session.conftest import Bench

FORMATS = pytest.mark.parametrize("ending", ["jsonl", "parquet"])


@pytest.mark.req("D2", "E18", "C3")
@FORMATS
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(operations=OPERATIONS)
def test_an_imported_session_resumes_the_same(
    bench: Bench, ending: str, operations: list[tuple[str, int]]
) -> None:
    """Slots, messages, turns, weights, facts and frames, whatever was done before."""

    async def scene() -> None:
        how: dict[str, Any] = {"tools": [twice], "compaction": KEEP_LITTLE}
        session = await bench.session(*[answered] * 80, **how)
        await session.memory.set("city", "Oslo")
        for name, number in operations:
            try:
                await _do(session, name, number)
            except AgentError:
                continue
        before, frame = _everything(session), session.frames.turns()
        session_id = session.session_id
        await session.close()
        agent = await bench.agent(*[answered] * 3, **how)
        path = bench.path.with_name(f"talk.{ending}")
        await agent.export_session(session_id, path, overwrites=True)
        made = await agent.import_session(path)
        assert made.row.session_id != session_id  # it was taken
        again = await agent.resume_session(made.row.session_id)
        assert _everything(again) == before
        turns = again.frames.turns().drop(columns="session_id")
        assert turns.equals(frame.drop(columns="session_id"))
        assert await again.memory.items() == {"city": "Oslo"}
        assert again.current_slot == session.current_slot
        head = again.frames.events()["seq"].max()
        await (await again.send_message("ask more")).join()
        assert again.frames.events()["seq"].iloc[-1] > head  # it goes on where it was
        await bench.aclose()
        bench._agents.clear()
        bench._stores.clear()

    asyncio.run(scene())


@pytest.mark.req("D2")
@FORMATS
def test_it_keeps_its_id_in_another_store(bench: Bench, tmp_path: Path, ending: str) -> None:
    """What was a session there is the same one here, title and all."""

    async def scene() -> None:
        there = await bench.agent("a")
        session = await there.new_session(SessionConfig(session_id="talk", title="Tea"))
        await session.submit_turn("q")
        await there.export_session("talk", tmp_path / f"t.{ending}")
        here = await bench.agent(store=SqlStore(tmp_path / "other.db"))
        made = await here.import_session(tmp_path / f"t.{ending}")
        (listed,) = (await here.list_sessions()).sessions
        assert (listed.session_id, listed.title, listed.message_count) == ("talk", "Tea", 2)
        assert made.row.session_id == "talk"
        assert (await here.resume_session("talk")).messages() == session.messages()

    asyncio.run(scene())


@pytest.mark.req("D2", "dec62")
def test_what_a_crash_left_is_set_right_where_it_is_opened(bench: Bench, tmp_path: Path) -> None:
    """A draft becomes an incomplete answer there, as it would have here."""

    async def scene() -> None:
        session = await bench.session("a", session_id="s")
        await session.submit_turn("q")
        uid = session.list_slots()[0].uid
        await session.close()
        store = SqlStore(bench.path)
        lease = await store.acquire("s", owner())
        await store.save_draft(lease, Draft(slot_uid=uid, turn_id="t9", text="half an"))
        await store.release(lease)
        await store.aclose()
        agent = await bench.agent()
        await agent.export_session("s", tmp_path / "s.jsonl")
        made = await agent.import_session(tmp_path / "s.jsonl")
        again = await agent.resume_session(made.row.session_id)
        last = again.history()[-1].payload
        assert isinstance(last, AssistantMessage)
        assert (last.content, last.cause) == ((Text(text="half an"),), "process ended")

    asyncio.run(scene())


@pytest.mark.req("D2")
def test_nothing_is_half_imported(bench: Bench, tmp_path: Path) -> None:
    """What fails while it is stored leaves no row: the same file imports once it is mended."""

    async def scene() -> None:
        session = await bench.session("a", session_id="s")
        await session.submit_turn("q")
        await session.close()
        agent = await bench.agent()
        await agent.export_session("s", tmp_path / "s.jsonl")
        store = agent.storage
        assert isinstance(store, SqlStore)
        await agent.delete_session("s")

        def spoil(held: Any) -> None:  # the last row that an import writes
            held.raw.execute(
                "CREATE TEMP TRIGGER spoil BEFORE INSERT ON slots BEGIN"
                " SELECT RAISE(ABORT, 'spoilt'); END"
            )

        await store.database.on_connection(spoil)
        with pytest.raises(StorageError, match="spoilt"):
            await agent.import_session(tmp_path / "s.jsonl")
        assert await store.load("s") is None
        await store.database.on_connection(lambda held: held.raw.execute("DROP TRIGGER spoil"))
        await agent.import_session(tmp_path / "s.jsonl")
        assert await store.load("s") is not None

    asyncio.run(scene())


@pytest.mark.req("D2")
def test_rights_are_not_imported(bench: Bench, tmp_path: Path) -> None:
    """Slots whose tools ran without asking ask again; their other settings stay."""

    async def scene() -> None:
        session = await bench.session(session_id="s")
        config = SlotConfig(approval={"*": "auto"}, system_prompt="Be brief.")
        await session.create_slot("free", config)
        await session.close()
        agent = await bench.agent()
        await agent.export_session("s", tmp_path / "s.jsonl")
        made = await agent.import_session(tmp_path / "s.jsonl")
        again = await agent.resume_session(made.row.session_id)
        assert again.slot_config("free").approval == {}
        assert again.slot_config("free").system_prompt == "Be brief."

    asyncio.run(scene())


@pytest.mark.req("D2")
def test_both_stores_take_in_what_the_other_gave(tmp_path: Path) -> None:
    """One that lives in memory holds the same of it; an id that is used is refused."""

    async def scene() -> None:
        kept, living = SqlStore(tmp_path / "l.db"), InMemoryStore()
        await kept.restore(TALK)
        await living.restore(TALK)
        states = [await store.load("s") for store in (kept, living)]
        for state in states:
            assert state is not None
            assert state.events == TALK.events
            assert state.slots == TALK.slots
            assert state.row.message_count == 2
        for store in (kept, living):
            assert await store.held_sessions() == frozenset()
            lease = await store.acquire("s", owner())
            assert await store.held_sessions() == frozenset({"s"})
            await store.release(lease)
            with pytest.raises(InputValidation, match="already a session"):
                await store.restore(TALK)
        await kept.aclose()

    asyncio.run(scene())


@pytest.mark.req("D2", "E4")
def test_a_session_is_renamed(bench: Bench) -> None:
    """The open one, and a stored one that nobody has open."""

    async def scene() -> None:
        first = await bench.session("a", session_id="s1")
        await first.close()
        agent = await bench.agent("a")
        session = await agent.new_session(SessionConfig(session_id="s2"))
        await agent.rename_session("s2", " Rice ")
        await agent.rename_session("s1", "Tea")
        titles = {each.session_id: each.title for each in await agent.find_sessions("")}
        assert (titles, session.title) == ({"s1": "Tea", "s2": "Rice"}, "Rice")
        with pytest.raises(InputValidation, match="blank"):
            await agent.rename_session("s1", " ")
        with pytest.raises(SessionNotFound):
            await agent.rename_session("s9", "x")
        other = await bench.agent()
        with pytest.raises(SessionLocked):
            await other.rename_session("s2", "x")

    asyncio.run(scene())


@pytest.mark.req("D2", "E3")
def test_without_a_storage_nothing_is_exported(bench: Bench, tmp_path: Path) -> None:
    """One sentence says that none is registered."""

    async def scene() -> None:
        agent = await bench.agent(stored=False)
        session = await agent.new_session()
        for act in (
            agent.export_session(session.session_id, tmp_path / "x.jsonl"),
            agent.import_session(tmp_path / "x.jsonl"),
            agent.rename_session(session.session_id, "x"),
        ):
            with pytest.raises(StorageError, match="SessionStorage not registered"):
                await act

    asyncio.run(scene())
