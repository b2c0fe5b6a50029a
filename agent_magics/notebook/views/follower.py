"""Keeps views up to date with their session: told of news, not too often, on the session's loop.

The kernel's own thread may be busy with a cell; its sockets are fed by a thread of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

PUSH_INTERVAL_S = 0.2
SHARE_OF_LOOP = 20


class Session(Protocol):
    """What following needs of a session."""

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]: ...
    def running(self) -> Mapping[str, object]: ...


class Followed(Protocol):
    """A view: `refresh` reads the session anew, on its loop; `grows` while turns stream."""

    @property
    def grows(self) -> bool: ...
    def refresh(self) -> None: ...


class Follower:
    """Refreshes the views of one session after each change, and while turns stream."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._views: list[Followed] = []
        self._is_stale = False
        self._pushing: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def follow(self, view: Followed) -> None:
        """Keep a view up to date from now on; any thread."""
        self._views = [*self._views, view]
        if self._unsubscribe is None:
            self._unsubscribe = self._session.subscribe(self._changed)

    def leave(self, view: Followed) -> None:
        """Keep it up to date no longer; what is drawn stays as it is."""
        self._views = [each for each in self._views if each is not view]
        if not self._views:
            self.close()

    def refresh(self) -> None:
        """Bring every view up to date now."""
        for view in self._views:
            view.refresh()

    def close(self) -> None:
        """Stop following the session; what is drawn stays as it is."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _changed(self) -> None:
        """Hear of news, on the session's loop; one task pushes them, not too often."""
        self._is_stale = True
        if self._views and (self._pushing is None or self._pushing.done()):
            self._pushing = asyncio.get_running_loop().create_task(self._push())

    async def _push(self) -> None:
        loop = asyncio.get_running_loop()
        is_streaming = False
        while self._is_stale or is_streaming:
            self._is_stale = False
            is_streaming = any(view.grows for view in self._views) and bool(self._session.running())
            began = loop.time()
            self.refresh()
            took_s = loop.time() - began
            await asyncio.sleep(max(PUSH_INTERVAL_S, took_s * SHARE_OF_LOOP))
