"""What a session is called."""

from __future__ import annotations

from agent_magics.core.errors import InputValidation
from agent_magics.core.messages import UserInput, text_of

TITLE_CHARACTERS = 60


def checked_title(title: str) -> str:
    """Return a title as it is kept; raise `InputValidation` on a blank one."""
    if not title.strip():
        raise InputValidation("The title is blank; write one.")
    return title.strip()


def title_of_prompt(prompt: UserInput) -> str | None:
    """Return the title of a session whose first prompt this is; None where it has no words."""
    return " ".join(text_of(prompt.content).split())[:TITLE_CHARACTERS] or None
