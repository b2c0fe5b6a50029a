"""What sessions are told in tests, and what is read of them."""

from __future__ import annotations

from typing import Any

from agent_magics.core.events import kind_of
from agent_magics.core.messages import Assistant, Message, System, ToolResult, User, text_of
from agent_magics.session.session import Session

SLOW = {"text": "one two three four five", "chunk_delay_s": 0.05}


def overflow(**told: Any) -> dict[str, Any]:
    """Make a step in which the request is too long for the model."""
    return {"error": {"kind": "overflow", **told}}


async def talk(session: Session, *prompts: str, slot: str | None = None) -> None:
    for prompt in prompts:
        await session.submit_turn(prompt, slot=slot)


async def events_of(session: Session, prompt: str, **how: Any) -> list[Any]:
    """Run a turn; give its events."""
    turn = await session.send_message(prompt, **how)
    return [event.payload async for event in turn]


async def told(session: Session, prompt: str, **how: Any) -> tuple[list[Any], Any]:
    """Run a turn; give its events and its outcome."""
    turn = await session.send_message(prompt, **how)
    events = [event.payload async for event in turn]
    return events, await turn.join()


def kinds(session: Session) -> list[str]:
    """Give the kind of each event of a session."""
    return [kind_of(event.payload) for event in session.history()]


def said(messages: tuple[Message, ...]) -> list[str]:
    """Give the text of each message."""
    texts = []
    for message in messages:
        match message:
            case User(content=content) | Assistant(content=content):
                texts.append(text_of(content))
            case ToolResult(content=text) | System(text=text):
                texts.append(text)
    return texts
