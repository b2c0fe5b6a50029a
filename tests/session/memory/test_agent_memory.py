"""`agent.memory`: see, add, correct and forget what lasts across sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

import agent_magics
from agent_magics.core.errors import InputValidation, StorageDuplicate, StorageError
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.session.agent import Agent
from agent_magics.session.memory.agent_memory import AgentMemory, short_ids
from agent_magics.testing import memory, refused

if TYPE_CHECKING:
    from tests.session.conftest import Bench

pytestmark = pytest.mark.req("E16", "dec47")


def play(bench: Bench, scenario: Callable[[AgentMemory], Awaitable[None]]) -> None:
    """Play a scenario on the memory of an agent with a real file."""

    async def scene() -> None:
        agent = await bench.agent(memories=True)
        await scenario(agent.memory)

    asyncio.run(scene())


def test_what_is_added_is_listed_and_found(bench: Bench) -> None:
    """The newest first; as written by a person; the words and tags cleaned of blanks."""

    async def scenario(kept: AgentMemory) -> None:
        first = await kept.add("  likes green tea ", ["food", " food", "drink\ntoo"])
        second = await kept.add("works on churn")
        assert [each.memory_id for each in await kept.list()] == [
            second.memory_id, first.memory_id,
        ]  # fmt: skip
        assert (first.content, first.tags) == ("likes green tea", ("food", "drink too"))
        assert (first.source, first.namespace) == ("manual", "default")
        assert await kept.search("which tea?") == (first,)
        assert await kept.find(first.memory_id[:6]) == first

    play(bench, scenario)


def test_adding_the_same_again_makes_no_second(bench: Bench) -> None:
    """It comes to the top."""

    async def scenario(kept: AgentMemory) -> None:
        first = await kept.add("likes tea")
        await kept.add("likes rice")
        again = await kept.add(" likes tea")
        assert again.memory_id == first.memory_id
        assert [each.content for each in await kept.list()] == ["likes tea", "likes rice"]

    play(bench, scenario)


def test_correct_and_forget(bench: Bench) -> None:
    """By id or its beginning; what was is given back, what is gone is gone."""

    async def scenario(kept: AgentMemory) -> None:
        made = await kept.add("likes tea", ["food"])
        now = await kept.correct(made.memory_id[:5], "likes coffee")
        assert (now.memory_id, now.content, now.tags) == (made.memory_id, "likes coffee", ("food",))
        assert await kept.list() == (now,)
        assert await kept.search("tea") == ()
        assert (await kept.forget(made.memory_id[:5])).content == "likes coffee"
        assert await kept.list() == ()
        assert "No memory has the id" in await refused(InputValidation, kept.forget(made.memory_id))

    play(bench, scenario)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (" \n", "blank"),
        ("x" * 1_001, "1,001 characters"),
        ("the password is hunter2", "secret"),
        (7, "a memory is text"),
    ],
    ids=["blank", "long", "secret", "no text"],
)
def test_what_is_not_remembered(bench: Bench, content: str, says: str) -> None:
    """One sentence why; neither added nor put in the place of another."""

    async def scenario(kept: AgentMemory) -> None:
        made = await kept.add("likes tea")
        assert says in await refused(InputValidation, kept.add(content))
        assert says in await refused(InputValidation, kept.correct(made.memory_id, content))
        assert [each.content for each in await kept.list()] == ["likes tea"]

    play(bench, scenario)


def test_tags_are_texts_without_secrets(bench: Bench) -> None:
    """A text in place of a list is a slip, not many tags."""

    async def scenario(kept: AgentMemory) -> None:
        assert "list of texts" in await refused(InputValidation, kept.add("likes tea", "food"))
        key = ["sk-abcdef1234567890"]
        assert "secret" in await refused(InputValidation, kept.add("likes tea", key))
        assert await kept.list() == ()

    play(bench, scenario)


def test_ids_are_told_apart(bench: Bench) -> None:
    """A beginning that several have, and one that none has, name what there is."""

    async def scene() -> None:
        store = InMemoryMemoryStore()
        for name in ("mabcde1", "mabcde2", "mzzzz"):
            await store.upsert(memory(name, memory_id=name, namespace="default"))
        kept = (await bench.agent(memories=store)).memory
        assert "mabcde1, mabcde2" in await refused(InputValidation, kept.find("mabcd"))
        assert "The nearest: mzzzz" in await refused(InputValidation, kept.find("mzzz1"))
        assert await refused(InputValidation, kept.find("")) == 'No memory has the id "".'
        assert (await kept.find("mzz")).content == "mzzzz"

    asyncio.run(scene())


def test_short_ids_stay_apart() -> None:
    """Five characters, more where two would be the same."""
    assert short_ids(["m12345678", "mabcdefgh"]) == {"m12345678": "m1234", "mabcdefgh": "mabcd"}
    assert set(short_ids(["mabcdefg1", "mabcdefg2"]).values()) == {"mabcdefg1", "mabcdefg2"}
    assert short_ids([]) == {}
    assert short_ids(["m1", "m1"]) == {"m1": "m1"}


def test_a_change_holds_at_once_in_an_open_session(bench: Bench) -> None:
    """The next request has the corrected words, and none of what was forgotten."""

    async def scene() -> None:
        agent = await bench.agent(memories=True)
        tea, rice = await agent.memory.add("likes tea"), await agent.memory.add("likes rice")
        session = await agent.new_session()

        def told() -> str:
            return str(session.next_request().request.messages[0])

        assert "likes tea" in told()
        await agent.memory.correct(tea.memory_id, "likes coffee")
        await agent.memory.forget(rice.memory_id)
        assert "likes coffee" in told()
        assert "likes tea" not in told()
        assert "likes rice" not in told()
        await agent.memory.add("works on churn")
        assert "- works on churn\\n- likes coffee" in told()

    asyncio.run(scene())


def test_it_works_in_plain_python(bench: Bench) -> None:
    """Through `agent_magics.run`, without a loop of one's own."""
    agent: Agent = agent_magics.run(bench.agent(memories=True))
    made = agent_magics.run(agent.memory.add("likes tea"))
    assert agent_magics.run(agent.memory.list()) == (made,)
    assert repr(agent.memory).startswith('<memory "default"')


def test_without_a_storage_it_says_so(bench: Bench) -> None:
    """One sentence, whatever is asked of it."""

    async def scene() -> None:
        kept = (await bench.agent()).memory
        assert not kept.is_kept
        for asked in (kept.list(), kept.search("x"), kept.add("x"), kept.forget("x")):
            assert "MemoryStorage not registered" in await refused(StorageError, asked)

    asyncio.run(scene())


@pytest.mark.req("E1")
def test_two_memory_storages_are_refused(bench: Bench) -> None:
    """At build."""
    builder = agent_magics.AgentBuilder(agent_magics.AgentConfig(default_model="scripted:x"))
    builder.register_model_provider(agent_magics.ScriptedProvider([]))
    for _ in range(2):
        builder.register_memory_storage(InMemoryMemoryStore())
    with pytest.raises(StorageDuplicate, match="memory storage"):
        asyncio.run(builder.build())
