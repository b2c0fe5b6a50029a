"""Facts in a text, and a scripted summariser that carries them on.

Facts are what a summary has to keep word for word: identifiers, addresses, names, dates, numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agent_magics.context.prompt import SUMMARY_HEADINGS
from agent_magics.context.tokens import count_text
from agent_magics.core.chat import ChatRequest
from agent_magics.core.messages import Assistant, Message, System, ToolResult, User, text_of

_FACT = re.compile(
    r"""
    \b(?:credit_card|gift_card|certificate)_\d+\b            # a means of payment
    | \b[a-z]+_[a-z]+_\d{4}\b                                # a user
    | \b[\w.]+@[\w.]+\w\b                                    # an address
    | (?<![\w/])(?:/[\w.-]+){2,}                             # a path
    | \b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z\d]{6}\b                 # a reservation, a flight
    | \b20\d\d-\d\d-\d\d(?:T\d\d:\d\d:\d\d)?\b               # a day, a moment
    | "first_name":[ ]"[^"]+",[ ]"last_name":[ ]"[^"]+"      # a name in a profile
    | (?<![\w.,-])\d[\d,]+\d(?:\.\d+)?(?![\w-])             # a number of three digits or more
    """,
    re.VERBOSE,
)
_OUR_MARKS = re.compile(r"\[… [^…]+ …\]|\(status: [^)]*\)")
_PREVIOUS = re.compile(r"<previous_summary>\n(.*)\n</previous_summary>", re.DOTALL)
_CONVERSATION = re.compile(r"<conversation>\n(.*)\n</conversation>", re.DOTALL)


def facts_in(text: str) -> list[str]:
    """List the facts of a text in the order of their last mention; marks of ours have none."""
    found: dict[str, None] = {}
    for match in _FACT.finditer(_OUR_MARKS.sub(" ", text)):
        fact = match.group()
        found.pop(fact, None)
        found[fact] = None
    return list(found)


def words_of(message: Message) -> str:
    """Give what a message says, arguments of calls included."""
    match message:
        case System(text=text) | ToolResult(content=text):
            return text
        case User(content=content):
            return text_of(content)
        case Assistant(content=content, calls=calls):
            arguments = [msgspec.json.encode(call.arguments or {}).decode() for call in calls]
            return "\n".join([text_of(content), *arguments])


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One summary: what was asked, the facts that the request had, and what was written."""

    request: ChatRequest
    previous: frozenset[str]
    given: frozenset[str]
    text: str


@dataclass
class Summariser:
    """Writes every fact that it is given under the nine headings, the latest last.

    Over the request's `max_tokens` the oldest are dropped, unless `is_unlimited`. It loses nothing
    else, so what else is lost isn't its fault. `summaries` are those it wrote.
    """

    is_unlimited: bool = False
    summaries: list[Summary] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        """Answer a compaction's request, as a step of the scripted model."""
        asked = words_of(request.messages[-1])
        previous, given = _facts_between(_PREVIOUS, asked), _facts_between(_CONVERSATION, asked)
        facts = [*(fact for fact in previous if fact not in set(given)), *given]
        limit = None if self.is_unlimited else request.params.max_tokens
        text = _written(facts if limit is None else _newest(facts, limit))
        self.summaries.append(
            Summary(
                request=request,
                previous=frozenset(previous),
                given=frozenset(given),
                text=text,
            )
        )
        return {"text": text, "chunks": 1}


def _facts_between(tags: re.Pattern[str], asked: str) -> list[str]:
    found = tags.search(asked)
    return facts_in(found.group(1)) if found else []


def _newest(facts: Sequence[str], limit_tokens: int) -> Sequence[str]:
    """Leave out the oldest facts until the summary fits."""
    low, high = 0, len(facts)
    while low < high:
        middle = (low + high) // 2
        if count_text(_written(facts[middle:])) <= limit_tokens:
            high = middle
        else:
            low = middle + 1
    return facts[low:]


def _written(facts: Iterable[str]) -> str:
    said = dict.fromkeys(SUMMARY_HEADINGS, "none")
    said["Exact Facts"] = " · ".join(facts) or "none"
    return "\n".join(f"## {heading}\n{text}" for heading, text in said.items())
