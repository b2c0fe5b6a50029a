"""What every memory storage must do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from agent_magics.core.errors import InputValidation
from agent_magics.core.memories import Memory
from agent_magics.core.ports import MemoryStorage
from agent_magics.testing.sessions import NOON, refused
from agent_magics.testing.stores import StoreContract

ODD_QUERIES = (
    "", " ", "\0", "\ud800", '"', '""tea"', "'; DROP TABLE memories; --", "tea AND", "NOT tea",
    "tea NEAR/2 green", "NEAR(tea green)", "te*", "^tea", "content:tea", "-tea", "(tea", "%_",
    "🍵", "tea\u202e\u2028", "a" * 100_000, "tea " * 20_000,
)  # fmt: skip


def memory(
    content: str = "likes green tea",
    *,
    memory_id: str = "m1",
    namespace: str = "ns",
    minute: int = 0,
    tags: tuple[str, ...] = (),
    source: str = "manual",
) -> Memory:
    """Make a memory of some minutes after noon."""
    at = NOON + timedelta(minutes=minute)
    return Memory(
        memory_id=memory_id, namespace=namespace, content=content, source=source,
        created_at=at, updated_at=at, tags=tags,
    )  # fmt: skip


def ids(found: Sequence[Memory]) -> list[str]:
    """Return the ids of memories, in their order."""
    return [each.memory_id for each in found]


class MemoryStorageContract(StoreContract[MemoryStorage]):
    """What every `core.ports.MemoryStorage` must do. Override `make_store`."""

    # Keeping

    def test_an_empty_store_has_nothing(self) -> None:
        """Every way of looking answers with nothing."""

        async def scenario(store: MemoryStorage) -> None:
            assert list(await store.list_recent("ns", 5)) == []
            assert list(await store.list_by_namespace("ns")) == []
            assert list(await store.search("ns", "tea", 5)) == []
            await store.delete("m1")

        self.run(scenario)

    def test_everything_comes_back(self) -> None:
        """A memory is read as it was written, by each way of looking."""

        async def scenario(store: MemoryStorage) -> None:
            whole = memory("likes größere 绿茶\n and <b>", tags=("food", "ü"), source="session:s")
            await store.upsert(whole)
            assert list(await store.list_recent("ns", 5)) == [whole]
            assert list(await store.list_by_namespace("ns")) == [whole]
            assert list(await store.search("ns", "likes", 5)) == [whole]

        self.run(scenario)

    def test_the_newest_come_first(self) -> None:
        """By the time of the last change, up to the limit."""

        async def scenario(store: MemoryStorage) -> None:
            for name, minute in {"a": 2, "b": 9, "c": 5}.items():
                await store.upsert(memory(name, memory_id=name, minute=minute))
            assert ids(await store.list_recent("ns", 2)) == ["b", "c"]
            await store.upsert(memory("a", memory_id="a", minute=10))
            assert ids(await store.list_recent("ns", 2)) == ["a", "b"]
            assert sorted(ids(await store.list_by_namespace("ns"))) == ["a", "b", "c"]

        self.run(scenario)

    def test_the_same_content_moves_the_time_only(self) -> None:
        """Writing what is there already changes `updated_at` and nothing else."""

        async def scenario(store: MemoryStorage) -> None:
            before = memory(tags=("food",))
            await store.upsert(before)
            await store.upsert(memory(minute=7, tags=("other",), source="checkpoint"))
            now = msgspec.structs.replace(before, updated_at=NOON + timedelta(minutes=7))
            assert list(await store.list_recent("ns", 5)) == [now]

        self.run(scenario)

    def test_other_content_takes_the_place(self) -> None:
        """Content, tags, source and `updated_at` change; namespace and `created_at` stay."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory(tags=("food",)))
            await store.upsert(
                memory("likes coffee", namespace="elsewhere", minute=7, source="checkpoint")
            )
            expected = msgspec.structs.replace(
                memory("likes coffee", source="checkpoint"),
                updated_at=NOON + timedelta(minutes=7),
            )
            assert list(await store.list_by_namespace("ns")) == [expected]
            assert list(await store.list_by_namespace("elsewhere")) == []

        self.run(scenario)

    def test_deleted_is_gone(self) -> None:
        """By id alone, from every way of looking; the others stay."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory())
            await store.upsert(memory("likes black tea", memory_id="m2"))
            assert len(await store.search("ns", "tea", 5)) == len(("m1", "m2"))
            await store.delete("m1")
            assert ids(await store.list_recent("ns", 5)) == ["m2"]
            assert ids(await store.search("ns", "green tea", 5)) == ["m2"]
            await store.upsert(memory("lives in Lima", memory_id="m3"))
            assert ids(await store.search("ns", "green", 5)) == []

        self.run(scenario)

    def test_namespaces_do_not_mix(self) -> None:
        """What one namespace remembers is in no answer to another."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory())
            await store.upsert(memory("likes tea, too", memory_id="m2", namespace="other"))
            for found in (
                await store.list_recent("other", 5),
                await store.list_by_namespace("other"),
                await store.search("other", "likes tea", 5),
            ):
                assert ids(found) == ["m2"]

        self.run(scenario)

    def test_broken_text_is_cleaned(self) -> None:
        """What can't be stored becomes visible; nothing fails."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory("a\ud800b \0", memory_id="m\ud800", tags=("t\0",)))
            (found,) = await store.list_recent("ns", 5)
            assert (found.content, found.tags) == ("a\ufffdb \\x00", ("t\\x00",))
            await store.delete("m\ud800")
            assert list(await store.list_recent("ns", 5)) == []

        self.run(scenario)

    # Finding

    def test_the_best_come_first(self) -> None:
        """More of the words is better; what has none of them isn't found."""

        async def scenario(store: MemoryStorage) -> None:
            contents = {
                "m1": "Grows tomatoes on the balcony",
                "m2": "Drinks tea in the morning",
                "m3": "Prefers green tea from Uji",
                "m4": "Works on customer churn",
            }
            for name, content in contents.items():
                await store.upsert(memory(content, memory_id=name))
            assert ids(await store.search("ns", "Which green TEA do I like?", 5)) == ["m3", "m2"]
            assert ids(await store.search("ns", "green tea", 1)) == ["m3"]
            assert ids(await store.search("ns", "submarine", 5)) == []

        self.run(scenario)

    def test_tags_are_searched(self) -> None:
        """A word that stands in a tag finds the memory."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory(tags=("beverage",)))
            assert ids(await store.search("ns", "beverage", 5)) == ["m1"]

        self.run(scenario)

    def test_changed_content_is_found_by_its_new_words(self) -> None:
        """And by its old ones no longer."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory())
            assert ids(await store.search("ns", "tea", 5)) == ["m1"]
            await store.upsert(memory("likes coffee", minute=1))
            assert ids(await store.search("ns", "tea", 5)) == []
            assert ids(await store.search("ns", "coffee", 5)) == ["m1"]

        self.run(scenario)

    def test_scripts_without_blanks_are_searched(self) -> None:
        """A part of a Chinese, Japanese or Thai sentence finds it, one character included."""

        async def scenario(store: MemoryStorage) -> None:
            contents = {
                "zh": "用户喜欢绿茶",
                "ja": "ユーザーは東京に住んでいる",
                "th": "ผู้ใช้ชอบชาเขียว",
            }
            for name, content in contents.items():
                await store.upsert(memory(content, memory_id=name))
            assert ids(await store.search("ns", "我最喜欢什么?", 5)) == ["zh"]
            assert ids(await store.search("ns", "茶", 5)) == ["zh"]
            assert ids(await store.search("ns", "東京の天気", 5)) == ["ja"]
            assert ids(await store.search("ns", "ชาเขียว", 5)) == ["th"]

        self.run(scenario)

    def test_any_text_is_a_query(self) -> None:
        """Operators, quotes, broken characters and a very long text are words or nothing."""

        async def scenario(store: MemoryStorage) -> None:
            await store.upsert(memory())
            for query in ODD_QUERIES:
                found = await store.search("ns", query, 5)
                assert ids(found) in (["m1"], []), query[:20]
            assert ids(await store.search("ns", "NOT tea", 5)) == ["m1"]
            assert ids(await store.search("ns", '"" tea" OR', 5)) == ["m1"]

        self.run(scenario)

    def test_a_limit_must_be_positive(self) -> None:
        """None or fewer is the caller's mistake."""

        async def scenario(store: MemoryStorage) -> None:
            await refused(InputValidation, store.list_recent("ns", 0))
            await refused(InputValidation, store.search("ns", "tea", -1))

        self.run(scenario)
