"""On which thread a view's texts are compared, and what its pages are told in the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from agent_magics.notebook.views.comparison.comparing import Comparing, Make
from agent_magics.notebook.views.comparison.comparison import VERSION, Compare, ComparisonState

pytestmark = pytest.mark.req("W5")

PATIENCE_S = 10.0
WORKER = "agent-magics-worker"  # the session's loop is "agent-magics"


class Told:
    """What was told, and on which threads."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.threads: list[str] = []
        self._news = threading.Condition()

    def __call__(self, state: ComparisonState) -> None:
        with self._news:
            self.prompts.append(state.prompt)
            self.threads.append(threading.current_thread().name)
            self._news.notify_all()

    def wait_for(self, prompt: str) -> None:
        with self._news:
            assert self._news.wait_for(lambda: prompt in self.prompts, PATIENCE_S)


def making(prompt: str, *texts: str, before: Callable[[], object] = lambda: None) -> Make:
    """A state of a prompt, made of a first text and others that are compared with it."""

    def make(compare: Compare) -> ComparisonState:
        for text in texts[1:]:
            compare(texts[0], text)
        before()
        return ComparisonState(
            version=VERSION, prompts=(), chosen="", prompt=prompt, base="", columns=()
        )

    return make


def test_new_texts_are_compared_in_a_thread_of_its_own() -> None:
    """Whoever asks goes on at once; what is known is told at once."""
    told, tool_approval = Told(), threading.Event()
    comparing = Comparing(told)
    comparing.soon(making("new", "a", "b", before=lambda: tool_approval.wait(PATIENCE_S)))
    assert told.prompts == []
    tool_approval.set()
    told.wait_for("new")
    comparing.soon(making("known", "a", "b"))
    assert told.prompts == ["new", "known"]
    assert told.threads == [WORKER, threading.current_thread().name]


def test_what_is_asked_for_meanwhile_is_the_newest_alone() -> None:
    """A turn that streams would leave a long row of what nobody wants to see any more."""
    told, tool_approval = Told(), threading.Event()
    comparing = Comparing(told)
    comparing.soon(making("1", "a", "b", before=lambda: tool_approval.wait(PATIENCE_S)))
    for number in "234":
        comparing.soon(making(number, "a", f"b{number}"))
    tool_approval.set()
    told.wait_for("4")
    assert told.prompts in (["1", "4"], ["4"])  # by how soon the thread took the first


def test_an_older_state_is_never_told_after_a_newer_one() -> None:
    """It was made for longer."""
    told, tool_approval, made = Told(), threading.Event(), threading.Event()
    comparing = Comparing(told)

    def slow() -> None:
        made.set()
        tool_approval.wait(PATIENCE_S)

    comparing.soon(making("old", "a", "b", before=slow))
    assert made.wait(PATIENCE_S)
    comparing.now(making("new", "a", "c"))
    tool_approval.set()
    comparing.soon(making("last", "a", "d"))
    told.wait_for("last")
    assert told.prompts == ["new", "last"]


@pytest.mark.req("dec66")
def test_a_comparison_that_failed_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, without a word of it; the next change is compared again."""
    told = Told()
    comparing = Comparing(told)

    def fail() -> None:
        raise ValueError("no")

    comparing.soon(making("bad", "a", "b", before=fail))
    deadline = time.monotonic() + PATIENCE_S
    while not caplog.messages and time.monotonic() < deadline:
        time.sleep(0.01)
    place = "comparing answers failed: ValueError at test_comparing.py:"
    assert caplog.messages[0].startswith(place)
    comparing.soon(making("good", "a", "c"))
    told.wait_for("good")


def test_a_closed_view_is_told_nothing() -> None:
    """Its pages were left to the static HTML."""
    told = Told()
    comparing = Comparing(told)
    comparing.close()
    comparing.now(making("late", "a", "b"))
    assert told.prompts == []
