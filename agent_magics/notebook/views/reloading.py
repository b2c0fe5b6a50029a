"""Lets a page that is loaded again while a cell of ours runs find its kernel and its widgets.

Such a page asks for the kernel's facts and for the state of all widgets, on the shell channel and
outside any subshell, which it doesn't know of yet. A busy main thread would answer when the cell
has ended. While a magic waits there, we answer on ipykernel's shell channel thread: nothing that
the cell does is touched by either. All of it is private to ipykernel 7: looked for, covered by a
test, and left as it was where something is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_magics.notebook.views.front_end import end_no_cell
from agent_magics.threads.loop import background_loop

CONTROL = "jupyter.widget.control"
_NEEDED = (
    "shell_stream",
    "shell_channel_thread",
    "shell_channel_thread_main",
    "comm_manager",
    "kernel_info",
    "iopub_socket",
    "_shell_parent",
    "_topic",
)
_log = logging.getLogger("agent_magics.notebook")


class NewPages:
    """Answers pages that come while a magic waits; `close` leaves them to the kernel again."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._is_known = all(getattr(kernel, name, None) is not None for name in _NEEDED)
        self._controls: set[str] = set()
        if self._is_known:
            self._usual: Callable[[Any], Awaitable[None]] = kernel.shell_channel_thread_main
            self._receive_by(self._received)

    def stay_busy(self) -> None:
        """Tell pages that the kernel is busy, where a cell waits.

        What they show is the last state that was told, of whichever subshell it was; each message
        that is answered says that the kernel is idle.
        """
        if self._is_known and background_loop().main.is_waited_on:
            self._tell("busy")

    def close(self) -> None:
        """Let the kernel receive as it did."""
        if self._is_known:
            self._receive_by(self._usual)

    def _receive_by(self, receive: Callable[[Any], Awaitable[None]]) -> None:
        """Change who receives, on the thread that does."""
        stream = self._kernel.shell_stream
        self._kernel.shell_channel_thread.io_loop.add_callback(
            lambda: stream.on_recv(receive, copy=False)
        )

    async def _received(self, frames: Any) -> None:
        try:
            # Only while a magic waits: then the main thread answers nothing, and a reloaded page
            # would wait for the end of the cell.
            is_answered = background_loop().main.is_waited_on and self._answered(frames)
        except Exception:  # noqa: BLE001 - it is the kernel's to say what is wrong with a message
            _log.debug("a message was left to the kernel", exc_info=True)
            is_answered = False
        if not is_answered:
            await self._usual(frames)

    def _answered(self, frames: Any) -> bool:
        kernel, session = self._kernel, self._kernel.session
        idents, parts = session.feed_identities(frames, copy=False)
        # Only looked at: what is read with its content counts as received, and never again.
        request = session.deserialize(parts, content=False, copy=False)
        # A subshell answers for itself.
        if request["header"].get("subshell_id") is not None:
            return False
        content = request["content"] = session.unpack(request["content"])
        match request["header"]["msg_type"]:
            case "kernel_info_request":
                facts = {"status": "ok", **kernel.kernel_info}
                with self._busy(request):
                    session.send(kernel.shell_stream, "kernel_info_reply", facts, request, idents)
            case "comm_open" if content.get("target_name") == CONTROL:
                self._controls.add(content["comm_id"])
                with self._busy(request):
                    kernel.comm_manager.comm_open(None, None, request)
                end_no_cell(kernel.comm_manager.get_comm(content["comm_id"]))
            case "comm_msg" if content.get("comm_id") in self._controls:
                with self._busy(request):
                    kernel.comm_manager.comm_msg(None, None, request)
            case _:
                return False
        return True

    @contextmanager
    def _busy(self, request: Any) -> Iterator[None]:
        """Tell the page when its request is done; the cell goes on, and the kernel is busy.

        What is sent meanwhile answers the request: ipykernel 7.0 finds none on this thread.
        """
        answered = self._kernel._shell_parent  # noqa: SLF001 - see above
        self._tell("busy", request)
        token = answered.set(request)
        try:
            yield
        finally:
            answered.reset(token)
            # A page takes its request as done at this; but what it shows then is an idle kernel, so
            # the truth follows.
            self._tell("idle", request)
            self._tell("busy")

    def _tell(self, state: str, request: Any = None) -> None:
        """Publish how the kernel is, as it does; it would look for a request of this thread."""
        kernel = self._kernel
        ident = kernel._topic("status")  # noqa: SLF001 - see above
        content = {"execution_state": state}
        kernel.session.send(kernel.iopub_socket, "status", content, parent=request, ident=ident)
