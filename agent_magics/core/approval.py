"""Approval: a person says whether a tool that changes something may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from agent_magics.core.values import Value

ApprovalPolicy = Literal["ask", "auto", "never"]
ApprovalWord = Literal["yes", "no", "always", "edited"]
POLICIES: tuple[str, ...] = get_args(ApprovalPolicy)
EVERY_TOOL = "*"
REFUSED = "[Tool not run: the person refused it]"


class ApprovalRequest(Value):
    """What is asked. `preview` is exactly what will run, as the person should read it."""

    session_id: str
    slot_id: str
    turn_id: str
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    preview: str


class ApprovalAnswer(Value):
    """What was answered: "always" is this tool, this session, until the process ends.

    `arguments` where the person edited them. `reason` of a "no", told to the model.
    """

    word: ApprovalWord
    arguments: dict[str, Any] | None = None
    reason: str = ""


def policy_for(tool_name: str, *levels: Mapping[str, ApprovalPolicy]) -> ApprovalPolicy:
    """Choose the policy of a mutating tool: the first level that names it, or every tool ("*")."""
    for level in levels:
        for name in (tool_name, EVERY_TOOL):
            if name in level:
                return level[name]
    return "ask"
