"""A shell's tools, called as a turn would call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_magics.core.messages import ToolOutput
from agent_magics.core.ports import ToolInput
from agent_magics.notebook.kernel.tools.access import KernelAccess
from agent_magics.notebook.kernel.tools.offered import kernel_tools


class OnMain:
    """The test's own thread is the main thread."""

    async def call(self, work: Callable[[], Any]) -> Any:
        return work()


class Kernel:
    """A shell's tools; `do` calls one as a turn would."""

    def __init__(self, shell: Any, folder: Path) -> None:
        self.shell = shell
        self.kernel_access = KernelAccess()
        self._source = kernel_tools(shell, lambda: self.kernel_access, folder)

    def do(self, name: str, /, **arguments: Any) -> ToolOutput:
        (found,) = [each for each in self._source() if each.name == name]
        given = ToolInput(call_id="c1", tool_name=name, arguments=arguments)
        loop = asyncio.new_event_loop()  # not asyncio.run: it would take SIGINT for itself
        try:
            return loop.run_until_complete(found.execute(given, OnMain()))
        finally:
            loop.close()

    def told(self, name: str, /, **arguments: Any) -> str:
        output = self.do(name, **arguments)
        assert not output.is_error, output.content
        return output.content
