"""Both stores keep the public contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_magics.core.ports import SessionStorage
from agent_magics.ledger.in_memory.store import InMemoryStore
from agent_magics.ledger.sqlite.store import SqlStore
from agent_magics.testing import SessionStorageContract

pytestmark = pytest.mark.req("E23", "S14", "C13")


class TestSqlStore(SessionStorageContract):
    @pytest.fixture(autouse=True)
    def _in_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self) -> SessionStorage:
        return SqlStore(self.folder / "ledger.db")


class TestInMemoryStore(SessionStorageContract):
    def make_store(self) -> SessionStorage:
        return InMemoryStore()
