"""How far the agent may reach into a kernel: the person's settings, as one value."""

from __future__ import annotations

import msgspec

from agent_magics.core.approval import ApprovalPolicy
from agent_magics.core.values import Value
from agent_magics.notebook.kernel.sharing import ShareLevel


class KernelAccess(Value):
    """Settings of `%config AgentMagics`.

    `tells_changes`: each turn tells what is new in the kernel. `approval` by tool name, or "*".
    `folders`: where the file tools may look beside the notebook's own.
    """

    share: ShareLevel = "sample"
    has_tools: bool = True
    tells_changes: bool = True
    approval: dict[str, ApprovalPolicy] = msgspec.field(default_factory=dict)
    folders: tuple[str, ...] = ()
