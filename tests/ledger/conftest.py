"""Stores in a folder of the test, and sessions to write to."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from agent_magics.ledger.sqlite.store import SqlStore

T = TypeVar("T")


class Play(Protocol):
    def __call__(self, scenario: Callable[[SqlStore], Awaitable[T]]) -> T: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's ledger is."""
    return tmp_path / "data" / "ledger.db"


@pytest.fixture
def play(path: Path) -> Play:
    """Play a scenario on a store at `path`, opened anew each time and closed after."""

    def played(scenario: Callable[[SqlStore], Awaitable[T]]) -> T:
        async def whole() -> T:
            store = SqlStore(path, busy_timeout_s=0.3)
            try:
                return await scenario(store)
            finally:
                await store.aclose()

        return asyncio.run(whole())

    return played


@pytest.fixture
def sql(path: Path) -> Callable[..., list[Any]]:
    """Run SQL on the file behind the store's back."""

    def run(statement: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as ledger:
            return ledger.execute(statement, values).fetchall()

    return run
