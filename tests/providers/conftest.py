"""What the embedded model's tests need: its weights, pulled once into the user's data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_magics.providers.embedded.weights import pull


@pytest.fixture(scope="session")
def weights() -> Path:
    """The embedded model's file."""
    return pull()
