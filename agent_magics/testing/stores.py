"""What the contract suites of stores share: one store a test, closed at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    async def aclose(self) -> None: ...


S = TypeVar("S", bound=Closable)
T = TypeVar("T")


class StoreContract(Generic[S]):
    """Plays scenarios, each on a store of its own. Override `make_store`."""

    def make_store(self) -> S:
        """Make an empty store, not yet open."""
        raise NotImplementedError

    def run(self, scenario: Callable[[S], Awaitable[T]]) -> T:
        """Play a scenario on a new store and close it."""

        async def play() -> T:
            store = self.make_store()
            try:
                return await scenario(store)
            finally:
                await store.aclose()

        return asyncio.run(play())
