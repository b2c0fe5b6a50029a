"""Where a view's texts are compared: on the thread that asks, or in one that holds up nobody.

Views are refreshed on the session's loop, again and again while a turn streams. A comparison may
take a tenth of a second a column; there, turns, questions and stops would wait for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

from agent_magics.notebook.views.comparison.comparison import Compare, ComparisonState
from agent_magics.notebook.views.comparison.differences import Compared, compared
from agent_magics.threads.loop import background_loop

Make = Callable[[Compare], ComparisonState]
Texts = tuple[str, str]


class Comparing:
    """Makes the states of one view, by functions that make one with what compares two texts.

    `tell(state)` is called on the thread that made it, one at a time, never with an older state
    after a newer one.
    """

    def __init__(self, tell: Callable[[ComparisonState], None]) -> None:
        self._tell = tell
        self._known: Mapping[Texts, Compared] = {}  # what the newest state was made of
        self._asked = 0
        self._told = 0
        self._waiting: tuple[int, Make] | None = None
        self._is_busy = False
        self._lock = threading.Lock()  # of what waits
        self._telling = threading.Lock()

    def first(self, make: Make) -> ComparisonState:
        """Compare here; nobody is told yet."""
        return self._made(make)

    def now(self, make: Make) -> None:
        """Compare here, and tell."""
        number = self._next()
        self._say(number, self._made(make))

    def soon(self, make: Make) -> None:
        """Tell at once what needs no comparing; else compare in a thread, and tell then.

        Of what is asked for while the thread is busy it makes the newest.
        """
        number, known = self._next(), self._known
        try:
            # Most changes of a session change no answer; those are told without a thread.
            state = make(lambda base, answer: known[base, answer])
        except KeyError:
            self._hand_over(number, make)
        else:
            self._say(number, state)

    def close(self) -> None:
        """Tell nothing any more."""
        with self._telling:
            self._tell = lambda _state: None

    def _next(self) -> int:
        with self._lock:
            self._asked += 1
            return self._asked

    def _hand_over(self, number: int, make: Make) -> None:
        with self._lock:
            self._waiting = number, make
            if self._is_busy:
                return
            self._is_busy = True
        work = asyncio.to_thread(self._work)
        background_loop().post_unwatched(work, doing="comparing answers")

    def _work(self) -> None:
        while (task := self._taken()) is not None:
            number, make = task
            began = time.monotonic()
            try:
                self._say(number, self._made(make))
            except BaseException:
                self._end()  # it is logged; the next change is compared again
                raise
            time.sleep(time.monotonic() - began)  # half of the time is everybody else's

    def _taken(self) -> tuple[int, Make] | None:
        with self._lock:
            task, self._waiting = self._waiting, None
            self._is_busy = task is not None
            return task

    def _end(self) -> None:
        with self._lock:
            self._is_busy = False

    def _made(self, make: Make) -> ComparisonState:
        known: dict[Texts, Compared] = {}

        def compare(base: str, answer: str) -> Compared:
            known[base, answer] = compared(base, answer)
            return known[base, answer]

        state = make(compare)
        self._known = known
        return state

    def _say(self, number: int, state: ComparisonState) -> None:
        with self._telling:
            # A quick one may overtake the one that is still being compared.
            if number > self._told:
                self._told = number
                self._tell(state)
