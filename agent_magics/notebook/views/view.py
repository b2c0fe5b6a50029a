"""What every live view is: a widget that follows its session, and outputs that read without a page.

An output holds static HTML and plain text, never the widget MIME type. JupyterLab prefers that
type to all others, keeps it in the file, and then says "model not found" in the place of our HTML
in every notebook that is opened again; widget state in the notebook's metadata would help, but only
the front end can put it there, and by default it doesn't. So the file holds what reads well
everywhere, and `live.js` draws the live view into that same output while the kernel answers. Front
ends that show HTML out of its reach (VS Code's shadow roots, Colab's frames) keep the static view.
Inside a layout of ipywidgets a view is a widget like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from agent_magics.notebook.text.html_table import still
from agent_magics.notebook.views.delta import state_delta
from agent_magics.notebook.views.front_end import (
    answer_while_busy,
    close_whole,
    fill_its_place,
    new_anchor,
)
from agent_magics.notebook.views.shown_session import Followable
from agent_magics.threads.loop import background_loop

ENDED = "The session is closed; this is how it was."


class LiveWidget(anywidget.AnyWidget):
    """A widget that follows a session. `anchor` is the class of the elements it is drawn in.

    Made on the main thread. `refresh` reads the session anew; `grows` tells that what is shown
    changes while turns stream. When the session is closed, so is the widget: every page shows the
    static HTML again.
    """

    anchor = traitlets.Unicode().tag(sync=True)
    grows = False
    has_ended = False
    _leave: Callable[[], None] | None = None

    def __init__(self, session: Followable, **traits: Any) -> None:
        super().__init__(anchor=new_anchor(), **traits)
        fill_its_place(self)
        answer_while_busy(self)
        self.on_msg(lambda _view, message, _buffers: self.hear(message))
        self._leave = session.follow(self)

    def hear(self, message: object) -> None:
        """Take what a page says; may run on any thread, and what is printed here is lost."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Read the session anew; on its loop, where one reading can't overtake another."""
        raise NotImplementedError

    def renew(self) -> None:
        """Refresh on the session's loop and wait for that; from any thread."""
        if not self.has_ended:
            background_loop().call(self.refresh)

    def end(self) -> None:
        """Hear that the session is closed."""
        self.has_ended = True
        self.close()

    def close(self) -> None:
        """Follow the session no longer, and leave every page to the static HTML."""
        if self._leave is not None:
            self._leave()
        close_whole(self, super().close)


class Output:
    """What can stand in a cell's output: plain text, and static HTML that may be drawn over.

    `has_ended` tells that the session is closed.
    """

    has_ended = False

    @property
    def classes(self) -> str:
        """The classes by which a live view finds the output."""
        raise NotImplementedError

    def renew(self) -> None:
        """Bring it up to date before it is shown."""

    def as_text(self) -> str:
        """Return what is shown as plain text."""
        raise NotImplementedError

    def as_html(self) -> str:
        """Return what is shown as static HTML."""
        raise NotImplementedError

    def output_text(self) -> str:
        """Return the text that stands in a file."""
        return f"{self.as_text()}\n{ENDED}" if self.has_ended else self.as_text()

    def output_html(self) -> str:
        """Return the HTML that stands in a file, and that the live view is drawn in."""
        html = f"{self.as_html()}<p>{ENDED}</p>" if self.has_ended else self.as_html()
        return f'<div class="{self.classes}">{still(html)}</div>'

    def __repr__(self) -> str:
        self.renew()
        return self.output_text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        self.renew()
        return {"text/plain": self.output_text(), "text/html": self.output_html()}, {}


class LiveView(Output, LiveWidget):
    """A view that holds a state.

    A page gets `state` whole with the model, and then numbered deltas by messages; where it missed
    one it asks ("whole").
    """

    def __init__(self, state: dict[str, Any], session: Followable) -> None:
        self._state = state
        self._number = 0
        self._telling = threading.Lock()
        super().__init__(session)

    @property
    def classes(self) -> str:
        return str(self.anchor)

    def renew(self) -> None:
        """Refresh on the session's loop and wait for that; from any thread."""
        LiveWidget.renew(self)

    @property
    def state(self) -> dict[str, Any]:
        """What the view draws, as JSON values."""
        return self._state

    def tell(self, state: dict[str, Any]) -> None:
        """Bring the view up to date; pages are sent what changed. From any thread."""
        with self._telling:
            # Deltas, as a whole state of a large session is some 5 KB at each event and a delta
            # about 110 bytes.
            delta = state_delta(self._state, state)
            if delta:
                self._state = state
                self._number += 1
                self.send({"kind": "delta", "number": self._number, "delta": delta})

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as ipywidgets has it
        """Return the traits, and where all are asked for the state along with them."""
        made: dict[str, Any] = super().get_state(key, drop_defaults)
        # The state is no trait: as one it would be sent whole at each change, and saved in the
        # notebook's file.
        return made if key is not None else {**made, "state": self._state, "number": self._number}

    def hear(self, message: object) -> None:
        """Take what a page says; may run on any thread, and what is printed here is lost."""
        match message:
            case {"kind": "whole", "number": int(number)} if number != self._number:
                with self._telling:
                    self.send_state()
            case _:
                pass
