"""What views need of the session that they follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agent_magics.session.following import Followed


class Session(Protocol):
    """What following needs of a session: it refreshes the view until that is stopped."""

    def follow(self, view: Followed) -> Callable[[], None]: ...
