"""The hooks at both ends of a turn: what plugins add to its prompt, whether they object."""

from __future__ import annotations

from dataclasses import dataclass

from agent_magics.core.errors import AgentError
from agent_magics.core.hooks import TurnEnding, TurnStarting, TurnStartPatch
from agent_magics.core.messages import UserInput
from agent_magics.session.extensions.hooks import HookScope
from agent_magics.session.state.references import Section
from agent_magics.session.state.running_turn import RunningTurn, Stopped

FROM_PLUGINS = "from a plugin"


@dataclass(frozen=True, kw_only=True)
class TurnHooks:
    """Fires the hooks at both ends of one turn; a stop doesn't wait for them."""

    turn: RunningTurn
    scope: HookScope

    async def sections(self, given: UserInput) -> list[Section]:
        """Fire `turn_start` and return what plugins add; raises as `HookScope.fire`."""
        try:
            patch = await self.turn.unless_stopped(self.scope.fire(TurnStarting(user_input=given)))
        except Stopped:  # the turn records its prompt, and that
            return []
        if not isinstance(patch, TurnStartPatch):
            return []
        return [(FROM_PLUGINS, text) for text in patch.append_dynamic_sections]

    async def objection(self, ending: TurnEnding) -> AgentError | None:
        """Fire `turn_end` and return the error of a plugin that objects, None where none does.

        A turn that was stopped waits for its plugins until it is abandoned, another one until it
        is stopped.
        """
        try:
            await self.turn.unless_left(self.scope.fire(ending))
        except Stopped:
            return None
        except AgentError as objection:
            return objection
        return None
