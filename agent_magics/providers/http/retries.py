"""When a request is sent again, and after how long (P5).

Our own dozen lines: the wait is told to the user as an event before it begins, and the retry
libraries log or print theirs through hooks that are global to the user's process.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from agent_magics.core.errors import ProviderError
from agent_magics.core.messages import Value


class Retry(Value):
    """How often and how long, in seconds; `attempts` counts the first one.

    A server that asks for a longer wait than `longest_asked_s` isn't waited for.
    """

    attempts: int = 4
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 60.0

    def wait_s(
        self,
        attempt: int,
        error: ProviderError,
        draw: Callable[[], float] = random.random,
    ) -> float | None:
        """Give the wait before the next attempt; None: don't try again.

        A server's Retry-After is kept to; otherwise waits double and are drawn from their upper
        half, so that many kernels don't come back at once.
        """
        if not error.retryable or attempt >= self.attempts:
            return None
        asked = error.retry_after_s
        if asked is not None:
            return asked if asked <= self.longest_asked_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (attempt - 1))
        return float(longest * (0.5 + draw() / 2))
