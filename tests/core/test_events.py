"""The kinds of events: which there are, and which of them a model is told."""

from __future__ import annotations

import pytest

from agent_magics.core.events import KINDS, SPOKEN

SAID = {"user_message", "assistant_message", "tool_call", "tool_result", "system_message"}
GIVEN = "imported"  # messages that were said elsewhere
OURS = {
    "metadata",
    "slot_changed",
    "rewind",
    "clear",
    "memory_set",
    "usage",
    "retry",
    "approval",
}


@pytest.mark.req("dec41")
def test_the_kinds_are_those_of_the_ledgers_rule() -> None:
    """What was said, and nothing else, reaches a model."""
    assert set(KINDS) == SAID | {GIVEN} | OURS
    assert {str(kind.__struct_config__.tag) for kind in SPOKEN} == SAID | {GIVEN}
