"""Skills: instructions that a person calls by `/name` at the beginning of a prompt."""

from __future__ import annotations

from agent_magics.core.values import Value


class Skill(Value):
    """Instructions under a name.

    `name` is `[a-z][a-z0-9_-]*`. `prompt_template` is what the model reads when the skill is
    called. `required_tools` are checked at build. With `allow_implicit_invocation` the prompt
    lists the skill, so that the model may suggest it; it is never injected by itself.
    """

    name: str
    display_name: str
    description: str
    prompt_template: str
    required_tools: tuple[str, ...] = ()
    allow_implicit_invocation: bool = False
