"""Skills: which there are, and which ones a prompt calls by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from agent_magics.core.errors import (
    InputValidation,
    NameConflict,
    SkillDependencyNotMet,
    SkillNotFound,
)
from agent_magics.core.messages import Text, UserInput
from agent_magics.core.skills import Skill
from agent_magics.core.text import clean_value

SKILL_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_CALL = re.compile(rf"\s*/({SKILL_NAME.pattern})(?=\s|\Z)")


class SkillRegistry:
    """The skills of one agent, by name."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._skills = {skill.name: skill for skill in skills}

    @property
    def all(self) -> tuple[Skill, ...]:
        return tuple(self._skills.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._skills)

    @property
    def implicit(self) -> tuple[Skill, ...]:
        """The skills that the prompt lists, so that the model may suggest them."""
        return tuple(skill for skill in self._skills.values() if skill.allow_implicit_invocation)

    def called_by(self, given: UserInput) -> tuple[Skill, ...]:
        """Return the skills that a prompt calls: its first words, each `/name` and then a blank.

        Only the first text block is read. Each skill comes once, in the order of the calls; what
        doesn't look so (`/tmp/x.csv`) is text. Raises `SkillNotFound`.
        """
        text = next((block.text for block in given.content if isinstance(block, Text)), "")
        called: dict[str, Skill] = {}
        at = 0
        while found := _CALL.match(text, at):
            name = found[1]
            if name not in self._skills:
                raise SkillNotFound(name, self.names)
            called[name] = self._skills[name]
            at = found.end()
        return tuple(called.values())


def checked_skills(skills: Sequence[Skill], tool_names: Collection[str]) -> SkillRegistry:
    """Make the registry of skills that fit together and have the tools they need.

    Raises `InputValidation` (a name or text that can't be used), `NameConflict`,
    `SkillDependencyNotMet`.
    """
    names = [skill.name for skill in skills]
    for skill in skills:
        if not SKILL_NAME.fullmatch(skill.name):
            raise InputValidation(
                f'A skill can\'t be called "{skill.name}": begin with a letter a-z, go on with'
                " letters a-z, digits, - and _."
            )
        if names.count(skill.name) > 1:
            raise NameConflict("skill", skill.name)
        if not skill.prompt_template.strip():
            raise InputValidation(
                f'Skill "{skill.name}" has no text; write what it tells the model.'
            )
        for tool in skill.required_tools:
            if tool not in tool_names:
                raise SkillDependencyNotMet(skill.name, tool)
    return SkillRegistry(clean_value(tuple(skills)))
