"""Views kept up to date with their session: told of news, not too often, on the session's loop.

Each session has one of these: however many views follow it, together they take their share of the
loop and no more, and they hear when it is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

PUSH_INTERVAL_S = 0.2
SHARE_OF_LOOP = 20

_log = logging.getLogger("agent_magics.session")


class Followed(Protocol):
    """A view: `refresh` reads the session anew; `grows` tells that it changes while turns stream.

    `end` is called once the session is closed. Both are called on the session's loop.
    """

    @property
    def grows(self) -> bool: ...
    def refresh(self) -> None: ...
    def end(self) -> None: ...


def safely(deed: Callable[[], object]) -> None:
    """Do something of a view, which is foreign code: what it raises harms nobody else."""
    try:
        deed()
    except Exception as error:  # noqa: BLE001 - see above
        _log.warning("a view failed: %s", type(error).__name__)


class Followers:
    """Refreshes the views of one session after each change, and while turns stream.

    `running` holds the turns that do. `changed` and `end` are for the session's loop.
    """

    def __init__(self, running: Mapping[str, object]) -> None:
        self._running = running
        self._views: dict[object, Followed] = {}
        self._is_stale = False
        self._is_over = False
        self._pushing: asyncio.Task[None] | None = None

    def follow(self, view: Followed) -> Callable[[], None]:
        """Keep a view up to date from now on; return how to stop that. Both from any thread."""
        key = object()
        self._views[key] = view
        # Made on another thread while the session closed; nobody else would end it.
        if self._is_over:
            self._end(key)
        return lambda: _drop(self._views, key)

    def changed(self) -> None:
        """Hear of news; one task pushes them, not too often."""
        self._is_stale = True
        if self._views and (self._pushing is None or self._pushing.done()):
            self._pushing = asyncio.get_running_loop().create_task(self._push())

    def refresh(self) -> None:
        """Bring every view up to date now; one that fails keeps none of the others from it."""
        for view in tuple(self._views.values()):
            safely(view.refresh)

    def end(self) -> None:
        """End the views: the session is closed, and nothing follows it any more."""
        self._is_over = True
        for key in tuple(self._views):
            self._end(key)

    def _end(self, key: object) -> None:
        view = self._views.pop(key, None)
        if view is not None:
            safely(view.end)

    async def _push(self) -> None:
        loop = asyncio.get_running_loop()
        is_streaming = False
        while self._views and (self._is_stale or is_streaming):
            self._is_stale = False
            # Streaming text is no change of the ledger, so views that show it are asked for it in
            # the same rhythm.
            is_streaming = bool(self._running) and any(
                view.grows for view in tuple(self._views.values())
            )
            began = loop.time()
            self.refresh()
            took_s = loop.time() - began
            # Answers come first: views of a large session may take long, and then come less often.
            await asyncio.sleep(max(PUSH_INTERVAL_S, took_s * SHARE_OF_LOOP))


def _drop(views: dict[object, Followed], key: object) -> None:
    views.pop(key, None)
