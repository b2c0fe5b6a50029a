"""Slot tabs: the slots of a session as a tree, and what can be done to each."""

from __future__ import annotations

import threading

import msgspec
import traitlets

from agent_magics.notebook.views.front_end import view_module
from agent_magics.notebook.views.session_state import SessionViewState, SlotState, session_state
from agent_magics.notebook.views.session_text import slots_html, slots_text
from agent_magics.notebook.views.shown_session import (
    TabsSession,
    checked,
)
from agent_magics.notebook.views.slots.slot_actions import (
    Action,
    ActionNotice,
    act,
    failed,
    read_action,
)
from agent_magics.notebook.views.view import LiveView
from agent_magics.session.state.followers import safely
from agent_magics.threads.loop import background_loop

CLICK_PATIENCE_S = 1.0


class SlotTabs(LiveView):
    """Show the slots of a session as a tree of branches, and let a person work on them.

    A page can switch, derive, rename, set the mode, delete and undo; what the session refuses is
    said there. `session` is an open session, `agent_magics.current()` in a notebook. `close()`
    ends the view, and so does closing the session.
    """

    _esm = view_module("slot_tabs")
    notice = traitlets.Dict().tag(sync=True)

    def __init__(self, session: TabsSession) -> None:
        self._session = checked(session)
        self._said = 0
        super().__init__(background_loop().call(lambda: session_state(session)), session)

    def refresh(self) -> None:
        """Read the slots anew."""
        self.tell(session_state(self._session))

    def hear(self, message: object) -> None:
        """Take a click; it waits a moment for the deed, so that a cell that is run next finds it
        done.
        """
        super().hear(message)
        action = read_action(message)
        if action is not None:
            done = threading.Event()
            acting = background_loop().post_unwatched(self._act(action), doing="changing a slot")
            acting.add_done_callback(done.set)
            done.wait(CLICK_PATIENCE_S)

    def as_text(self) -> str:
        """List the slots, one a line."""
        return slots_text(self._slots)

    def as_html(self) -> str:
        """Return the slots as a table."""
        return slots_html(self._slots)

    @property
    def _slots(self) -> tuple[SlotState, ...]:
        return msgspec.convert(self.state, SessionViewState).slots

    async def _act(self, action: Action) -> None:
        try:
            self._say(await act(self._session, action))
        except Exception as error:
            self._say(failed(error))
            raise  # to be logged
        finally:
            safely(self.refresh)  # the other views follow in their time

    def _say(self, notice: ActionNotice) -> None:
        self._said += 1
        self.notice = msgspec.to_builtins(msgspec.structs.replace(notice, number=self._said))
