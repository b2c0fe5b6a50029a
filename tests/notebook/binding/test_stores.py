"""Another kind of store is one entry of `ledger.backends`: a whole notebook runs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_magics.core.catalog import SessionCatalog, Stores
from agent_magics.ledger import backends
from agent_magics.ledger.in_memory.memories import InMemoryMemoryStore
from agent_magics.ledger.in_memory.store import InMemoryStore
from tests.notebook.conftest import Notebook


class MemoryBackend:
    """Stores in memory, by their location; they last as long as the backend."""

    def __init__(self) -> None:
        self._stores: dict[str, Stores] = {}

    def check(self, _location: Path | str) -> None:
        return

    def stores(self, location: Path | str) -> Stores:
        made = Stores(sessions=InMemoryStore(), memories=InMemoryMemoryStore())
        return self._stores.setdefault(str(location), made)

    def catalog(self, location: Path | str) -> SessionCatalog:
        sessions = self.stores(location).sessions
        assert isinstance(sessions, InMemoryStore)
        return sessions

    def archive(self, location: Path | str, *, is_optional: bool) -> Any:
        raise NotImplementedError


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """The location of a store that isn't SQLite's."""
    monkeypatch.setitem(backends._BACKENDS, "memory", MemoryBackend())
    location = "memory://team"
    monkeypatch.setenv("AGENT_MAGICS_STORE", location)
    return location


@pytest.mark.req("E23")
@pytest.mark.usefixtures("elsewhere")
def test_a_notebook_runs_on_another_store(notebook: Notebook) -> None:
    """Asked, branched, found again after a reload, listed: SQLite is never asked."""
    notebook.run('%config AgentMagics.session = "churn"')
    notebook.run("%agent hello")
    notebook.run("%slot derive option-a")
    notebook.run("%memory add likes tea")
    notebook.run("%unload_ext agent_magics")
    said = notebook.run("%load_ext agent_magics")
    notebook.run('%config AgentMagics.session = "churn"')
    assert notebook.view("option-a")[:2] == ["hello", "answer 1"]
    assert "churn" in notebook.run("%sessions")
    assert "likes tea" in notebook.run("%memory")
    assert 'session "churn" resumed: 2 slots, 1 turn' in said
