"""What every live view is: a widget that holds a state, and outputs that read without a page.

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
from typing import Any

import anywidget
import traitlets

from agent_magics.notebook.views.delta import state_delta
from agent_magics.notebook.views.follower import Follower
from agent_magics.notebook.views.front_end import answer_while_busy, fill_its_place, new_anchor


class View(anywidget.AnyWidget):
    """A view of the session.

    `anchor` is the class of the elements that the live view is drawn in. A page gets `state` whole
    with the model, and then numbered deltas by messages; where it missed one it asks ("whole").
    `refresh` reads the session anew; `grows` tells that what it shows changes while turns stream.
    """

    anchor = traitlets.Unicode().tag(sync=True)
    grows = False
    _follower: Follower | None = None

    def __init__(self, state: dict[str, Any], follower: Follower) -> None:
        self._state = state
        self._number = 0
        self._telling = threading.Lock()
        super().__init__(anchor=new_anchor())
        fill_its_place(self)
        answer_while_busy(self)
        self.on_msg(lambda _view, message, _buffers: self.hear(message))
        self._follower = follower
        follower.follow(self)

    def close(self) -> None:
        """Follow the session no longer, and leave every page to the static HTML."""
        if self._follower is not None:
            self._follower.leave(self)
        super().close()

    @property
    def state(self) -> dict[str, Any]:
        """What the view draws, as JSON values."""
        return self._state

    def tell(self, state: dict[str, Any]) -> None:
        """Bring the view up to date; pages are sent what changed. From any thread."""
        with self._telling:
            delta = state_delta(self._state, state)
            if delta:
                self._state = state
                self._number += 1
                self.send({"kind": "delta", "number": self._number, "delta": delta})

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as ipywidgets has it
        """Give the traits, and where all are asked for the state along with them."""
        made: dict[str, Any] = super().get_state(key, drop_defaults)
        return made if key is not None else {**made, "state": self._state, "number": self._number}

    def hear(self, message: object) -> None:
        """Take what a page says; may run on any thread, and what is printed here is lost."""
        match message:
            case {"kind": "whole", "number": int(number)} if number != self._number:
                with self._telling:
                    self.send_state()
            case _:
                pass

    def refresh(self) -> None:
        """Read the session anew; on its loop, or before the view is shown."""
        raise NotImplementedError

    def as_text(self) -> str:
        """Give the view as plain text."""
        raise NotImplementedError

    def as_html(self) -> str:
        """Give the view as static HTML."""
        raise NotImplementedError

    def output_html(self) -> str:
        """Give the HTML that stands in a file, and that the live view is drawn in."""
        return f'<div class="{self.anchor}"><div>{self.as_html()}</div></div>'

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"text/plain": self.as_text(), "text/html": self.output_html()}, {}
