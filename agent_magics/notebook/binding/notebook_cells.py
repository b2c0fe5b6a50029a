"""What the cells of a notebook have between them while its session lives."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from agent_magics.notebook.binding.notebook_settings import NotebookSettings
from agent_magics.notebook.binding.recording import Recording
from agent_magics.notebook.binding.rerun_guard import RerunGuard
from agent_magics.notebook.kernel.approval import StdinApprover
from agent_magics.notebook.kernel.bridge import LoopBridge
from agent_magics.notebook.kernel.failures import Failures
from agent_magics.notebook.views.turn.live_turns import LiveTurns


class NotebookCells:
    """Who is asked in a cell, where its turn is drawn, what failed, what may take a turn back.

    `failures`: what of the notebook's own cells failed last. `seen_models`: the specs that were
    listed last, `seen_memories`: the names of what was shown last.
    """

    def __init__(
        self, shell: InteractiveShell, bridge: LoopBridge, settings: NotebookSettings
    ) -> None:
        self.approver = StdinApprover(shell, bridge.main)
        self.live_turns = LiveTurns(self.approver, bridge.main)
        self.failures = Failures()
        self.recording = Recording(settings.read)
        self.rerun_guard = RerunGuard(lambda: str(settings.value_of("rerun")))
        self.seen_models: tuple[str, ...] = ()
        self.seen_memories: tuple[str, ...] = ()
