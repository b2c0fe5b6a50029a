"""What to do here about a request that doesn't fit: an error's sentence with remedies behind it."""

from __future__ import annotations

from agent_magics.core.errors import AgentError, ContextOverflow, FixedContextExceedsBudget
from agent_magics.notebook.text import part_label

MAKE_ROOM = (
    "%compact summarises older turns, %agent undo takes the last one out of the view, and"
    " %slot new NAME begins without them."
)
OF_PARTS = {
    "system": "shorten the slot's system prompt",
    "tools": "delete functions that the agent doesn't need, or put _ before their names",
    "skills": "use fewer skills",
    "memories": "delete facts of session.memory",
    "user_input": "send less: a part of the text, the head of a frame",
    "media": "send fewer or smaller images",
}


def sentence_of(error: AgentError) -> str:
    """Write what a cell that failed says."""
    match error:
        case FixedContextExceedsBudget(tokens=tokens):
            parts = sorted(tokens.items(), key=lambda part: -part[1])
            lines = [
                f"  {part_label(name)}, {count:,} tokens: {OF_PARTS[name]}"
                for name, count in parts
                if count and name in OF_PARTS
            ]
            return "\n".join([error.message, *lines])
        case ContextOverflow():
            return f"{error.message}\n{MAKE_ROOM}"
        case _:
            return error.message
