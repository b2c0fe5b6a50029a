"""The model of a walk: everything said carries a mark (`[m7]`), and its summaries name the marks
they were given. So a request shows by itself whether anything was lost or told twice.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterable
from typing import Any

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_message, count_tools
from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import Message, System, ToolResult, User, text_of
from agent_magics.core.ports import Tool
from agent_magics.tools.schema import tool
from tests.context.strict import assert_strict

WINDOW = 4_000
MARK = re.compile(r"\[m\d+\]")
LONG = " They talked about the price of trains in May, at length." * 22  # about 290 tokens
HEADED = "\n".join(f"## {heading}\nShort." for heading in SUMMARY_HEADINGS)
CUT = re.compile(r"The conversation below has .*?(?:left out|shortened)")
BAD: dict[str, dict[str, Any]] = {
    "blank": {"text": " \n"},
    "refused": {"text": "I'm sorry, I can't help with that."},
    "bare": {"text": "They spoke of trains."},
    "failing": {"error": "server"},
    "lost": {"text": HEADED, "error": "lost"},
    "call": {"calls": [{"name": "rows", "arguments": {"n": 1}}]},
    "too long": {"text": HEADED + LONG * 12},
}


class MarkingModel:
    """Told what to do in the next turn; looks at every request that it gets.

    `overflows`: how the server refuses the next requests as too long, the last first; `is_late`:
    only once the tools have run. `batches`: the calls to make, the last first. `ending`: how the
    answer ends otherwise than well.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.numbers = itertools.count(1)
        self.whole_window = self.window = window
        self.has_refused = False
        self.steered = threading.Event()
        self.begin()

    def begin(self, prompt: str | None = None, *, summary: str = "good") -> None:
        """Begin a turn that asks `prompt`; None: something that is no turn."""
        self.summary = summary
        self.overflows: list[dict[str, Any]] = []
        self.is_late = False
        self.batches: list[list[int]] = []
        self.ending: dict[str, Any] = {}
        self.asked = [] if prompt is None else [prompt]
        self.marks = set(MARK.findall(prompt or ""))
        self.purposes: list[str] = []
        self.was_cut = False
        self.steered.set()

    def mark(self, text: str = "") -> str:
        """Give a text of this turn a mark of its own."""
        mark = f"[m{next(self.numbers)}]"
        self.marks.add(mark)
        return mark + text

    def tools(self) -> list[Tool]:
        """Give the one tool, which waits until the person has steered."""

        @tool(thread=True)
        def rows(n: int) -> str:
            """Read rows."""
            self.steered.wait(5)
            return self.mark(" a row of data" * n)

        return [rows]

    def answer(self, request: ChatRequest) -> dict[str, Any]:
        """Answer one request, for a scripted provider."""
        self.purposes.append(request.purpose)
        assert_strict(request.messages, is_request=True)
        if request.purpose == "compaction":
            return self._summed_up(request)
        self._look(request)
        if self.overflows and not (self.is_late and self.batches):
            told = self.overflows.pop()
            self.has_refused = True
            self.window = min(self.window, told.get("window", self.window))
            return {"error": {"kind": "overflow", **told}}
        if self.batches:
            calls = [{"name": "rows", "arguments": {"n": n}} for n in self.batches.pop()]
            return {"text": self.mark(), "calls": calls}
        return {"text": self.mark(LONG), **self.ending}

    def _summed_up(self, request: ChatRequest) -> dict[str, Any]:
        limit = request.params.max_tokens
        assert limit is not None
        assert sum(map(count_message, request.messages)) + limit <= self.whole_window
        assert request.tools == ()
        if self.summary != "good":
            return BAD[self.summary]
        shown = words_of(request.messages[-1])
        self.was_cut = bool(CUT.search(shown))
        return {"text": f"{HEADED}\n{' '.join(MARK.findall(shown))}"}

    def _look(self, request: ChatRequest) -> None:
        """What was asked goes whole and verbatim, and no doomed request."""
        users = [text_of(m.content) for m in request.messages if isinstance(m, User)]
        for text in self.asked:
            assert users.count(text) == 1, f"{text[:40]!r} was not sent as it was said"
        logged = [m for m in request.messages if not isinstance(m, System) and m.seq is not None]
        earlier = marks_of(logged) - self.marks
        weight = sum(map(count_message, request.messages)) + count_tools(request.tools)
        assert weight <= self.window + 10 or not earlier, f"{weight} tokens, old turns among them"


def words_of(message: Message) -> str:
    match message:
        case System(text=text) | ToolResult(content=text):
            return text
        case _:
            return text_of(message.content)


def marks_of(messages: Iterable[Message]) -> set[str]:
    return {mark for message in messages for mark in MARK.findall(words_of(message))}
