"""Tutorials run on a ledger of their own and, where they name no model, on the embedded one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Set what the kernels of nbval inherit; the folder goes when pytest ends."""
    folder = tempfile.TemporaryDirectory(prefix="agent-magics-notebooks-")
    config.add_cleanup(folder.cleanup)
    os.environ["AGENT_MAGICS_STORE"] = str(Path(folder.name, "ledger.db"))
    os.environ["AGENT_MAGICS_MODEL"] = "embedded"
    os.environ["IPYTHONDIR"] = str(Path(folder.name, "ipython"))
