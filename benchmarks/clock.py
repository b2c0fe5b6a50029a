"""How long something takes, in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable


def timed(work: Callable[[], object]) -> float:
    """Do something once; give its time in milliseconds."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1_000


async def timed_waiting(work: Callable[[], Awaitable[object]]) -> float:
    """Await something once; give its time in milliseconds."""
    begin = time.perf_counter()
    await work()
    return (time.perf_counter() - begin) * 1_000
