"""When a request is sent again, and after how long.

Our own dozen lines: the wait is told to the user as an event before it begins, and the retry
libraries log or print theirs through hooks that are global to the user's process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from agent_magics.core.chat import ChatEvent, Retrying
from agent_magics.core.errors import ProviderError, StreamInterrupted
from agent_magics.core.values import Value
from agent_magics.providers.http.assembly import StreamAssembler

A = TypeVar("A", bound=StreamAssembler)


class RetryPolicy(Value):
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
        """Return the wait before the next attempt; None: don't try again.

        A server's Retry-After is kept to; otherwise waits double and are drawn from their upper
        half, so that many kernels don't come back at once.
        """
        if not error.retryable or attempt >= self.attempts:
            return None
        # Longer than that and a person has something better to do: they are told instead.
        asked = error.retry_after_s
        if asked is not None:
            return asked if asked <= self.longest_asked_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (attempt - 1))
        return float(longest * (0.5 + draw() / 2))


async def with_retries(
    new_assembler: Callable[[], A],
    attempt: Callable[[A], AsyncGenerator[ChatEvent, None]],
    *,
    policy: RetryPolicy,
    adjust: Callable[[ProviderError], bool],
) -> AsyncGenerator[ChatEvent, None]:
    """Stream one answer; before its first token a request that failed may be sent again.

    `adjust` changes in the request
    what the server refused and returns whether it did; such an attempt isn't counted.
    """
    number = 1
    while True:
        assembler = new_assembler()
        try:
            async with aclosing(attempt(assembler)) as events:
                async for event in events:
                    yield event
        except ProviderError as error:
            # Once something was said, sending again would say it twice.
            if assembler.has_begun:
                interruption = _interruption(error)
                interruption.usage = assembler.usage
                raise interruption from error
            if adjust(error):
                continue
            wait_s = policy.wait_s(number, error)
            if wait_s is None:
                error.usage = error.usage or assembler.usage
                raise
            reason = error.message
        else:
            return
        yield Retrying(attempt=number, reason=reason, wait_s=wait_s, usage=assembler.usage)
        await asyncio.sleep(wait_s)
        number += 1


def _interruption(error: ProviderError) -> ProviderError:
    """A connection that ends in mid-answer is an interruption; what had come stays."""
    if error.kind in {"connection", "timeout"}:
        return StreamInterrupted(error.message)
    return error
