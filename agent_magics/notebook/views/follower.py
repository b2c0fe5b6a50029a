"""What views need of the session that they follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from agent_magics.core.errors import InputValidation
from agent_magics.session.state.followers import Followed

S = TypeVar("S")


def checked(session: S) -> S:
    """Return a session; raise `InputValidation` on what is none."""
    if not callable(getattr(session, "follow", None)):
        raise InputValidation(
            f"{session!r:.60} is no session; agent_magics.current() gives the notebook's."
        )
    return session


class Session(Protocol):
    """What following needs of a session: it refreshes the view until that is stopped."""

    def follow(self, view: Followed) -> Callable[[], None]: ...
