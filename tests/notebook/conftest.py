"""A real shell for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

# IPython's shell has no types; strict mypy wants them of every call.
Shells: Any = InteractiveShell


@pytest.fixture
def shell() -> Iterator[Any]:
    """A fresh `InteractiveShell`, the one that `get_ipython()` gives."""
    Shells.clear_instance()
    yield Shells.instance()
    Shells.clear_instance()
