"""A loop of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_magics.threads.loop import SessionLoop


@pytest.fixture
def loop() -> Iterator[SessionLoop]:
    """A loop that ends with the test."""
    made = SessionLoop()
    yield made
    made.close()
