"""What a cell made as it was interrupted: nobody takes it, so it is undone."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agent_magics.notebook.kernel.bridge import LoopBridge, StoppedCell
from agent_magics.threads.handles import Handle
from agent_magics.threads.loop import SessionLoop

PATIENCE_S = 5.0


class Pressed(SessionLoop):
    """A session's loop under whose first cell the person presses stop, once it is `ready`."""

    def __init__(self, ready: Callable[[Handle[Any]], object]) -> None:
        super().__init__()
        self._ready: Callable[[Handle[Any]], object] | None = ready

    def post(self, coro: Coroutine[Any, Any, Any]) -> Handle[Any]:
        handle = super().post(coro)
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(handle)
            signal.raise_signal(signal.SIGINT)
        return handle


@pytest.mark.req("dec11")
@pytest.mark.parametrize("is_late", [False, True], ids=["already made", "made though interrupted"])
def test_what_an_interrupted_cell_can_not_take_is_undone(shell: Any, is_late: bool) -> None:  # noqa: FBT001 - a case of the table
    """A turn that had started when the interrupt came must not run on unseen."""
    steps: list[str] = []
    begun = threading.Event()

    async def makes() -> str:
        begun.set()
        try:
            await asyncio.sleep(PATIENCE_S if is_late else 0)
        except asyncio.CancelledError:
            steps.append("interrupted")
        return "it"

    async def undo(result: str) -> None:
        await asyncio.sleep(0.02)
        steps.append(f"{result} undone")

    bridge = LoopBridge(shell)
    loop = Pressed(lambda handle: begun.wait(PATIENCE_S) if is_late else handle.wait())
    bridge.loop, bridge.main = loop, loop.main
    try:
        with pytest.raises(StoppedCell):
            bridge.run(makes, undo=undo)
        assert steps == ["interrupted", "it undone"][not is_late :]
    finally:
        loop.close()
        bridge.close()
