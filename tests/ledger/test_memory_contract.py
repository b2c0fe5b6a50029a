"""Both memory stores keep the public contract, and SQLite's does with and without FTS5."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_magics.core.ports import MemoryStorage
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.ledger.sqlite.memories import SqlMemoryStore, has_full_text
from agent_magics.testing import MemoryStorageContract

pytestmark = pytest.mark.req("E23", "E16")


class TestInMemoryMemoryStore(MemoryStorageContract):
    def make_store(self) -> MemoryStorage:
        return InMemoryMemoryStore()


class TestSqlMemoryStore(MemoryStorageContract):
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        if not has_full_text():
            pytest.skip("needs an SQLite with FTS5")
        self.folder = tmp_path

    def make_store(self) -> MemoryStorage:
        return SqlMemoryStore(self.folder / "ledger.db")


class TestSqlMemoryStoreWithoutFullText(MemoryStorageContract):
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self) -> MemoryStorage:
        return SqlMemoryStore(self.folder / "ledger.db", full_text=False)
