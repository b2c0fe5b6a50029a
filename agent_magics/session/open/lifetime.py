"""How far a session is in its life: open, closing, closed."""

from __future__ import annotations

from agent_magics.core.errors import AgentShutdown, SessionClosed, SessionReadonly
from agent_magics.session.state.recorder import Recorder


class Lifetime:
    """Whether a session still takes work. What closes it sets the flags.

    `agent_has_ended`: its agent was shut down, and the handle says so from then on.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.is_closing = False
        self.is_closed = False
        self.agent_has_ended = False

    def check_open(self) -> None:
        """Raise `SessionClosed`, `AgentShutdown` or `SessionReadonly` where nothing may begin."""
        name = self._recorder.loaded.name
        if self.is_closing:
            raise AgentShutdown if self.agent_has_ended else SessionClosed(name)
        if self._recorder.is_readonly:
            raise SessionReadonly(name, self._recorder.readonly_because)
