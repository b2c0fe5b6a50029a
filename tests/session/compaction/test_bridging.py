"""Facts and summaries that go from one slot to another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_magics.core.config import CompactionConfig, SummaryConfig
from agent_magics.core.errors import (
    InputValidation,
    SessionNotFound,
    SlotNotFound,
    SlotReadonly,
    TurnBusy,
)
from agent_magics.core.events import SystemMessage, Usage
from agent_magics.core.messages import Text, User, text_of
from agent_magics.core.slots import Focused, Readonly, SlotConfig, Static
from agent_magics.session.session import Session
from tests.session.filling import LONG
from tests.session.filling import SUMMARY as COMPACTED
from tests.session.filling import summary as compacted

if TYPE_CHECKING:
    from tests.session.conftest import Bench

SUMMARY = {"text": "They chose PostgreSQL.", "purpose": "bridge"}


async def two(bench: Bench, *steps: Any, **settings: Any) -> Session:
    session = await bench.session(*steps, session_id="s", **settings)
    await session.create_slot("plan")
    return session


def said(session: Session, slot: str) -> str:
    return "\n".join(
        text_of(message.content) for message in session.messages(slot) if isinstance(message, User)
    )


@pytest.mark.req("B4")
def test_a_bridge_carries_the_facts_written_from_the_source(bench: Bench) -> None:
    """Without keys it is what was last written from there; one reference message holds it."""

    async def scene() -> None:
        session = await two(bench)
        await session.memory.set("db", "PostgreSQL")
        await session.switch_slot("plan")
        await session.memory.set("other", "not from default")
        made = await session.bridge("default", "plan", include_summary=False)
        assert (made.keys, made.has_summary, made.warning) == (("db",), False, None)
        assert "- db: PostgreSQL" in said(session, "plan")
        assert "not from default" not in said(session, "plan")
        bridges = [e for e in session.history("plan") if isinstance(e.payload, SystemMessage)]
        assert [event.seq for event in bridges] == [made.seq]

    asyncio.run(scene())


@pytest.mark.req("B4", "dec48")
def test_who_wrote_a_fact_last_has_it(bench: Bench) -> None:
    """Of two writers the later one; a fact that was deleted is nobody's."""

    async def scene() -> None:
        session = await two(bench)

        async def write(slot: str, key: str, value: str) -> None:
            await session.switch_slot(slot)
            await session.memory.set(key, value)

        await write("default", "db", "SQLite")
        await write("plan", "db", "PostgreSQL")
        await write("plan", "port", "80")
        await write("default", "port", "8080")
        await write("default", "gone", "x")
        await session.memory.delete("gone")
        made = await session.bridge("default", "plan", include_summary=False)
        assert made.keys == ("port",)
        assert "- port: 8080" in said(session, "plan")
        made = await session.bridge("plan", "default", include_summary=False)
        assert made.keys == ("db",)

    asyncio.run(scene())


@pytest.mark.req("B4")
def test_named_keys_are_carried_whoever_wrote_them(bench: Bench) -> None:
    """An unknown key is named, and nothing is carried then."""

    async def scene() -> None:
        session = await two(bench)
        await session.switch_slot("plan")
        await session.memory.set("port", "8080")
        with pytest.raises(InputValidation, match=r'no fact "prot".*port'):
            await session.bridge("default", "plan", keys=["port", "prot"])
        assert said(session, "plan") == ""
        made = await session.bridge("default", "plan", keys=["port"], include_summary=False)
        assert made.keys == ("port",)

    asyncio.run(scene())


@pytest.mark.req("B4")
def test_a_summary_is_asked_for_where_there_is_none(bench: Bench) -> None:
    """One call of purpose bridge, counted in the source and in no turn's usage."""

    async def scene() -> None:
        session = await two(bench, "Use PostgreSQL.", SUMMARY)
        await session.submit_turn("Which database?")
        assert session.newest_summary("default") is None
        made = await session.bridge("default", "plan")
        assert made.has_summary
        assert "They chose PostgreSQL." in said(session, "plan")
        assert "[Carried over]" in said(session, "plan")
        request = bench.provider.requests[-1]
        assert (request.purpose, request.tools) == ("bridge", ())
        frame = session.frames.events()
        spent = [e for e in frame.itertuples() if e.kind == "usage"]
        assert len(spent) == 2

    asyncio.run(scene())


@pytest.mark.req("B4")
def test_an_existing_summary_is_carried_without_a_call(bench: Bench) -> None:
    """A focused slot's own summary is one; no model is asked."""

    async def scene() -> None:
        session = await two(bench)
        await session.configure_slot("default", mode=Focused(summary_override="All is decided."))
        await session.bridge("default", "plan")
        assert "All is decided." in said(session, "plan")
        assert bench.provider.requests == []

    asyncio.run(scene())


@pytest.mark.req("B4", "dec48")
def test_the_newest_of_a_slots_summaries_is_carried(bench: Bench) -> None:
    """A checkpoint's or an automatic one, whichever came last; no model is asked for another."""

    async def scene() -> None:
        soon = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=3)
        automatic = [{"text": f"Z: automatic {n}.", "purpose": "summary"} for n in (1, 2)]
        session = await two(
            bench,
            *[f"{LONG} {n}" for n in range(6)],
            *automatic,
            compacted(),
            summary_config=soon,
            compaction=CompactionConfig(keep_recent_tokens=50),
        )
        for _ in range(3):
            await session.submit_turn("q")
        assert session.newest_summary("default") == "Z: automatic 1."
        await session.compact()
        assert session.newest_summary("default") == COMPACTED
        await session.bridge("default", "plan")
        assert COMPACTED in said(session, "plan")
        for _ in range(3):
            await session.submit_turn("q")
        assert session.newest_summary("default") == "Z: automatic 2."
        await session.bridge("default", "plan")
        assert "Z: automatic 2." in said(session, "plan")
        assert "bridge" not in [request.purpose for request in bench.provider.requests]

    asyncio.run(scene())


@pytest.mark.req("B4", "dec48")
def test_a_checkpoint_without_a_summary_is_not_carried(bench: Bench) -> None:
    """Where old turns were only left out there is none yet, so one is asked for."""

    async def scene() -> None:
        session = await two(
            bench,
            *[f"{LONG} {n}" for n in range(3)],
            compacted(error="server"),
            "fine",
            SUMMARY,
            context_limit=2_200,
            compaction=CompactionConfig(reserve_tokens=200),
        )
        for _ in range(3):
            await session.submit_turn(LONG)
        await session.submit_turn(LONG * 2)
        assert session.context_info("default").degraded
        assert session.newest_summary("default") is None
        await session.bridge("default", "plan")
        assert "They chose PostgreSQL." in said(session, "plan")

    asyncio.run(scene())


@pytest.mark.req("B4")
@pytest.mark.parametrize("bad", [{"error": "server"}, {"text": "I'm sorry, I can't."}], ids=str)
def test_a_failed_summary_leaves_the_facts(bench: Bench, bad: dict[str, Any]) -> None:
    """The facts go over, with a warning; with no facts there is nothing to carry."""

    async def scene() -> None:
        session = await two(
            bench, "Yes.", {**bad, "purpose": "bridge"}, {**bad, "purpose": "bridge"}
        )
        await session.submit_turn("Well?")
        with pytest.raises(InputValidation, match="nothing to carry over"):
            await session.bridge("default", "plan")
        await session.memory.set("db", "PostgreSQL")
        made = await session.bridge("default", "plan")
        assert (made.keys, made.has_summary) == (("db",), False)
        assert made.warning is not None
        assert "no summary" in made.warning

    asyncio.run(scene())


@pytest.mark.req("B4", "S11")
def test_what_cannot_be_bridged_is_refused(bench: Bench) -> None:
    """Itself, an unknown slot, a read-only target, a busy one; from a read-only one it works."""

    async def scene() -> None:
        session = await two(bench, {"text": "slow", "delay_s": 30})
        await session.memory.set("db", "PostgreSQL")
        with pytest.raises(InputValidation, match="itself"):
            await session.bridge("plan", "plan")
        with pytest.raises(SlotNotFound):
            await session.bridge("default", "plam")
        turn = await session.send_message("go", slot="plan")
        with pytest.raises(TurnBusy):
            await session.bridge("default", "plan", include_summary=False)
        turn.cancel()
        await turn.join()
        await session.configure_slot("plan", mode=Readonly())
        with pytest.raises(SlotReadonly):
            await session.bridge("default", "plan", include_summary=False)
        await session.bridge("plan", "default", keys=["db"], include_summary=False)

    asyncio.run(scene())


@pytest.mark.req("B6", "B4")
def test_destroying_a_context_keeps_what_was_bridged(bench: Bench) -> None:
    """The target's message and the session's facts outlive the source, also after a restart."""

    async def scene() -> None:
        session = await two(bench, "Done.")
        await session.switch_slot("plan")
        await session.memory.set("path", "src/db.rs")
        await session.bridge("plan", "default", include_summary=False)
        await session.delete_slot("plan")
        live = session.messages("default")
        await session.close()
        again = await bench.resumed("s")
        assert again.messages("default") == live
        assert "src/db.rs" in said(again, "default")
        assert await again.memory.get("path") == "src/db.rs"

    asyncio.run(scene())


@pytest.mark.req("B4", "C8")
def test_a_bridge_is_no_turn(bench: Bench) -> None:
    """It counts as none, and a rewind may end before or behind it, also in an empty slot."""

    async def scene() -> None:
        session = await two(bench, "One.", "Two.")
        await session.memory.set("db", "PostgreSQL")
        first = await session.bridge("default", "plan", include_summary=False)
        await session.submit_turn("First", slot="plan")
        end = session.turns("plan")[-1].last_seq
        second = await session.bridge("default", "plan", include_summary=False)
        await session.submit_turn("Second", slot="plan")
        assert len(session.turns("plan")) == 2
        for to_seq, bridges in ((second.seq, 2), (end, 1), (first.seq, 1)):
            await session.rewind("plan", to_seq=to_seq)
            assert said(session, "plan").count("[Carried over]") == bridges

    asyncio.run(scene())


@pytest.mark.req("B4")
def test_a_static_slot_can_be_a_source(bench: Bench) -> None:
    """Its given messages are what the summary is made of."""

    async def scene() -> None:
        session = await two(bench, SUMMARY)
        given = Static(messages=(User(content=(Text(text="We use PostgreSQL."),)),))
        await session.create_slot("notes", SlotConfig(source=given))
        await session.bridge("notes", "plan")
        prompt = text_of(bench.provider.requests[-1].messages[-1].content)  # type: ignore[union-attr,arg-type]
        assert "We use PostgreSQL." in prompt

    asyncio.run(scene())


@pytest.mark.req("B3")
def test_the_model_writes_and_reads_facts(bench: Bench) -> None:
    """What it notes stands in every slot's next request, and counts as written from its slot."""

    async def scene() -> None:
        note = {
            "calls": [{"name": "session_memory_set", "arguments": {"key": "db", "value": "pg"}}]
        }
        read = {"calls": [{"name": "session_memory_get", "arguments": {"key": "nope"}}]}
        session = await bench.session(
            note, "Noted.", read, "None.", session_id="s", session_memory_tools=True
        )
        await session.create_slot("plan")
        await session.submit_turn("Remember the database.", slot="plan")
        assert await session.memory.items() == {"db": "pg"}
        assert "db: pg" in session.next_request("default").request.messages[0].text  # type: ignore[union-attr]
        await session.submit_turn("What is nope?")
        answered = session.messages()[-2]
        assert 'no fact "nope". Known: db' in str(answered)
        made = await session.bridge("plan", "default", include_summary=False)
        assert made.keys == ("db",)

    asyncio.run(scene())


@pytest.mark.req("B3")
def test_a_fact_that_does_not_fit_is_told_to_the_model(bench: Bench) -> None:
    """A value over the limit is an error result; nothing is written and the turn goes on."""

    async def scene() -> None:
        arguments = {"key": "k", "value": "x" * 4_001}
        call = {"calls": [{"name": "session_memory_set", "arguments": arguments}]}
        session = await bench.session(call, "Too long.", session_memory_tools=True)
        await session.submit_turn("Note it.")
        assert await session.memory.items() == {}
        assert "4,000 are allowed" in str(session.messages()[-2])

    asyncio.run(scene())


@pytest.mark.req("B3")
def test_the_memory_tools_can_be_turned_off(bench: Bench) -> None:
    """By the agent's setting, and by a slot's own tool set."""

    async def scene() -> None:
        session = await bench.session("Hi.", session_memory_tools=True)
        names = {tool.name for tool in session.next_request().request.tools}
        assert names == {"session_memory_set", "session_memory_get"}
        await session.configure_slot("default", tools=())
        assert session.next_request().request.tools == ()

    asyncio.run(scene())


@pytest.mark.req("B1")
def test_a_reserved_key_is_refused(bench: Bench) -> None:
    """Keys of automatic summaries never reach a prompt, so no fact may hide there."""

    async def scene() -> None:
        session = await bench.session()
        with pytest.raises(InputValidation, match="reserved"):
            await session.memory.set("conversation_summary:x", "y")

    asyncio.run(scene())


def test_usage_of_a_bridge_has_its_own_purpose(bench: Bench) -> None:
    """It is in the ledger under `bridge`."""

    async def scene() -> None:
        session = await two(bench, "Yes.", SUMMARY)
        await session.submit_turn("Well?")
        await session.bridge("default", "plan")
        spent = [
            e.payload for e in session._open_session.loaded.events if isinstance(e.payload, Usage)
        ]
        assert [usage.purpose for usage in spent] == ["turn", "bridge"]

    asyncio.run(scene())


@pytest.mark.req("B4", "dec48")
def test_a_summary_of_turns_that_left_the_view_is_not_carried(bench: Bench) -> None:
    """What was rewound is no part of the source; one call asks anew."""

    async def scene() -> None:
        config = SummaryConfig(max_context_tokens=20, trigger_token_ratio=0.5, debounce_turns=1)
        old = {"text": "They chose Oracle.", "purpose": "summary"}
        session = await bench.session("Yes.", old, "No.", SUMMARY, summary_config=config)
        await session.create_slot("plan")
        await session.submit_turn("Which database shall we take for this, please?")
        assert session.newest_summary("default") == "They chose Oracle."
        await session.rewind(to_seq=0)
        assert session.newest_summary("default") is None

    asyncio.run(scene())


@pytest.mark.req("B4", "dec48", "dec16")
def test_a_provider_that_breaks_leaves_the_facts(bench: Bench) -> None:
    """Foreign code that raises anything is a warning, not a panic."""

    def broken(_: Any) -> Any:
        raise ZeroDivisionError("a bug of theirs")

    async def scene() -> None:
        session = await two(bench, "Yes.", broken)
        await session.submit_turn("Well?")
        await session.memory.set("db", "PostgreSQL")
        made = await session.bridge("default", "plan")
        assert made.keys == ("db",)
        assert "ZeroDivisionError" in str(made.warning)

    asyncio.run(scene())


@pytest.mark.req("B1")
def test_a_secret_is_no_fact(bench: Bench) -> None:
    """It would stand in every request; nothing is written."""

    async def scene() -> None:
        session = await bench.session()
        with pytest.raises(InputValidation, match="looks like a key"):
            await session.memory.set("k", "sk-proj-" + "a1B2c3D4" * 6)
        assert await session.memory.items() == {}
        await session.close()
        with pytest.raises(SessionNotFound):
            await session.memory.set("k", "v")

    asyncio.run(scene())
