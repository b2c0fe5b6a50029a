"""What is written in a benchmark: turns of the size that real conversations have."""

from __future__ import annotations

from collections.abc import Iterator

from agent_magics.core.events import AssistantMessage, Payload, Usage, UserMessage
from agent_magics.core.messages import Text

QUESTION = "Which of these columns would you use to predict churn, and why? " * 3
ANSWER = "Tenure and monthly charges separate the groups best; the contract type follows. " * 12


def turn(number: int) -> tuple[tuple[Payload, ...], tuple[Payload, ...]]:
    """Return what a turn writes in its two transactions: the question, then the answer."""
    asked = UserMessage(content=(Text(text=f"{number}: {QUESTION}"),))
    said = AssistantMessage(
        content=(Text(text=f"{number}: {ANSWER}"),), provider="scripted", model="bench"
    )
    spent = Usage(purpose="turn", provider="scripted", model="bench", input_tokens=900)
    return (asked,), (said, spent)


def turns(count: int) -> Iterator[tuple[tuple[Payload, ...], tuple[Payload, ...]]]:
    """Return `count` turns, one after the other."""
    return (turn(number) for number in range(1, count + 1))
