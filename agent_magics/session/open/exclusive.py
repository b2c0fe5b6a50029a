"""One change of a session's slots at a time."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Changing(Protocol):
    """What changes a session; `changing` is held from its checks to its commit."""

    @property
    def changing(self) -> asyncio.Lock:
        """The lock of that session."""
        ...


S = TypeVar("S", bound=Changing)


def exclusive(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Decorate a method that checks slots and then changes them: no other comes between."""

    @functools.wraps(method)
    async def waiting(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with self.changing:
            return await method(self, *args, **kwargs)

    return waiting
