"""What pages are sent of a state that changed; JavaScript applies the same cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_magics.notebook.views.delta import state_delta

CASES = json.loads((Path(__file__).parents[2] / "data" / "state_deltas.json").read_text("utf-8"))


@pytest.mark.req("W1", "W2")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_delta_holds_what_changed(case: dict[str, Any]) -> None:
    """Only the values that differ, and the order of slots only where it does."""
    assert state_delta(case["before"], case["after"]) == case["delta"]
