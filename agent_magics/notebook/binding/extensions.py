"""What a notebook's agent has that the notebook didn't make: skills of files, installed extensions.

Nothing of it can keep the agent from being built: what doesn't fit is said and left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_magics.settings import PROVIDER_IDS

if TYPE_CHECKING:  # heavy: it comes with the first use
    from agent_magics.core.ports import Provider
    from agent_magics.core.skills import Skill
    from agent_magics.session.builder import AgentBuilder


async def add_extensions(
    builder: AgentBuilder, wrapped: Callable[[Provider], Provider]
) -> list[str]:
    """Register what installed packages add, before all else: tools of the notebook go before.

    `wrapped` lets providers be recorded. Gives what is to be said; plugins that can't start add to
    it while the agent is built.
    """
    # Imports of others' packages take their time, and so does looking for them.
    from agent_magics.session.extensions.packages import load_extensions  # noqa: PLC0415

    found = await asyncio.to_thread(load_extensions)
    said = list(found.faults)
    if found.tools:
        builder.register_tool_source(lambda: tuple(found.tools))
    for plugin, name in found.plugins:
        builder.register_plugin(plugin, on_fault=_saying(said, name))
    taken = set(PROVIDER_IDS)
    for provider in found.providers:
        if provider.provider_id in taken:
            said.append(f'provider "{provider.provider_id}" is left out: there is one so called')
        else:
            taken.add(provider.provider_id)
            builder.register_model_provider(wrapped(provider))
    return said


async def add_skills(builder: AgentBuilder, folder: Path) -> list[str]:
    """Register the skills of the notebook's folder and of its user, behind all tools.

    A skill whose tools aren't there is kept, as they may come later, and that is said.
    """
    from agent_magics.session.extensions.skill_files import find_skills  # noqa: PLC0415 - at the first use

    found = await asyncio.to_thread(find_skills, folder, home())
    said = list(found.faults)
    for skill in found.skills:
        missing = [name for name in skill.required_tools if name not in builder.tool_names()]
        if missing:
            said.append(f"skill /{skill.name} needs tools that aren't here: {', '.join(missing)}")
        builder.register_skill(msgspec.structs.replace(skill, required_tools=()))
    return said


def skills_here(folder: Path) -> tuple[Skill, ...]:
    """Read the skills that a notebook will have, for completion before its first use."""
    from agent_magics.session.extensions.skill_files import find_skills  # noqa: PLC0415 - at the first use

    return find_skills(folder, home()).skills


def _saying(said: list[str], name: str) -> Callable[[str], None]:
    return lambda fault: said.append(f"{name} is left out: {fault}")


def home() -> Path:
    """Return the user's home, or a folder that can't be where nobody knows it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")
